//! Why a command did not do what it was asked.

use kubekit::{failure::Failure, lock};

use crate::{
    core::{record::Unreadable, rv::ResourceVersion},
    kubernetes::{self, Kind, Verb},
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
        verb: Verb,
        #[source]
        source: Failure,
    },
}

// === impl Error ===

impl Error {
    /// What the API server's answer means, or that there was none, if that is what is wrong.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::Kubernetes(error) => Some(error.kind.clone()),
            Self::Leases { source, .. } => Some(Kind::of_failure(source)),
            Self::Lock { source, .. } => {
                let request = source.request()?;
                Some(request.failure().map_or(Kind::Unknown, Kind::of_failure))
            }
            _ => None,
        }
    }

    /// Whether it was a read that failed, for which other rights are needed than for a write.
    #[must_use]
    pub fn is_of_a_read(&self) -> bool {
        let verb = match self {
            Self::Kubernetes(error) => error.verb,
            Self::Leases { verb, .. } => *verb,
            _ => return false,
        };
        matches!(verb, Verb::Read | Verb::List | Verb::Watch)
    }
}
