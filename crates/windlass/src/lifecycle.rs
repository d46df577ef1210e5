//! Runs what a command starts, from opening the data folder to the last word after a signal. The
//! only place that listens for signals.

mod error;
mod kube_services;
pub(crate) mod shared_journal;
mod task_node;

use std::{future::Future, io, net::SocketAddr, path::Path, pin::pin, sync::Arc, time::SystemTime};

use journal::{EmbeddedJournal, embedded};
use store::{Address, Service};
use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::journal::Journal,
    page::{self, StatusPage},
    report::Outcome,
};

pub(crate) use error::Error;
pub(crate) use kube_services::{Autoscaler, Labels, Sharder};
pub(crate) use task_node::{Started as StartedNode, TaskNode};

/// The folder in which etcd itself keeps its data.
const ETCD_MEMBER: &str = "member";

/// What one process is to serve.
#[derive(Default)]
pub(crate) struct Parts {
    /// Where its data is, and its options.
    pub(crate) store: Option<(Journal, store::Options)>,
    pub(crate) labels: Option<Labels>,
    pub(crate) sharder: Option<Sharder>,
    /// Only looks.
    pub(crate) autoscaler: Option<Autoscaler>,
    /// Uses the store of this process if it is told of no other.
    pub(crate) node: Option<TaskNode>,
    /// Whether the store's port shows people how all of them are.
    pub(crate) has_page: bool,
}

/// What one process serves, ready to run.
pub(crate) struct Ready {
    store: Option<Service>,
    labels: Option<labels::service::Service>,
    sharder: Option<sharding::sharder::Service>,
    autoscaler: Option<kube_services::Observer>,
    node: Option<StartedNode>,
    page: Option<StatusPage>,
}

/// The signals that ask a process to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// Serves all parts until a signal comes. `on_ready` is told once clients can connect.
pub(crate) fn serve(parts: Parts, on_ready: impl FnOnce(&Ready) -> Outcome) -> Outcome {
    block_on(serving(parts, on_ready))
}

/// The same on this thread alone: for parts that wait for one server nearly all of the time. Handing
/// every answer from thread to thread costs more than what is done with it, and each keeps memory.
pub(crate) fn serve_on_one_thread(
    parts: Parts,
    on_ready: impl FnOnce(&Ready) -> Outcome,
) -> Outcome {
    block_on_with(Builder::new_current_thread(), serving(parts, on_ready))
}

async fn serving(parts: Parts, on_ready: impl FnOnce(&Ready) -> Outcome) -> Outcome {
    let mut signals = Signals::listen()?;
    let ready = parts.start().await?;
    on_ready(&ready)?;
    let shutdown = CancellationToken::new();
    until_stopped(ready.run(&shutdown), &shutdown, &mut signals).await?;
    Ok(())
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
    block_on_with(Builder::new_multi_thread(), command)
}

fn block_on_with(mut threads: Builder, command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = threads.enable_all().build().map_err(|source| Error::Runtime { source })?;
    let outcome = runtime.block_on(command);
    // Whoever was told twice to stop waits for nothing more: its threads end with the process.
    runtime.shutdown_background();
    outcome
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
            Some((journal, options)) => Some(start_store(journal, options).await?),
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
        let ready = Ready { store, labels, sharder, autoscaler, node, page: None };
        Ok(if self.has_page { ready.with_page() } else { ready })
    }
}

async fn start_store(journal: Journal, mut options: store::Options) -> Result<Service, Error> {
    let journal: Arc<dyn journal::Journal> = match journal {
        Journal::Folder(data_dir) => Arc::new(open_journal(&data_dir)?),
        Journal::Shared { url, is_unsafe_allowed } => {
            let journal = shared_journal::open(&url, is_unsafe_allowed)?;
            options.notices.extend(journal.allowed().iter().cloned());
            Arc::new(journal)
        }
    };
    let started = Service::start(options, journal, wall_clock).await;
    started.map_err(|source| Error::Start { source: source.into() })
}

// === impl Ready ===

impl Ready {
    pub(crate) fn store(&self) -> Option<&Service> {
        self.store.as_ref()
    }

    /// Where clients and browsers reach the store.
    pub(crate) fn endpoint(&self) -> Option<String> {
        self.store()?.addresses().find_map(|(_, address)| match address {
            Address::Tcp(address) => Some(format!("http://{address}")),
            Address::Unix(_) => None,
        })
    }

    /// The socket of the task node.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.node.iter().flat_map(StartedNode::addresses).find_map(|address| match address {
            Address::Unix(path) => Some(path.as_path()),
            Address::Tcp(_) => None,
        })
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

    /// A page has a place on the store's port alone.
    fn with_page(self) -> Self {
        let (Some(store), Some(node)) = (self.endpoint(), self.socket()) else { return self };
        let services = [
            ("labels", self.labels()),
            ("sharder", self.sharder()),
            ("autoscaler", self.autoscaler()),
        ];
        let health =
            |(name, address): (_, Option<_>)| Some(page::Health { name, address: address? });
        let parts = page::Parts {
            store,
            node: format!("unix://{}", node.display()),
            services: services.into_iter().filter_map(health).collect(),
        };
        let page = StatusPage::new(parts, timestamp);
        let store = self.store.map(|store| store.showing(page.pages()));
        Self { store, page: Some(page), ..self }
    }

    /// The end of one is the end of all. The store ends last: what the others have to say on their
    /// way out is kept.
    async fn run(self, shutdown: &CancellationToken) -> Result<(), Error> {
        let store_until = CancellationToken::new();
        let others = async {
            let (labels, sharder, autoscaler, node, ()) = tokio::join!(
                kube_services::run_labels(self.labels, shutdown),
                kube_services::run_sharder(self.sharder, shutdown),
                kube_services::run_autoscaler(self.autoscaler, shutdown),
                run_node(self.node, shutdown),
                run_page(self.page, shutdown)
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

async fn run_page(page: Option<StatusPage>, shutdown: &CancellationToken) {
    if let Some(page) = page {
        page.run(shutdown.clone()).await;
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The second signal ended the wait for a store's threads, and the end of the runtime waited for them
    /// again.
    #[test]
    fn whoever_does_not_wait_for_a_thread_does_not_wait() {
        let (release, held) = mpsc::sync_channel::<()>(1);
        let outcome = block_on(async move {
            drop(tokio::task::spawn_blocking(move || held.recv()));
            // It has begun once another one has its turn.
            tokio::task::spawn_blocking(|| ()).await.expect("it does not panic");
            Ok(())
        });
        assert!(outcome.is_ok());
        drop(release);
    }
}
