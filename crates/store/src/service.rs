//! One store: opened, served, stopped.

use std::{
    sync::{Arc, mpsc as std_mpsc},
    time::SystemTime,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
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
use journal::{Epoch, Journal, Member, Size};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Options,
    alarm::Alarms,
    auth::{self, Gate},
    context::{Context, Identity},
    http::{self, Content, Edge, FrontPages, GrpcServices, Traffic},
    lease::Deadlines,
    lifecycle::{self, Serving, StopError, Threads, Work},
    load::{self, LoadError, Opened},
    metrics::{Metrics, ProcessMetrics, StateMetrics},
    options::Address,
    probes::StoreProbes,
    published::Published,
    quota::Quota,
    replica::{
        self, Beats, Confirm, Hearing, Mirror, PeerTlsError, Relay, Replica, Sizes, Standing,
        Tidings,
    },
    sequencer::Sequencer,
    services::{
        AuthService, ClusterService, Departures, ElectionService, HealthService, KvService,
        LeaseService, LockService, MaintenanceService, WatchService,
    },
    values::KeptValues,
    watch::{self, Feed, History, HubThread, SessionContext},
    writing::Desk,
};

/// A store whose state is read back and whose sockets are bound.
pub struct Service {
    context: Arc<Context>,
    edge: Edge,
    threads: Threads,
    registry: Registry,
    /// Absent where nobody else could write.
    relay: Option<Arc<Relay>>,
    front: Option<FrontPages>,
}

/// Why a store did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the listeners could not be opened")]
    Bind {
        #[source]
        source: Box<http::Error>,
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
    #[error("the certificates for other members could not be used")]
    PeerTls {
        #[source]
        source: PeerTlsError,
    },
    #[error("the store's threads could not be started")]
    Threads {
        #[source]
        source: StopError,
    },
}

/// What a member shows before it has done anything.
struct Shown {
    identity: Identity,
    standing: Standing,
    confirm: Confirm,
    view: mvcc::View,
    deadlines: Deadlines,
    alarms: Alarms,
    auth: auth::State,
    /// What members sign tokens with, where there are others.
    token_secret: Option<Bytes>,
    size: Size,
}

/// The parts that every member is made of.
struct Assembled {
    context: Arc<Context>,
    feed: Arc<Feed>,
    hub: HubThread,
    registry: Registry,
}

// === impl Service ===

impl Service {
    /// Binds the listeners and reads the journal back. The only member also takes the writer's role;
    /// one among others tries to once it runs. Nothing is served before [`run`](Self::run).
    pub async fn start(
        options: Options,
        journal: Arc<dyn Journal>,
        clock: fn() -> SystemTime,
    ) -> Result<Self, StartError> {
        let edge = Edge::bind(&options)
            .await
            .map_err(|source| StartError::Bind { source: Box::new(source) })?;
        if journal.shared().is_some() {
            return Self::start_among_others(options, journal, clock, edge);
        }
        let opened = load::open(&journal).map_err(|source| StartError::Load { source })?;
        let Opened { state, identity, epoch, size, batch_number } = opened;
        let shown = Shown {
            identity,
            standing: Standing::alone(identity.member_id, epoch),
            confirm: Confirm::Alone,
            view: state.keyspace.view(),
            deadlines: Deadlines::of(&state.keyspace, Instant::now()),
            alarms: state.alarms.clone(),
            auth: state.auth.clone(),
            token_secret: None,
            size,
        };
        let Assembled { context, feed, hub, registry } =
            assemble(options, journal, shown, clock)
                .map_err(|source| StartError::Tokens { source })?;
        let desk = Desk { context: context.clone(), feed };
        let (commands, flow) = desk.open(state, epoch, batch_number, Vec::new());
        context.sequencer.seat(commands);
        let threads = Threads::start(hub, Work::Alone(Box::new(flow)))
            .map_err(|source| StartError::Threads { source })?;
        Ok(Self { context, edge, threads, registry, relay: None, front: None })
    }

    fn start_among_others(
        options: Options,
        journal: Arc<dyn Journal>,
        clock: fn() -> SystemTime,
        edge: Edge,
    ) -> Result<Self, StartError> {
        let (confirm, questions) = Confirm::channel();
        let Confirm::Ask(asking) = confirm.clone() else { unreachable!("a channel is asked") };
        let (identity, token_secret, mirror, size) =
            join(&*journal).map_err(|source| StartError::Load { source })?;
        let own = own_member(&options, identity);
        let shown = Shown {
            identity,
            standing: Standing::among_others(&own),
            confirm,
            view: mirror.view(),
            deadlines: Deadlines::default(),
            alarms: Alarms::default(),
            auth: auth::State::default(),
            token_secret: Some(token_secret),
            size,
        };
        let Assembled { context, feed, hub, registry } =
            assemble(options, journal.clone(), shown, clock)
                .map_err(|source| StartError::Tokens { source })?;
        mirror.show(&context);
        let relay = Relay::new(context.clone());
        let relay = Some(Arc::new(relay.map_err(|source| StartError::PeerTls { source })?));
        let (beating, asked) = std_mpsc::sync_channel(1);
        let standing = context.standing.clone();
        let (sizing, ended) = std_mpsc::sync_channel(1);
        let sizes = Sizes { journal: journal.clone(), quota: context.quota.clone(), ended };
        let beats = Beats { journal, standing, own, questions: asking, asked, sizes: sizing };
        let parts = replica::Parts { context: context.clone(), feed, questions, beats: beating };
        let work = Work::Shared(Box::new((Replica::new(parts, mirror), beats, sizes)));
        let threads = Threads::start(hub, work).map_err(|source| StartError::Threads { source })?;
        Ok(Self { context, edge, threads, registry, relay, front: None })
    }

