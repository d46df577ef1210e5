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
    pub(super) door: Door<'a>,
    /// What it is known by, and who is let in.
    pub(super) identity: Option<&'a tasks::store::Tls>,
}

pub(super) enum Door<'a> {
    Port(SocketAddr),
    /// A socket that only the owner of the process can reach.
    Socket(&'a Path),
}

// === impl OwnStore ===

impl OwnStore<'_> {
    pub(super) fn serve(&self) -> Result<Serve, Failure> {
        make_folder(self.data_dir)?;
        let url = match (&self.door, self.identity) {
            (Door::Port(address), None) => format!("http://{address}"),
            (Door::Port(address), Some(_)) => format!("https://{address}"),
            (Door::Socket(path), _) => format!("unix://{}", utf8(path)?),
        };
        let mut flags = vec![
            format!("--data-dir={}", utf8(self.data_dir)?),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            "--log-level=warn".to_owned(),
            "--log-format=console".to_owned(),
        ];
        if let Door::Port(address) = self.door {
            flags.push(format!("--cors={url}"));
            flags.push(format!("--host-whitelist=localhost,127.0.0.1,::1,{}", address.ip()));
        }
        if let (Door::Port(_), Some(identity)) = (&self.door, self.identity) {
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
