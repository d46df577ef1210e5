//! The Kubernetes services as parts of a process: how each starts and ends, and what to do if it does
//! not.

use autoscaler::provider::Absent;
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

/// An autoscaler that only looks, to start.
pub(crate) struct Autoscaler {
    pub(crate) options: autoscaler::Options,
    pub(crate) surroundings: autoscaler::Surroundings<Absent>,
}

/// The same, ready to run.
pub(super) type Observer = autoscaler::Service<Absent>;

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

// === impl Autoscaler ===

impl Autoscaler {
    pub(super) async fn start(self) -> Result<Observer, Error> {
        let started = Observer::start(self.options, self.surroundings).await;
        started.map_err(|source| Error::StartAutoscaler { source: source.into() })
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

pub(super) async fn run_autoscaler(
    autoscaler: Option<Observer>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let Some(autoscaler) = autoscaler else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let ended = autoscaler.run(shutdown.clone()).await;
    shutdown.cancel();
    ended.map_err(|source| Error::StopAutoscaler { source: source.into() })
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

pub(super) fn is_autoscaler_usage(error: &autoscaler::StartError) -> bool {
    use autoscaler::StartError::{Client, Options};
    matches!(error, Client(_) | Options(_))
}

pub(super) fn autoscaler_hint(error: &autoscaler::StartError) -> &'static str {
    use autoscaler::StartError;
    match error {
        StartError::Client(_) => "name a kubeconfig that works for kubectl with --kubeconfig",
        StartError::Health(_) => {
            "`ss -ltnp` shows who listens; choose another address with --autoscaler-listen"
        }
        StartError::Options(_) | StartError::Timings(_) => {
            "`windlass up --help` explains every flag"
        }
    }
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