    /// Where clients are served; a port given as 0 is the one the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = (Traffic, &Address)> {
        self.edge.local_addresses()
    }

    /// The same, with pages for people on the clients' port.
    #[must_use]
    pub fn showing(self, front: FrontPages) -> Self {
        Self { front: Some(front), ..self }
    }

    /// Serves until `shutdown`, then lets what was begun finish. An error means that the store could
    /// not go on: nothing that was answered is lost, but nothing more can be promised.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        let Self { context, edge, threads, registry, relay, front } = self;
        let stop = context.stopping.clone();
        let failed = threads.failed();
        let hearing = relay.clone().map(|relay| Hearing::new(context.clone(), relay));
        let content = Content { front, ..content(&context, registry, relay) };
        let (sequencer, confirm) = (context.sequencer.clone(), context.confirm.clone());
        let serving = Serving { edge, content, hearing };
        let serving = lifecycle::serve(context, serving, stop.clone());
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
        if matches!(confirm, Confirm::Alone) {
            sequencer.stop().await;
        }
        let end = move || {
            confirm.stop();
            threads.join()
        };
        let joined = tokio::task::spawn_blocking(end).await;
        // The threads' failure is the cause, if there is one; the edge's would be its consequence.
        joined.unwrap_or(Err(StopError::Panicked { name: "join" })).and(served)
    }
}

/// Everything that is in a shared journal, and who this member is to those who use it too.
fn join(journal: &dyn Journal) -> Result<(Identity, Bytes, Mirror, Size), LoadError> {
    let (identity, token_secret) = load::join(journal)?;
    let shared = journal.shared().expect("only those who share it join");
    let mirror = Mirror::load(journal, shared)?;
    let size = journal.size().map_err(|source| LoadError::Read { source })?;
    Ok((identity, token_secret, mirror, size))
}

fn own_member(options: &Options, identity: Identity) -> Member {
    Member {
        id: identity.member_id,
        name: options.name.clone(),
        peer_urls: options.advertise_peer_urls.clone(),
        client_urls: options.advertise_client_urls.clone(),
        epoch: Epoch(0),
        beat: 0,
    }
}

/// Builds what the services share.
fn assemble(
    options: Options,
    journal: Arc<dyn Journal>,
    shown: Shown,
    clock: fn() -> SystemTime,
) -> Result<Assembled, auth::KeyError> {
    let mut registry = Registry::default();
    let kept = Arc::new(KeptValues::new(journal.clone(), options.cache_bytes));
    let published = Arc::new(Published::new(shown.view));
    let (hub, feed, hub_thread) = watch::hub(published.revision(), kept.clone());
    let history =
        History { journal: journal.clone(), published: published.clone(), kept: kept.clone() };
    let metrics = Metrics::new(&mut registry);
    let is_alone = shown.standing.is_alone();
    if !is_alone {
        metrics.register_shared(&mut registry);
    }
    let context = Arc::new(Context {
        identity: shown.identity,
        standing: Arc::new(shown.standing),
        confirm: shown.confirm,
        journal,
        sequencer: Sequencer::new(is_alone, metrics.proposals.clone()),
        published,
        kept,
        deadlines: Mutex::new(shown.deadlines),
        alarms: ArcSwap::from_pointee(shown.alarms),
        gate: Gate::new(&options.auth_token, options.bcrypt_cost, Arc::new(shown.auth))?
            .sharing(shown.token_secret.as_deref()),
        quota: Arc::new(Quota::new(options.limits.quota_bytes, shown.size)),
        watch: Arc::new(SessionContext {
            hub,
            history,
            fragment_bytes: options.limits.request_bytes_max,
            progress_interval: options.watch_progress_interval,
            metrics: metrics.watches.clone(),
        }),
        departures: Departures::default(),
        metrics,
        options,
        stopping: CancellationToken::new(),
        clock,
    });
    Ok(Assembled { context, feed: Arc::new(feed), hub: hub_thread, registry })
}

fn content(context: &Arc<Context>, mut registry: Registry, relay: Option<Arc<Relay>>) -> Content {
    registry.register_collector(Box::new(StateMetrics { context: context.clone() }));
    registry.register_collector(Box::new(ProcessMetrics { started: (context.clock)() }));
    let bytes_max = context.options.limits.message_bytes_max();
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
        .with(MaintenanceServer::new(MaintenanceService::new(context.clone(), relay.clone())))
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
    let peers = services.clone().with(Tidings::new(context.clone()));
    Content {
        services: relay.map_or(services.clone(), |relay| services.relayed_by(relay)),
        peers,
        probes: Arc::new(StoreProbes { context: context.clone() }),
        registry: Arc::new(registry),
        front: None,
    }
}
