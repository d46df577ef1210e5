//! The store that a process serves for itself, and for others if it is told to: the same that
//! `store serve` with these flags would be.

use std::{fs::DirBuilder, net::SocketAddr, os::unix::fs::DirBuilderExt, path::Path};

use crate::{
    cli::etcd_args::{self, Request},
    config::{layers::Layers, serve::Serve},
    report::{Exit, Failure},
};

/// The environment and input of every task lies in it, which is for nobody else on the machine.
const FOLDER_MODE: u32 = 0o700;

/// Where and how it is served.
pub(super) struct OwnStore<'a> {
    pub(super) data_dir: &'a Path,
    /// For others, and for the process itself where it has no socket.
    pub(super) port: Option<SocketAddr>,
    /// That only the owner of the process can reach.
    pub(super) socket: Option<&'a Path>,
    /// What it is known by on its port, and who is let in there.
    pub(super) identity: Option<&'a tasks::store::Tls>,
}

// === impl OwnStore ===

impl OwnStore<'_> {
    pub(super) fn serve(&self) -> Result<Serve, Failure> {
        make_folder(self.data_dir)?;
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        let port = self.port.map(|address| format!("{scheme}://{address}"));
        let socket = self.socket.map(utf8).transpose()?.map(|path| format!("unix://{path}"));
        let urls: Vec<&str> = port.iter().chain(&socket).map(String::as_str).collect();
        let mut flags = vec![
            format!("--data-dir={}", utf8(self.data_dir)?),
            format!("--listen-client-urls={}", urls.join(",")),
            format!("--advertise-client-urls={}", urls.join(",")),
            "--log-level=warn".to_owned(),
            "--log-format=console".to_owned(),
        ];
        if let (Some(address), Some(url)) = (self.port, &port) {
            flags.push(format!("--cors={url}"));
            flags.push(format!("--host-whitelist=localhost,127.0.0.1,::1,{}", address.ip()));
        }
        if let (Some(_), Some(identity)) = (self.port, self.identity) {
            flags.push(format!("--cert-file={}", utf8(&identity.cert_file)?));
            flags.push(format!("--key-file={}", utf8(&identity.key_file)?));
            flags.push(format!("--trusted-ca-file={}", utf8(&identity.ca_file)?));
        }
        let flags = match etcd_args::parse(&flags)? {
            Request::Serve(flags) => flags,
            Request::Help | Request::Version => unreachable!("neither is among the flags"),
        };
        let read_file = &|path: &Path| std::fs::read_to_string(path);
        let layers = Layers { flags, environment: Vec::new(), read_file };
        let mut serve = Serve::of(layers.resolve()?)?;
        // What reaches this store runs commands here, and a browser would let every page reach it.
        serve.options.http_access.refuses_other_pages = true;
        Ok(serve)
    }
}

/// With what lies above it; one that is there stays as its owner wants it.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path);
    made.map_err(|error| {
        let error =
            anyhow::Error::new(error).context(format!("cannot make the folder {}", path.display()));
        Failure::new(Exit::No, error).with_hint("choose another with --data-dir")
    })
}

fn utf8(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        let error = anyhow::anyhow!("the path {} is not UTF-8", path.display());
        Failure::new(Exit::Usage, error).with_hint("choose another with --data-dir")
    })
}
