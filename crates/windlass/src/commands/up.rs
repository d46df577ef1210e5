//! `windlass up`: what one machine can carry, with nothing configured.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::{
    cli::{
        UpArgs,
        etcd_args::{self, Request},
    },
    commands::{labels, serve},
    config::{layers::Layers, serve::Serve},
    lifecycle,
    report::{self, Exit, Failure, Outcome},
};

/// Each part keeps its data in a folder of its own inside the data folder.
const STORE_FOLDER: &str = "store";

pub(crate) fn run(arguments: UpArgs) -> Outcome {
    let data_dir = arguments.data_dir.map_or_else(default_data_dir, Ok)?;
    let store = store(&data_dir.join(STORE_FOLDER), arguments.listen)?;
    serve::start_logging(&store)?;
    let kubeconfig = arguments.kubeconfig;
    let labels = kubeconfig.map(|path| labels::beside_store(path, arguments.labels_listen));
    lifecycle::serve_store_and_labels(
        &store.data_dir,
        store.options,
        labels,
        |service, probes| {
            let endpoint = service.addresses().find_map(|(_, address)| match address {
                store::Address::Tcp(address) => Some(format!("http://{address}")),
                store::Address::Unix(_) => None,
            });
            report::words(&welcome(&endpoint.unwrap_or_default(), &data_dir, probes));
            if !arguments.listen.ip().is_loopback() {
                report::words("warning: everyone who reaches this address can read and write\n");
            }
            Ok(())
        },
    )?;
    report::words(&format!("stopped; everything is kept in {}", data_dir.display()));
    Ok(())
}

/// The journal's folder that a user means: `dir`, or the one that `up` keeps inside it.
pub(crate) fn journal_in(dir: &Path) -> PathBuf {
    let inner = dir.join(STORE_FOLDER);
    if inner.is_dir() { inner } else { dir.to_owned() }
}

/// The same store that `store serve` with these flags would be.
fn store(data_dir: &Path, listen: SocketAddr) -> Result<Serve, Failure> {
    let Some(data_dir) = data_dir.to_str() else {
        let error = anyhow::anyhow!("the data folder {} is not UTF-8", data_dir.display());
        return Err(Failure::new(Exit::Usage, error).with_hint("choose another with --data-dir"));
    };
    let flags = [
        format!("--data-dir={data_dir}"),
        format!("--listen-client-urls=http://{listen}"),
        format!("--advertise-client-urls=http://{listen}"),
        "--log-level=warn".to_owned(),
        "--log-format=console".to_owned(),
    ];
    let flags = match etcd_args::parse(&flags)? {
        Request::Serve(flags) => flags,
        Request::Help | Request::Version => unreachable!("neither is among the flags"),
    };
    let layers =
        Layers { flags, environment: Vec::new(), read_file: &|path| std::fs::read_to_string(path) };
    Ok(Serve::of(layers.resolve()?)?)
}

/// Where the XDG base directory specification wants the data of a user.
fn default_data_dir() -> Result<PathBuf, Failure> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("windlass"))
        .ok_or_else(|| {
            let error = anyhow::anyhow!("neither XDG_DATA_HOME nor HOME says where data belongs");
            Failure::new(Exit::Usage, error).with_hint("name a folder with --data-dir")
        })
}

fn welcome(endpoint: &str, data_dir: &Path, probes: Option<SocketAddr>) -> String {
    let labels = probes.map_or_else(String::new, |address| {
        format!("  labels kept for the cluster of your kubeconfig, see http://{address}/readyz\n")
    });
    format!(
        "windlass is up

  store  {endpoint}  (etcd's API, version {})
  data   {}
{labels}
try
  etcdctl --endpoints={endpoint} put greeting hello
  etcdctl --endpoints={endpoint} get greeting
or give it to Kubernetes
  kube-apiserver --etcd-servers={endpoint} …

Ctrl-C stops it; the data stays
",
        etcd_api::version::SERVER,
        data_dir.display(),
    )
}
