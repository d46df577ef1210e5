//! One store: opened, served, stopped.

use std::{
    collections::VecDeque,
    sync::{Arc, mpsc as std_mpsc},
    time::SystemTime,
};

use arc_swap::ArcSwap;
use etcd_api::{
    etcdserverpb::{
        auth_server::AuthServer, cluster_server::ClusterServer, kv_server::KvServer,
        lease_server::LeaseServer, maintenance_server::MaintenanceServer,
        watch_server::WatchServer,
    },
    health::health_server::HealthServer,
    v3electionpb::election_server::ElectionServer,
    v3lockpb::lock_server::LockServer,
};
use journal::Journal;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Options,
    auth::{self, Gate},
    context::Context,
    housekeeping::{self, Housekeeping},
    http::{self, Content, Edge, GrpcServices, Traffic},
    lease::Deadlines,
    lifecycle::{self, Flow, StopError, Threads},
    load::{self, LoadError, Opened},
    metrics::{Metrics, ProcessMetrics, StateMetrics},
    options::Address,
    probes::StoreProbes,
    published::Published,
    quota::Quota,
    sequencer::{self, Audience, Channels, Committer, Effect, Sequencer, SnapshotPoint, Writer},
    services::{
        AuthService, ClusterService, Departures, ElectionService, HealthService, KvService,
        LeaseService, LockService, MaintenanceService, WatchService,
    },
    values::KeptValues,
    watch::{self, History, SessionContext},
};

/// A store whose state is read back and whose sockets are bound.
pub struct Service {
    context: Arc<Context>,
    edge: Edge,
    threads: Threads,
    registry: Registry,
}

/// Why a store did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the listeners could not be opened")]
    Bind {
        #[source]
        source: http::Error,
    },
    #[error("the journal could not be taken over")]
    Load {
        #[source]
        source: LoadError,
    },
    #[error("the keys for tokens could not be read")]
    Tokens {
        #[source]
        source: auth::KeyError,
    },
    #[error("the store's threads could not be started")]
    Threads {
        #[source]
        source: StopError,
    },
}

// === impl Service ===

impl Service {
    /// Binds the listeners, takes the writer's role and reads the journal back. Nothing is served
    /// before [`run`](Self::run).
    pub async fn start(
        options: Options,
        journal: Arc<dyn Journal>,
        clock: fn() -> SystemTime,
    ) -> Result<Self, StartError> {
        let edge = Edge::bind(&options).await.map_err(|source| StartError::Bind { source })?;
        let opened = load::open(&journal).map_err(|source| StartError::Load { source })?;
        let mut registry = Registry::default();
        let (context, flow) = assemble(options, journal, opened, clock, &mut registry)
            .map_err(|source| StartError::Tokens { source })?;
        let threads = Threads::start(flow).map_err(|source| StartError::Threads { source })?;
        Ok(Self { context, edge, threads, registry })
    }

    /// Where clients are served; a port given as 0 is the one the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = (Traffic, &Address)> {
        self.edge.local_addresses()
    }

    /// Serves until `shutdown`, then lets what was begun finish. An error means that the store could
    /// not go on: nothing that was answered is lost, but nothing more can be promised.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        let Self { context, edge, threads, registry } = self;
        let stop = context.stopping.clone();
        let failed = threads.failed();
        let content = content(&context, registry);
        let sequencer = context.sequencer.clone();
        let serving = lifecycle::serve(context, edge, content, stop.clone());
        let stopping = async {
            tokio::select! {
                () = failed.cancelled() => {}
                () = shutdown.cancelled() => {}
            }
            stop.cancel();
            std::future::pending().await
        };
        let served = tokio::select! {
            served = serving => served,
            never = stopping => never,
        };
        sequencer.stop().await;
        let joined = tokio::task::spawn_blocking(move || threads.join()).await;
        // The threads' failure is the cause, if there is one; the edge's would be its consequence.
        joined.unwrap_or(Err(StopError::Panicked { name: "join" })).and(served)
    }
}

