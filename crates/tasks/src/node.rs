//! A task node: follows the store, takes tasks, runs them, and answers questions about all of them.
//! The agent of the core decides; here its commands are carried out.
//!
//! [`Options`] → [`Service`] → [`Handle`] → [`StartError`], [`StopError`].

mod audience;
mod commands;
mod handle;
mod leftovers;
mod limits;
mod machine;
mod order;
mod owner;
mod runs;

use std::path::PathBuf;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use sandbox::Host;
use sandbox::host::Engine;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::Clock;
use crate::core::agent::{Agent, Event, Profile};
use crate::core::cache::KEPT_RECORD_BYTES_MAX;
use crate::core::id::{HostId, NodeId};
use crate::core::keys::KeyRange;
use crate::core::node::{Node, Permissions};
use crate::core::record::SCHEMA;
use crate::lifecycle::{KeeperThread, PartError, Work};
use crate::metrics::Metrics;
use crate::store::{ConnectError, Follower, Keeper, Reins, Store, Update};

pub use crate::options::Options;
use audience::Audience;
pub use audience::{Standing, TaskUpdate, UPDATES_MAX, Updates, UpdatesEnded};
use commands::Sender;
pub use handle::{Gone, Handle, View};
pub use machine::MachineError;
use order::Surroundings;
use owner::{Owner, Parts, Sources};
use runs::Runs;

/// Changes of the store that wait for the agent. More are left in the connection, and the store holds
/// them back.
const FOLLOWED_MAX: usize = 16;

/// A node whose leftovers are dealt with, and that nobody has heard of yet.
pub struct Service {
    owner: Owner,
    followers: [Follower; 2],
    followed: mpsc::Sender<Event>,
    keeper: KeeperThread,
    handle: Handle,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the store cannot be reached as it is described")]
    Connect(#[source] ConnectError),
    #[error("the data directory {} cannot be used", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: sandbox::host::Error,
    },
    #[error("what the machine has cannot be measured")]
    Machine(#[source] MachineError),
    #[error("the keep-alives cannot begin")]
    Keeper(#[source] PartError),
}

/// Why a node stopped without being asked.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("a part of the node failed")]
    Part(#[source] PartError),
}

// === impl Service ===

impl Service {
    /// Takes the data directory, kills what an earlier process left there and reads the results that
    /// it left. Needs no store yet: a node waits for one.
    pub async fn start(
        options: Options,
        wall: fn() -> Timestamp,
        registry: &mut Registry,
    ) -> Result<Self, StartError> {
        let clock = Clock::new(wall);
        let store = Store::connect(&options.store, clock).map_err(StartError::Connect)?;
        let metrics = Metrics::new(registry);
        let path = options.sandbox.data_dir.clone();
        let (host, left) = Host::open(options.sandbox.clone())
            .await
            .map_err(|source| StartError::Open { path: path.clone(), source })?;
        metrics.on_reaped(left.killed.len());
        let (leftovers, known) = leftovers::read(left);
        let profile = profile(&options, &host, clock).map_err(StartError::Machine)?;
        let (keeper, reins) = keeper(&options, clock, &host)?;

        let surroundings =
            Surroundings { node_name: options.name.clone(), rootfs: profile.node.rootfs.clone() };
        let runs = Runs::new(host.clone(), surroundings, clock, metrics.clone());
        let (audience, updates, standing) = Audience::new();
        let (ask, requests) = mpsc::channel(handle::REQUESTS_MAX);
        let (followed, changes) = mpsc::channel(FOLLOWED_MAX);
        let owner = Owner::new(Parts {
            agent: Agent::new(profile, leftovers),
            clock,
            sender: Sender::new(store.clone(), metrics.clone()),
            runs: runs.with_results(known),
            audience,
            metrics: metrics.clone(),
            sources: Sources { changes, requests, reins },
            data_dir: path,
        });
        let followers = [KeyRange::TASKS, KeyRange::NODES].map(|range| store.follow(range));
        let handle = Handle { store, host, metrics, requests: ask, updates, standing };
        Ok(Self { owner, followers, followed, keeper, handle })
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes and runs tasks until `shutdown`. Then stops what runs, each with its grace, records what
    /// came of it, and leaves.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        let Self { owner, followers, followed, mut keeper, handle } = self;
        drop(handle);
        let mut following = Work::new("follower");
        for follower in followers {
            following.spawn(pass_on(follower, followed.clone()));
        }
        let ended = tokio::select! {
            ended = owner.run(shutdown) => ended,
            ended = following.next() => Err(ended.err().unwrap_or(PartError::Ended("follower"))),
            ended = keeper.ended() => Err(ended),
        };
        // With its owner the keeper has lost who gives it orders.
        ended.and(keeper.join().await).map_err(StopError::Part)
    }
}

/// Brings to the agent what it is to know of the store. Ends when nobody listens.
async fn pass_on(mut follower: Follower, followed: mpsc::Sender<Event>) {
    let is_tasks = follower.range() == KeyRange::TASKS;
    loop {
        let event = match follower.next().await {
            Update::Listed(kvs, at) if is_tasks => Event::TasksListed(kvs, at),
            Update::Listed(kvs, at) => Event::NodesListed(kvs, at),
            Update::Changed(events) => Event::Changed(events),
        };
        if followed.send(event).await.is_err() {
            return;
        }
    }
}

fn keeper(
    options: &Options,
    clock: Clock,
    host: &Host,
) -> Result<(KeeperThread, Reins), StartError> {
    let host = host.clone();
    let set_deadline = Box::new(move |at| runs::set_deadline(&host, at));
    let (keeper, reins) = Keeper::new(options.store.clone(), options.timing, clock, set_deadline);
    Ok((KeeperThread::start(keeper).map_err(StartError::Keeper)?, reins))
}

/// The node as it will tell the others of itself.
fn profile(options: &Options, host: &Host, clock: Clock) -> Result<Profile, MachineError> {
    let sandbox = &options.sandbox;
    let (runtime, enforces_limits) = match &sandbox.engine {
        Engine::Shim { kind, .. } => (kind.as_str(), kind.enforces_limits()),
        Engine::Fake(_) => ("fake", true),
    };
    let capacity = match options.capacity {
        Some(given) => given,
        None => machine::totals(&sandbox.data_dir)?.capacity(),
    };
    let node = Node {
        id: NodeId(Uuid::nil()),
        host: HostId(host.host_id()),
        name: options.name.clone(),
        address: options.address.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema: SCHEMA,
        runtime: runtime.to_owned(),
        enforces_limits,
        capacity,
        reserved: Default::default(),
        reserved_at: clock.wall(),
        rootfs: sandbox.roots.keys().cloned().collect(),
        permissions: Permissions {
            net_host: sandbox.permissions.net_host,
            host_root: sandbox.permissions.host_root,
        },
        is_draining: false,
        hindrance: None,
    };
    let (timing, seed) = (options.timing, Uuid::new_v4());
    Ok(Profile { node, timing, seed, kept_record_bytes_max: KEPT_RECORD_BYTES_MAX })
}
