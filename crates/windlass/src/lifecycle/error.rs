//! Why what a command starts did not start or did not end well, and what to do about it.

use std::{io, path::PathBuf};

use store::{LoadError, MetaError, StartError, StopError};

use super::{kube_services, shared_journal, task_node};
use crate::report::{Exit, Failure};

const DAMAGED: &str = "`windlass store inspect <folder>` shows what is damaged";
pub(super) const CERTIFICATES: &str =
    "check the files of the certificate, its key and the authority, and who may read them";
pub(super) const LIMITS: &str = "check the limits of this user (`ulimit -a`)";

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{} holds the data of an etcd", path.display())]
    EtcdData { path: PathBuf },
    #[error("the data folder cannot be opened")]
    Journal {
        #[source]
        source: journal::Error,
    },
    #[error("the shared journal cannot be used")]
    SharedJournal {
        #[source]
        source: shared_journal::Error,
    },
    #[error("the store did not start")]
    Start {
        #[source]
        source: Box<StartError>,
    },
    #[error("the store stopped")]
    Stop {
        #[source]
        source: Box<StopError>,
    },
    #[error("the labels service did not start")]
    StartLabels {
        #[source]
        source: Box<labels::service::StartError>,
    },
    #[error("the labels service stopped")]
    StopLabels {
        #[source]
        source: Box<labels::lifecycle::StopError>,
    },
    #[error("the sharder did not start")]
    StartSharder {
        #[source]
        source: Box<sharding::sharder::StartError>,
    },
    #[error("the sharder stopped")]
    StopSharder {
        #[source]
        source: Box<sharding::sharder::lifecycle::StopError>,
    },
    #[error("the autoscaler did not start")]
    StartAutoscaler {
        #[source]
        source: Box<autoscaler::StartError>,
    },
    #[error("the autoscaler stopped")]
    StopAutoscaler {
        #[source]
        source: Box<autoscaler::lifecycle::StopError>,
    },
    #[error("the folder {} for a socket cannot be made", path.display())]
    SocketFolder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the socket {} cannot be kept from others", path.display())]
    ProtectSocket {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is no path", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the API of tasks is not served")]
    Api {
        #[source]
        source: Box<tasks::service::edge::Error>,
    },
    #[error("the task node did not start")]
    StartNode {
        #[source]
        source: Box<tasks::node::StartError>,
    },
    #[error("the task node stopped")]
    StopNode {
        #[source]
        source: Box<tasks::node::StopError>,
    },
    #[error("the threads of the process could not be set up")]
    Runtime {
        #[source]
        source: io::Error,
    },
    #[error("signals cannot be listened for")]
    Signals {
        #[source]
        source: io::Error,
    },
    #[error("stopped by a second signal, before all connections had ended")]
    Impatient,
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = (exit(&error), hint(&error));
        Self::new(exit, error).with_hint(hint)
    }
}

fn exit(error: &Error) -> Exit {
    if matches!(error, Error::SharedJournal { source } if source.is_unreachable()) {
        return Exit::Unreachable;
    }
    let is_usage = match error {
        Error::StartLabels { source } => kube_services::is_labels_usage(source),
        Error::StartSharder { source } => kube_services::is_sharder_usage(source),
        Error::StartAutoscaler { source } => kube_services::is_autoscaler_usage(source),
        Error::SharedJournal { source } => source.is_usage(),
        _ => false,
    };
    if is_usage { Exit::Usage } else { Exit::No }
}

fn hint(error: &Error) -> &'static str {
    match error {
        Error::EtcdData { .. } => "choose another --data-dir; this one is left as it is",
        Error::Journal { source } => journal_hint(source),
        Error::SharedJournal { source } => source.hint(),
        Error::Start { source } => start_hint(source),
        Error::StartLabels { source } => kube_services::labels_hint(source),
        Error::StartSharder { source } => kube_services::sharder_hint(source),
        Error::StartAutoscaler { source } => kube_services::autoscaler_hint(source),
        Error::SocketFolder { .. } => "choose another socket with --socket",
        Error::ProtectSocket { .. } => "choose a folder of your own with --data-dir",
        Error::Path { .. } => "name a path that exists",
        Error::Api { source } => task_node::api_hint(source),
        Error::StartNode { source } => task_node::node_hint(source),
        Error::StopNode { .. } => "nothing is lost: everything is in the store; start again",
        Error::StopLabels { .. } | Error::StopSharder { .. } | Error::StopAutoscaler { .. } => {
            "nothing is lost: everything is in Kubernetes; start again"
        }
        Error::Stop { .. } => "what was answered is kept; mend the cause and start again",
        Error::Runtime { .. } | Error::Signals { .. } => LIMITS,
        Error::Impatient => "what was answered is kept",
    }
}

fn journal_hint(error: &journal::Error) -> &'static str {
    match error {
        journal::Error::Locked { .. } => {
            "stop the process that uses the folder, or choose another with --data-dir"
        }
        journal::Error::NewerFormat { .. } => "start the windlass that wrote it, or a newer one",
        journal::Error::Io { .. } => {
            "check that this user may write the folder, or choose another with --data-dir"
        }
        _ => DAMAGED,
    }
}

fn start_hint(error: &StartError) -> &'static str {
    match error {
        StartError::Bind { source } if source.is_tls() => CERTIFICATES,
        StartError::Bind { .. } => {
            "`ss -ltnp` shows who listens; with `up`, choose another address with --listen"
        }
        StartError::Load { source: LoadError::Meta { source: MetaError::Importing } } => {
            "remove the folder and import again"
        }
        StartError::Load { source: LoadError::Meta { source: MetaError::Restoring } } => {
            "remove the folder and restore the snapshot again"
        }
        StartError::Load { .. } => DAMAGED,
        StartError::PeerTls { .. } => {
            "check --peer-cert-file, --peer-key-file and --peer-trusted-ca-file"
        }
        StartError::Tokens { .. } => "check the key files in --auth-token",
        StartError::Threads { .. } => LIMITS,
    }
}