/// Builds the channels between the threads and what the services share.
fn assemble(
    options: Options,
    journal: Arc<dyn Journal>,
    opened: Opened,
    clock: fn() -> SystemTime,
    registry: &mut Registry,
) -> Result<(Arc<Context>, Flow), auth::KeyError> {
    let Opened { state, identity, size, batch_number } = opened;
    let epoch = identity.term;
    let (commands, command_queue) = mpsc::channel(sequencer::COMMANDS_MAX);
    let (batches, batch_queue) = std_mpsc::sync_channel(1);
    let (durable, durable_signal) = std_mpsc::sync_channel(1);
    let (superseded, superseded_queue) = std_mpsc::sync_channel(housekeeping::SUPERSEDED_MAX);

    let kept = Arc::new(KeptValues::new(journal.clone(), options.cache_bytes));
    let published = Arc::new(Published::new(state.keyspace.view()));
    let (hub, feed, hub_thread) = watch::hub(published.revision(), kept.clone());
    let history =
        History { journal: journal.clone(), published: published.clone(), kept: kept.clone() };
    let metrics = Metrics::new(registry);
    let context = Arc::new(Context {
        identity,
        journal: journal.clone(),
        sequencer: Sequencer::new(commands.clone(), metrics.proposals.clone()),
        published: published.clone(),
        kept: kept.clone(),
        deadlines: Mutex::new(deadlines(&state.keyspace)),
        alarms: ArcSwap::from_pointee(state.alarms.clone()),
        gate: Gate::new(&options.auth_token, options.bcrypt_cost, Arc::new(state.auth.clone()))?,
        quota: Arc::new(Quota::new(options.limits.quota_bytes, size)),
        watch: Arc::new(SessionContext {
            hub,
            history,
            fragment_bytes: options.limits.request_bytes_max,
            progress_interval: options.watch_progress_interval,
            metrics: metrics.watches.clone(),
        }),
        departures: Departures::default(),
        metrics: metrics.clone(),
        options,
        stopping: CancellationToken::new(),
        clock,
    });
    let effects = context.clone();
    let audience = Audience {
        kept: kept.clone(),
        published: published.clone(),
        on_effect: Box::new(move |effect| on_effect(&effects, effect)),
        on_changes: Box::new(move |changes| feed.bring(changes)),
    };
    let channels =
        Channels { commands: command_queue, batches, durable: durable_signal, superseded };
    let flow = Flow {
        writer: Writer::new(state, epoch, batch_number, kept, channels),
        committer: Committer {
            journal: journal.clone(),
            epoch,
            batches: batch_queue,
            durable,
            commands: commands.clone(),
            audience,
            appends: metrics.appends,
        },
        hub: hub_thread,
        housekeeping: Housekeeping {
            journal,
            epoch,
            published,
            quota: context.quota.clone(),
            superseded: superseded_queue,
            commands,
            waiting: VecDeque::new(),
            is_medium_full: false,
        },
    };
    Ok((context, flow))
}

/// Every lease has its full time again.
fn deadlines(keyspace: &mvcc::Keyspace) -> Deadlines {
    let now = Instant::now();
    let mut deadlines = Deadlines::default();
    for (id, lease) in keyspace.leases().iter() {
        deadlines.grant(id, lease.ttl_s, now);
    }
    deadlines
}

fn on_effect(context: &Context, effect: Effect) {
    match effect {
        Effect::LeaseGranted { id, ttl_s } => {
            context.metrics.lease_granted();
            context.deadlines.lock().grant(id, ttl_s, Instant::now());
        }
        Effect::LeaseRevoked { id } => {
            context.metrics.lease_revoked();
            context.deadlines.lock().revoke(id);
        }
        Effect::Alarms(alarms) => context.alarms.store(Arc::new(alarms)),
        Effect::Auth(state) => context.gate.publish(state),
        Effect::Snapshot(reply) => {
            let meta = context.journal.meta().map_err(Error::Journal);
            let point = meta.map(|meta| SnapshotPoint { state: context.state(), meta });
            // Whoever asked may have gone away; that changes nothing.
            drop(reply.send(point));
        }
    }
}

fn content(context: &Arc<Context>, mut registry: Registry) -> Content {
    registry.register_collector(Box::new(StateMetrics { context: context.clone() }));
    registry.register_collector(Box::new(ProcessMetrics { started: (context.clock)() }));
    let bytes_max = context.options.limits.request_bytes_max + http::MESSAGE_OVERHEAD_BYTES;
    let services = GrpcServices::default()
        .counted_by(context.metrics.grpc.clone())
        .with(
            KvServer::new(KvService::new(context.clone()))
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(usize::MAX),
        )
        .with(
            WatchServer::new(WatchService::new(context.clone()))
                .max_decoding_message_size(bytes_max)
                .max_encoding_message_size(usize::MAX),
        )
        .with(LeaseServer::new(LeaseService::new(context.clone())))
        .with(MaintenanceServer::new(MaintenanceService::new(context.clone())))
        .with(
            AuthServer::new(AuthService::new(context.clone())).max_decoding_message_size(bytes_max),
        )
        .with(ClusterServer::new(ClusterService::new(context.clone())))
        .with(LockServer::new(LockService::new(context.clone())))
        .with(
            ElectionServer::new(ElectionService::new(context.clone()))
                .max_decoding_message_size(bytes_max),
        )
        .with(HealthServer::new(HealthService::new(context.clone())));
    Content {
        services,
        probes: Arc::new(StoreProbes { context: context.clone() }),
        registry: Arc::new(registry),
    }
}
