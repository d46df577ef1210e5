//! Runs what a command starts, from opening the data folder to the last word after a signal. The
//! only place that waits for signals.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::SystemTime,
};

use journal::{EmbeddedJournal, embedded};
use kubekit::client;
use store::{LoadError, MetaError, Service, StartError, StopError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::report::{Exit, Failure, Outcome};

/// The folder in which etcd itself keeps its data.
const ETCD_MEMBER: &str = "member";

const DAMAGED: &str = "`windlass store inspect <folder>` shows what is damaged";
const LIMITS: &str = "check the limits of this user (`ulimit -a`)";

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{} holds the data of an etcd", path.display())]
    EtcdData { path: PathBuf },
    #[error("the data folder cannot be opened")]
    Journal {
        #[source]
        source: journal::Error,
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

/// A labels service to start.
pub(crate) struct Labels {
    pub(crate) options: labels::options::Options,
    pub(crate) connection: client::Options,
}

/// The signals that ask a process to stop.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Serves a store until a signal comes. `on_ready` is told once clients can connect.
pub(crate) fn serve_store(
    data_dir: &Path,
    options: store::Options,
    on_ready: impl FnOnce(&Service) -> Outcome,
) -> Outcome {
    serve_store_and_labels(data_dir, options, None, |service, _| on_ready(service))
}

/// Serves a store and, if one is wanted, keeps the labels of a cluster. `on_ready` is also told
/// where the labels service answers probes.
pub(crate) fn serve_store_and_labels(
    data_dir: &Path,
    options: store::Options,
    labels: Option<Labels>,
    on_ready: impl FnOnce(&Service, Option<SocketAddr>) -> Outcome,
) -> Outcome {
    block_on(async {
        let mut signals = Signals::listen()?;
        let journal = open_journal(data_dir)?;
        let service = Service::start(options, Arc::new(journal), wall_clock)
            .await
            .map_err(|source| Error::Start { source: source.into() })?;
        let labels = match labels {
            Some(labels) => Some(labels.start().await?),
            None => None,
        };
        on_ready(&service, labels.as_ref().map(labels::service::Service::address))?;
        let shutdown = CancellationToken::new();
        let running = run_both(service, labels, &shutdown);
        until_stopped(running, &shutdown, &mut signals).await?;
        Ok(())
    })
}

/// Keeps the labels of a cluster until a signal comes. `on_ready` is told where probes are
/// answered.
pub(crate) fn serve_labels(labels: Labels, on_ready: impl FnOnce(SocketAddr)) -> Outcome {
    block_on(async {
        let mut signals = Signals::listen()?;
        let service = labels.start().await?;
        on_ready(service.address());
        let shutdown = CancellationToken::new();
        until_stopped(run_labels(service, &shutdown), &shutdown, &mut signals).await?;
        Ok(())
    })
}

/// The end of one is the end of both.
async fn run_both(
    store: Service,
    labels: Option<labels::service::Service>,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let store = async {
        let ended = store.run(shutdown.clone()).await;
        shutdown.cancel();
        ended.map_err(|source| Error::Stop { source: source.into() })
    };
    let labels = async {
        match labels {
            Some(labels) => run_labels(labels, shutdown).await,
            None => Ok(()),
        }
    };
    let (store, labels) = tokio::join!(store, labels);
    store.and(labels)
}

async fn run_labels(
    labels: labels::service::Service,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let ended = labels.run(shutdown.clone()).await;
    shutdown.cancel();
    ended.map_err(|source| Error::StopLabels { source: source.into() })
}

/// Runs a command that waits for the network.
pub(crate) fn block_on(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Runtime { source })?
        .block_on(command)
}

/// The first signal asks for an orderly end, the second does not wait for it. Nothing is lost
/// either way: what was answered is durable.
async fn until_stopped(
    running: impl Future<Output = Result<(), Error>>,
    shutdown: &CancellationToken,
    signals: &mut Signals,
) -> Result<(), Error> {
    let mut running = pin!(running);
    loop {
        tokio::select! {
            ended = &mut running => return ended,
            () = signals.next() => {
                if shutdown.is_cancelled() {
                    return Err(Error::Impatient);
                }
                shutdown.cancel();
            }
        }
    }
}

fn open_journal(data_dir: &Path) -> Result<EmbeddedJournal, Error> {
    if data_dir.join(ETCD_MEMBER).exists() {
        return Err(Error::EtcdData { path: data_dir.to_owned() });
    }
    EmbeddedJournal::open(data_dir, embedded::Options::default())
        .map_err(|source| Error::Journal { source })
}

// === impl Labels ===

impl Labels {
    async fn start(self) -> Result<labels::service::Service, Error> {
        let Self { options, connection } = self;
        let started = labels::service::Service::start(options, connection, timestamp).await;
        started.map_err(|source| Error::StartLabels { source: source.into() })
    }
}

/// The same clock, as Kubernetes' times are told.
pub(crate) fn timestamp() -> jiff::Timestamp {
    wall_clock().try_into().expect("the clock is set to a year that can be counted")
}

#[expect(clippy::disallowed_methods, reason = "the binary owns the clock")]
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

// === impl Signals ===

impl Signals {
    fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|source| Error::Signals { source });
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = hint(&error);
        Self { exit: exit(&error), error: error.into(), hint: Some(hint.to_owned()) }
    }
}

fn exit(error: &Error) -> Exit {
    use labels::service::StartError::{Client, Options};
    match error {
        Error::StartLabels { source } if matches!(**source, Client(_) | Options(_)) => Exit::Usage,
        _ => Exit::No,
    }
}

fn hint(error: &Error) -> &'static str {
    match error {
        Error::EtcdData { .. } => "choose another --data-dir; this one is left as it is",
        Error::Journal { source } => journal_hint(source),
        Error::Start { source } => start_hint(source),
        Error::StartLabels { source } => labels_hint(source),
        Error::StopLabels { .. } => "nothing is lost: everything is in Kubernetes; start again",
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
        StartError::Bind { .. } => {
            "`ss -ltnp` shows who listens; with `up`, choose another address with --listen"
        }
        StartError::Load { source: LoadError::Meta { source: MetaError::Importing } } => {
            "remove the folder and import again"
        }
        StartError::Load { .. } => DAMAGED,
        StartError::Tokens { .. } => "check the key files in --auth-token",
        StartError::Threads { .. } => LIMITS,
    }
}

fn labels_hint(error: &labels::service::StartError) -> &'static str {
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
