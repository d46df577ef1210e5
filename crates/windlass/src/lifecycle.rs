//! Runs what a command starts, from opening the data folder to the last word after a signal. The
//! only place that listens for signals.

mod kube_services;
mod task_node;

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
use store::{LoadError, MetaError, Service, StartError, StopError};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::report::{Exit, Failure, Outcome};

pub(crate) use kube_services::{Autoscaler, Labels, Sharder};
pub(crate) use task_node::{Started as StartedNode, TaskNode};

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

/// What one process is to serve.
#[derive(Default)]
pub(crate) struct Parts {
    /// Its folder and its options.
    pub(crate) store: Option<(PathBuf, store::Options)>,
    pub(crate) labels: Option<Labels>,
    pub(crate) sharder: Option<Sharder>,
    /// Only looks.
    pub(crate) autoscaler: Option<Autoscaler>,
    /// Uses the store of this process if it is told of no other.
    pub(crate) node: Option<TaskNode>,
}

/// What one process serves, ready to run.
pub(crate) struct Ready {
    store: Option<Service>,
    labels: Option<labels::service::Service>,
    sharder: Option<sharding::sharder::Service>,
    autoscaler: Option<kube_services::Observer>,
    node: Option<StartedNode>,
}

/// The signals that ask a process to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Serves all parts until a signal comes. `on_ready` is told once clients can connect.
pub(crate) fn serve(parts: Parts, on_ready: impl FnOnce(&Ready) -> Outcome) -> Outcome {
    block_on(async {
        let mut signals = Signals::listen()?;
        let ready = parts.start().await?;
        on_ready(&ready)?;
        let shutdown = CancellationToken::new();
        until_stopped(ready.run(&shutdown), &shutdown, &mut signals).await?;
        Ok(())
    })
}

/// Runs a service that needs none of the others until a signal comes. It is given what asks it to stop.
pub(crate) fn until_signal<F>(service: impl FnOnce(CancellationToken) -> F) -> Outcome
where
    F: Future<Output = Outcome>,
{
    block_on(async {
        let mut signals = Signals::listen()?;
        let shutdown = CancellationToken::new();
        until_stopped(service(shutdown.clone()), &shutdown, &mut signals).await
    })
}

/// Runs a command that waits for the network.
pub(crate) fn block_on(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Runtime { source })?
        .block_on(command)
}

/// Runs what waits for a disk on a thread of its own; its end is its owner's to wait for.
pub(crate) fn beside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// The first signal asks for an orderly end, the second does not wait for it. Nothing is lost
/// either way: what was answered is durable.
async fn until_stopped<E: From<Error>>(
    running: impl Future<Output = Result<(), E>>,
    shutdown: &CancellationToken,
    signals: &mut Signals,
) -> Result<(), E> {
    let mut running = pin!(running);
    loop {
        tokio::select! {
            ended = &mut running => return ended,
            () = signals.next() => {
                if shutdown.is_cancelled() {
                    return Err(Error::Impatient.into());
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

// === impl Parts ===

impl Parts {
    /// The store comes first: the node asks it for everything.
    async fn start(self) -> Result<Ready, Error> {
        let store = match self.store {
            Some((data_dir, options)) => Some(start_store(&data_dir, options).await?),
            None => None,
        };
        let labels = match self.labels {
            Some(labels) => Some(labels.start().await?),
            None => None,
        };
        let sharder = match self.sharder {
            Some(sharder) => Some(sharder.start().await?),
            None => None,
        };
        let autoscaler = match self.autoscaler {
            Some(autoscaler) => Some(autoscaler.start().await?),
            None => None,
        };
        let node = match self.node {
            Some(node) => Some(node.asking(store.as_ref())?.start().await?),
            None => None,
        };
        Ok(Ready { store, labels, sharder, autoscaler, node })
    }
}

async fn start_store(data_dir: &Path, options: store::Options) -> Result<Service, Error> {
    let journal = open_journal(data_dir)?;
    let started = Service::start(options, Arc::new(journal), wall_clock).await;
    started.map_err(|source| Error::Start { source: source.into() })
}

// === impl Ready ===

impl Ready {
    pub(crate) fn store(&self) -> Option<&Service> {
        self.store.as_ref()
    }

    /// Where the labels service answers probes.
    pub(crate) fn labels(&self) -> Option<SocketAddr> {
        self.labels.as_ref().map(labels::service::Service::address)
    }

    /// Where the sharder answers probes.
    pub(crate) fn sharder(&self) -> Option<SocketAddr> {
        self.sharder.as_ref().map(sharding::sharder::Service::address)
    }

    /// Where the autoscaler answers.
    pub(crate) fn autoscaler(&self) -> Option<SocketAddr> {
        self.autoscaler.as_ref().map(kube_services::Observer::address)
    }

    pub(crate) fn node(&self) -> Option<&StartedNode> {
        self.node.as_ref()
    }

    /// The end of one is the end of all. The store ends last: what the others have to say on their
    /// way out is kept.
    async fn run(self, shutdown: &CancellationToken) -> Result<(), Error> {
        let store_until = CancellationToken::new();
        let others = async {
            let (labels, sharder, autoscaler, node) = tokio::join!(
                kube_services::run_labels(self.labels, shutdown),
                kube_services::run_sharder(self.sharder, shutdown),
                kube_services::run_autoscaler(self.autoscaler, shutdown),
                run_node(self.node, shutdown)
            );
            store_until.cancel();
            labels.and(sharder).and(autoscaler).and(node)
        };
        let store = async {
            let Some(store) = self.store else { return Ok(()) };
            let ended = store.run(store_until.clone()).await;
            shutdown.cancel();
            ended.map_err(|source| Error::Stop { source: source.into() })
        };
        let (store, others) = tokio::join!(store, others);
        store.and(others)
    }
}

/// A part that is not there ends with the others.
async fn run_node(node: Option<StartedNode>, shutdown: &CancellationToken) -> Result<(), Error> {
    let Some(node) = node else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let ended = node.run(shutdown).await;
    shutdown.cancel();
    ended
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
    pub(crate) fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(|source| Error::Signals { source });
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Cancel safe.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

// === impl Error ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (exit, hint) = (exit(&error), hint(&error));
        Self::new(exit, error).with_hint(hint)
    }
}

fn exit(error: &Error) -> Exit {
    let is_usage = match error {
        Error::StartLabels { source } => kube_services::is_labels_usage(source),
        Error::StartSharder { source } => kube_services::is_sharder_usage(source),
        Error::StartAutoscaler { source } => kube_services::is_autoscaler_usage(source),
        _ => false,
    };
    if is_usage { Exit::Usage } else { Exit::No }
}

fn hint(error: &Error) -> &'static str {
    match error {
        Error::EtcdData { .. } => "choose another --data-dir; this one is left as it is",
        Error::Journal { source } => journal_hint(source),
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
