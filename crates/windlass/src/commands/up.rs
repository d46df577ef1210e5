//! `windlass up`: what one machine can carry, with nothing configured.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf, absolute},
};

use super::{
    node::{self, STORE_FOLDER},
    own_store::OwnStore,
};
use crate::{
    cli::UpArgs,
    commands::{autoscaler, labels, serve, sharder},
    config::node::Node,
    lifecycle::{self, Parts, Ready, TaskNode},
    report::{self, Exit, Failure, Outcome},
};

pub(crate) fn run(arguments: UpArgs) -> Outcome {
    refuse_others(arguments.listen)?;
    let data_dir = arguments.data_dir.map_or_else(default_data_dir, Ok)?;
    let own = OwnStore {
        data_dir: &data_dir.join(STORE_FOLDER),
        port: Some(arguments.listen),
        socket: None,
        identity: None,
    };
    let store = own.serve()?;
    serve::start_logging(&store)?;
    let has_own_socket = arguments.socket.is_some();
    let node = Node::beside_store(data_dir.clone(), arguments.socket, &node::facts())?;
    let warnings = node.warnings.clone();
    let kubeconfig = arguments.kubeconfig;
    let parts = Parts {
        store: Some((store.journal, store.options)),
        labels: kubeconfig.clone().map(|path| labels::beside_store(path, arguments.labels_listen)),
        sharder: kubeconfig
            .clone()
            .map(|path| sharder::beside_store(path, arguments.sharder_listen)),
        autoscaler: kubeconfig
            .map(|path| autoscaler::beside_store(path, arguments.autoscaler_listen)),
        node: Some(TaskNode { node, endpoints: Vec::new() }),
        has_page: true,
    };
    lifecycle::serve(parts, |ready| {
        report::words(&welcome(ready, &data_dir, has_own_socket));
        for warning in &warnings {
            report::words(&format!("warning: {warning}"));
        }
        Ok(())
    })?;
    report::words(&format!("stopped; everything is kept in {}", data_dir.display()));
    Ok(())
}

/// The node runs what the store says, and the store lets in everybody who reaches it: what others
/// reached would be a shell for all of them.
fn refuse_others(listen: SocketAddr) -> Result<(), Failure> {
    if listen.ip().is_loopback() {
        return Ok(());
    }
    let problem = format!(
        "--listen {listen}: whoever reaches the store runs commands on this machine, and `up` asks \
         nobody who he is"
    );
    Err(Failure::new(Exit::Usage, anyhow::anyhow!(problem)).with_hint(
        "give others `windlass store serve` with certificates, or `windlass node --store-listen` with \
         those of `windlass ca`",
    ))
}

/// The journal's folder that a user means: `dir`, or the one that `up` keeps inside it.
pub(crate) fn journal_in(dir: &Path) -> PathBuf {
    let inner = dir.join(STORE_FOLDER);
    if inner.is_dir() { inner } else { dir.to_owned() }
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    node::own_data_dir().ok_or_else(|| {
        let error = anyhow::anyhow!("neither XDG_DATA_HOME nor HOME says where data belongs");
        Failure::new(Exit::Usage, error).with_hint("name a folder with --data-dir")
    })
}

fn welcome(ready: &Ready, data_dir: &Path, has_own_socket: bool) -> String {
    let endpoint = ready.endpoint().unwrap_or_default();
    let labels = ready.labels().map_or_else(String::new, |address| {
        format!("  labels kept for the cluster of your kubeconfig, see http://{address}/readyz\n")
    });
    let sharder = ready.sharder().map_or_else(String::new, |address| {
        format!("  rings of that cluster spread, see http://{address}/readyz\n")
    });
    let autoscaler = ready.autoscaler().map_or_else(String::new, |address| {
        format!("  its Nodes explained, not scaled, see http://{address}/status\n")
    });
    let socket = ready.socket().unwrap_or(Path::new(""));
    // Without it, commands look where a node's socket is by default.
    let node = if has_own_socket {
        let socket = absolute(socket).unwrap_or_else(|_| socket.to_owned());
        format!(" -N unix://{}", socket.display())
    } else {
        String::new()
    };
    format!(
        "windlass is up

  store  {endpoint}  (etcd's API, version {})
  tasks  {}
  data   {}
  page   {endpoint}/  (what runs, in a browser)
{labels}{sharder}{autoscaler}
who reaches the store controls the tasks: here, every user of this machine

try
  windlass run{node} -- ls -l
  etcdctl --endpoints={endpoint} put greeting hello
  etcdctl --endpoints={endpoint} get greeting
or give it to Kubernetes
  kube-apiserver --etcd-servers={endpoint} …

Ctrl-C stops it; the data stays
",
        etcd_api::version::SERVER,
        socket.display(),
        data_dir.display(),
    )
}
