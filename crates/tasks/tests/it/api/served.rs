//! A node whose API is served, on threads of the test.

use std::path::PathBuf;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use sandbox::Boottime;
use sandbox::Kind;
use sandbox::fake::Machine;
use sandbox::host::Engine;
use store::{Address, Listener};
use tasks::Clock;
use tasks::client::{self, Client};
use tasks::core::agent::Timing;
use tasks::core::id::TaskId;
use tasks::node::{self, Handle};
use tasks::service::edge::Edge;
use tasks::service::refusal::{Kind as Refused, Refusal};
use tasks::service::{self, Bounds};
use tasks::store::Tls;
use tasks::wire::tasks_client::TasksClient;
use tasks::wire::{self, TaskView, status::Status};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use uuid::Uuid;

use crate::live::computer::whole;
use crate::live::etcd::{self, Etcd};
use crate::live::waiting::PATIENCE;

/// In the year 2096: whatever ended has ended before.
pub(crate) const FAR_AHEAD_MS: i64 = 4_000_000_000_000;

/// What a node is made of, where it is not as all others.
pub(crate) struct Plan {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    /// A root file system that it offers.
    pub(crate) rootfs: Option<&'static str>,
    /// The listener's side and the node's own.
    pub(crate) tls: Option<(store::Tls, Tls)>,
    /// A socket beside its port.
    pub(crate) socket: Option<PathBuf>,
}

/// A running node and its API. Dropping it ends both.
pub(crate) struct Served {
    pub(crate) address: String,
    pub(crate) handle: Handle,
    shutdown: CancellationToken,
    running: JoinSet<()>,
    _folder: TempDir,
}

// === impl Plan ===

impl Default for Plan {
    fn default() -> Self {
        let bounds = Bounds::default();
        Self { name: "node1", bounds, rootfs: None, tls: None, socket: None }
    }
}

impl Plan {
    fn listeners(&self) -> Vec<Listener> {
        let tls = self.tls.as_ref().map(|(tls, _)| tls.clone());
        let port = Address::Tcp("127.0.0.1:0".parse().expect("an address"));
        let socket = self.socket.clone().map(Address::Unix);
        let socket = socket.map(|address| Listener { address, tls: None });
        [Listener { address: port, tls }].into_iter().chain(socket).collect()
    }

    fn options(&self, etcd: &Etcd, folder: &TempDir, address: String) -> node::Options {
        let data_dir = folder.path().to_owned();
        let mut sandbox = sandbox::Options::new(data_dir, Uuid::new_v4(), Kind::Process);
        sandbox.engine = Engine::Fake(Machine::new(Boottime::now()));
        sandbox.roots.extend(self.rootfs.map(|name| (name.to_owned(), folder.path().to_owned())));
        node::Options {
            name: self.name.to_owned(),
            address,
            store: etcd::options(etcd.address()),
            timing: Timing::default(),
            capacity: Some(whole()),
            sandbox,
        }
    }
}

// === impl Served ===

impl Served {
    pub(crate) async fn start(etcd: &Etcd) -> Self {
        Self::start_as(etcd, Plan::default()).await
    }

    pub(crate) async fn start_as(etcd: &Etcd, plan: Plan) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let edge = Edge::bind(&plan.listeners()).await.expect("ports are free");
        let address = edge.addresses().find_map(|address| match address {
            Address::Tcp(address) => Some(address.to_string()),
            Address::Unix(_) => None,
        });
        let address = address.expect("there is a port");
        let mut registry = Registry::default();
        let options = plan.options(etcd, &folder, address.clone());
        let node = node::Service::start(options, Timestamp::now, &mut registry).await;
        let node = node.expect("it starts");
        let handle = node.handle();
        let identity = plan.tls.map(|(_, identity)| identity);
        let options = service::Options { bounds: plan.bounds, identity };
        let service = service::Service::new(handle.clone(), options);
        let shutdown = CancellationToken::new();
        let mut running = JoinSet::new();
        let (stop, clock) = (shutdown.clone(), Clock::new(Timestamp::now));
        running.spawn(async move { node.run(stop).await.expect("the node ends well") });
        let stop = shutdown.clone();
        running.spawn(async move {
            edge.run(service, registry, clock, stop).await.expect("the API ends well");
        });
        let served = Self { address, handle, shutdown, running, _folder: folder };
        served.registered().await;
        served
    }

    async fn registered(&self) {
        let standing =
            self.handle.until_standing(|standing| standing.node.is_some() && standing.is_informed);
        let seen = tokio::time::timeout(PATIENCE, standing).await;
        seen.expect("it registers in time").expect("it runs");
    }

    pub(crate) async fn client(&self) -> Client {
        let options = client::Options { address: self.address.clone(), tls: None };
        Client::connect(&options).await.expect("it listens")
    }

    /// For requests that the client does not make.
    pub(crate) async fn stub(&self) -> TasksClient<Channel> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address));
        TasksClient::new(endpoint.expect("an address").connect().await.expect("it listens"))
    }

    /// Ends it and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended.expect("it ends well");
        }
    }
}

/// A task that no node can take as things are.
pub(crate) fn stuck() -> wire::TaskSpec {
    wire::TaskSpec { rootfs: "nowhere".to_owned(), ..crate::live::computer::steps("exit 0") }
}

pub(crate) fn id_of(submitted: &wire::SubmitResponse) -> TaskId {
    submitted.id.parse().expect("nodes give out ids")
}

pub(crate) fn status_of(view: &TaskView) -> &Status {
    let status = view.task.as_ref().and_then(|task| task.status.as_ref());
    status.and_then(|status| status.status.as_ref()).expect("every task has a status")
}

/// How a call was refused.
#[track_caller]
pub(crate) fn refusal<T: std::fmt::Debug>(outcome: Result<T, client::Error>) -> Refusal {
    match outcome {
        Err(client::Error::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(
    outcome: Result<T, client::Error>,
    kind: Refused,
    words: &str,
) {
    let refusal = refusal(outcome);
    assert_eq!(refusal.kind, kind, "{refusal}");
    assert!(refusal.message.contains(words), "{refusal}");
}
