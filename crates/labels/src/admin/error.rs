//! Why a command did not do what it was asked.

use kubekit::lock;

use crate::{
    core::{record::Unreadable, rv::ResourceVersion},
    kubernetes,
};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Kubernetes(#[from] kubernetes::Error),
    #[error("nothing is stored of Node `{node}`")]
    NoRecord { node: String },
    #[error("the record of Node `{node}` cannot be read")]
    Unreadable {
        node: String,
        #[source]
        source: Unreadable,
    },
    #[error("there is no Node `{node}`")]
    NoNode { node: String },
    #[error("Node `{node}` is being deleted")]
    Terminating { node: String },
    #[error("no snapshot {rv} is kept of Node `{node}`")]
    NoSnapshot { node: String, rv: ResourceVersion },
    #[error("transactions of Node `{node}` are queued: {count}")]
    Queued { node: String, count: usize },
    #[error("the lock of Node `{node}` stays with {holder}")]
    Locked { node: String, holder: String },
    #[error("the lock of Node `{node}` cannot be had")]
    Lock {
        node: String,
        #[source]
        source: lock::Error,
    },
    #[error("Node `{node}` or its record changed {attempts} times meanwhile")]
    Contended { node: String, attempts: usize },
    #[error("watchers are running: {}", names.join(", "))]
    Watched { names: Vec<String> },
    #[error("cannot {verb} the Leases")]
    Leases {
        verb: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
}
