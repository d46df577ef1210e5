//! A machine with a task node on it: the real node, attempts that are simulated. The machine stays when
//! its daemon crashes, and so do its attempts.

use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use sandbox::fake::Machine;
use sandbox::host::Engine;
use sandbox::{AttemptId, Boottime, Kind};
use tasks::core::agent::Timing;
use tasks::core::amounts::Amounts;
use tasks::core::id::{NodeId, TaskId};
use tasks::core::record::Record;
use tasks::node::{Handle, Options, Service, Standing, StopError};
use tasks::wire;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::etcd;
use super::waiting::{PATIENCE, until};
use crate::scene;

/// The shortest that is allowed, so that tests wait little.
pub(crate) const TTL: Duration = Duration::from_secs(5);

pub(crate) struct Computer {
    store: SocketAddr,
    folder: TempDir,
    pub(crate) machine: Machine,
}

/// A node that runs, on threads of its own: dropping it ends them, wherever they are, as a crash would.
pub(crate) struct Daemon {
    handle: Handle,
    registry: Registry,
    shutdown: CancellationToken,
    running: JoinHandle<Result<(), StopError>>,
    threads: Option<Runtime>,
}

// === impl Computer ===

impl Computer {
    pub(crate) fn new(store: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { store, folder, machine: Machine::new(Boottime::now()) }
    }

    /// Starts a node and waits until it is registered.
    pub(crate) async fn start(&self) -> Daemon {
        let daemon = self.start_unregistered().await;
        daemon.registered().await;
        daemon
    }

    pub(crate) async fn start_unregistered(&self) -> Daemon {
        let threads = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let threads = threads.expect("threads");
        let options = self.options();
        let starting = threads.spawn(async {
            let mut registry = Registry::default();
            let service = Service::start(options, Timestamp::now, &mut registry).await;
            (service.expect("it starts"), registry)
        });
        let (service, registry) = starting.await.expect("it does not panic");
        let handle = service.handle();
        let shutdown = CancellationToken::new();
        let running = threads.spawn(service.run(shutdown.clone()));
        Daemon { handle, registry, shutdown, running, threads: Some(threads) }
    }

    /// Waits until so many attempts exist.
    pub(crate) async fn attempts(&self, number: usize) -> Vec<AttemptId> {
        until("attempts", async || {
            Some(self.machine.attempts()).filter(|attempts| attempts.len() == number)
        })
        .await
    }

    fn options(&self) -> Options {
        let data_dir = self.folder.path().to_owned();
        let mut sandbox = sandbox::Options::new(data_dir, Uuid::new_v4(), Kind::Process);
        sandbox.engine = Engine::Fake(self.machine.clone());
        Options {
            name: "node1".to_owned(),
            address: "127.0.0.1:8080".to_owned(),
            store: etcd::options(self.store),
            timing: Timing::new(TTL).expect("allowed"),
            capacity: Some(scene::node(1).capacity),
            sandbox,
        }
    }
}

// === impl Daemon ===

impl Daemon {
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for a registration; its id.
    pub(crate) async fn registered(&self) -> NodeId {
        let registered = |standing: &Standing| standing.node.is_some() && standing.is_informed;
        self.standing(registered).await.node.expect("it was waited for")
    }

    pub(crate) async fn standing(&self, is_wanted: fn(&Standing) -> bool) -> Standing {
        let standing = self.handle.until_standing(is_wanted);
        let seen = tokio::time::timeout(PATIENCE, standing).await;
        seen.expect("it stands so in time").expect("it runs")
    }

    /// Asks it to end and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        let ended = tokio::time::timeout(PATIENCE, &mut self.running).await.expect("it ends");
        ended.expect("it does not panic").expect("it ends well");
    }

    /// It is gone at once, without a word.
    pub(crate) async fn crash(mut self) {
        let threads = self.threads.take().expect("it runs");
        let ended = tokio::task::spawn_blocking(move || threads.shutdown_timeout(PATIENCE));
        ended.await.expect("they end");
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }

    /// Waits until a task has ended; what it is then.
    pub(crate) async fn ended(&self, id: TaskId) -> Record {
        self.until(id, "the end", |record| record.task.status.is_final()).await
    }

    pub(crate) async fn running(&self, id: TaskId) -> Record {
        self.until(id, "the start", |record| record.task.status.running().is_some()).await
    }

    pub(crate) async fn until(
        &self,
        id: TaskId,
        what: &str,
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Record {
        let store = self.handle.store();
        until(what, async || store.get(id).await.ok()?.filter(|record| is_wanted(record))).await
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.threads.take().map(Runtime::shutdown_background).unwrap_or_default();
    }
}

/// A command of the simulated machine: steps, as `sandbox::fake` has them.
pub(crate) fn steps(steps: &str) -> wire::TaskSpec {
    let mut steps = steps.split(' ').map(str::to_owned);
    let command = steps.next().expect("a step");
    wire::TaskSpec { command, args: steps.collect(), ..Default::default() }
}

/// The same, to be run again if its node is lost.
pub(crate) fn flagged(text: &str) -> wire::TaskSpec {
    wire::TaskSpec { restart_on_cluster_error: true, ..steps(text) }
}

/// What the whole of every computer is.
pub(crate) fn whole() -> Amounts {
    scene::node(1).capacity
}
