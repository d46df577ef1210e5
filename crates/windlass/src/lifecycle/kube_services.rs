//! The Kubernetes services as parts of a process: how each starts and ends, and what to do if it does
//! not.

use kubekit::client;
use tokio_util::sync::CancellationToken;

use super::{Error, timestamp};

/// A labels service to start.
pub(crate) struct Labels {
    pub(crate) options: labels::options::Options,
    pub(crate) connection: client::Options,
}

/// A sharder to start.
pub(crate) struct Sharder {
    pub(crate) options: sharding::sharder::Options,
    pub(crate) connection: client::Options,
}

// === impl Labels ===

impl Labels {
    pub(super) async fn start(self) -> Result<labels::service::Service, Error> {
        let Self { options, connection } = self;
        let started = labels::service::Service::start(options, connection, timestamp).await;
        started.map_err(|source| Error::StartLabels { source: source.into() })
    }
}

// === impl Sharder ===

impl Sharder {
    pub(super) async fn start(self) -> Result<sharding::sharder::Service, Error> {
        let Self { options, connection } = self;
        let started = sharding::sharder::Service::start(options, connection, timestamp).await;
        started.map_err(|source| Error::StartSharder { source: source.into() })
    }
}

/// A part that is not there ends with the others.
pub(super) async fn run_labels(
    labels: Option<labels::service::Service>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let Some(labels) = labels else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let ended = labels.run(shutdown.clone()).await;
    shutdown.cancel();
    ended.map_err(|source| Error::StopLabels { source: source.into() })
}

pub(super) async fn run_sharder(
    sharder: Option<sharding::sharder::Service>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let Some(sharder) = sharder else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let ended = sharder.run(shutdown.clone()).await;
    shutdown.cancel();
    ended.map_err(|source| Error::StopSharder { source: source.into() })
}

/// Whether the command line is to blame.
pub(super) fn is_labels_usage(error: &labels::service::StartError) -> bool {
    use labels::service::StartError::{Client, Options};
    matches!(error, Client(_) | Options(_))
}

pub(super) fn is_sharder_usage(error: &sharding::sharder::StartError) -> bool {
    use sharding::sharder::StartError::{Client, Options};
    matches!(error, Client(_) | Options(_))
}

pub(super) fn labels_hint(error: &labels::service::StartError) -> &'static str {
    use labels::service::StartError;
    match error {
        StartError::Client(_) => "name a kubeconfig that works for kubectl with --kubeconfig",
        StartError::Health(_) => {
            "`ss -ltnp` shows who listens; choose another address with --listen, with `up` with \
             --labels-listen"
        }
        StartError::Options(_) | StartError::Timings(_) | StartError::Presence(_) => {
            "`windlass labels run --help` explains every flag"
        }
    }
}

pub(super) fn sharder_hint(error: &sharding::sharder::StartError) -> &'static str {
    use sharding::sharder::StartError;
    match error {
        StartError::Client(_) => "name a kubeconfig that works for kubectl with --kubeconfig",
        StartError::Health(_) => {
            "`ss -ltnp` shows who listens; choose another address with --listen, with `up` with \
             --sharder-listen"
        }
        StartError::Options(_) | StartError::Timings(_) => {
            "`windlass sharder run --help` explains every flag"
        }
    }
}
