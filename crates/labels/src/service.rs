//! One process of the service: a watcher, a processor, or both, with what tells about them.

use std::{net::SocketAddr, sync::Arc};

use kubekit::{
    client::{self, Cluster},
    events,
    health::{self, Health},
    lease::{WallClock, core::InvalidTimings},
    metrics::{Events as EventMetrics, Requests},
    presence,
};
use prometheus_client::registry::Registry;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    access::Access,
    kubernetes::Objects,
    lifecycle::{self, Parts, StopError},
    metrics::{Metrics, PREFIX},
    options::{self, Options},
    processor::Processor,
    surroundings::Surroundings,
    watcher::Watcher,
};

/// What Events say about where they come from.
const CONTROLLER: &str = "windlass.dev/labels";

/// A process that has its socket and its credentials, and has not begun.
pub struct Service {
    parts: Parts,
    address: SocketAddr,
}

/// Why a process did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the options contradict themselves")]
    Options(#[source] options::Error),
    #[error("no way to a cluster")]
    Client(#[source] client::Error),
    #[error("the times of a Lease contradict themselves")]
    Timings(#[source] InvalidTimings),
    #[error("the times of watchers' signs of life contradict themselves")]
    Presence(#[source] presence::InvalidOptions),
    #[error("health and metrics cannot be served")]
    Health(#[source] health::Error),
}

// === impl Service ===

impl Service {
    /// Reads the credentials and binds the listener. Talks to nobody before [`run`](Self::run).
    pub async fn start(
        options: Options,
        connection: client::Options,
        clock: WallClock,
    ) -> Result<Self, StartError> {
        options.validate().map_err(StartError::Options)?;
        let mut registry = Registry::with_prefix(PREFIX);
        let requests = Requests::register(&mut registry);
        let connection = client::Options { inflight_max: options.max_inflight, ..connection };
        let cluster = Cluster::open(connection, requests).await.map_err(StartError::Client)?;
        let health = Health::default();
        let assembly = Assembly { options: &options, health: &health, clock };
        let Assembled { events, access, watcher, processor } =
            assembly.build(&cluster, &mut registry)?;
        let listen = health::Options { listen: options.listen };
        let health = health::Service::bind(&listen, health, Arc::new(registry)).await;
        let health = health.map_err(StartError::Health)?;
        let address = health.address();
        Ok(Self { parts: Parts { health, events, access, watcher, processor }, address })
    }

    /// Where health and metrics are served; a port given as 0 is the one the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Works until `shutdown`: then nothing new is taken, what was begun is finished, and locks are
    /// released.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        lifecycle::run(self.parts, &shutdown).await
    }
}

/// What all parts are made from.
struct Assembly<'a> {
    options: &'a Options,
    health: &'a Health,
    clock: WallClock,
}

/// What was made.
struct Assembled {
    events: events::Service,
    access: Access,
    watcher: Option<Watcher>,
    processor: Option<Processor>,
}

// === impl Assembly ===

impl Assembly<'_> {
    fn build(&self, cluster: &Cluster, registry: &mut Registry) -> Result<Assembled, StartError> {
        let Self { options, health, clock } = *self;
        let client = cluster.client().map_err(StartError::Client)?;
        let lease_client = cluster.lease_client().map_err(StartError::Client)?;
        let metrics = Metrics::new(registry);
        let event_options = events::Options {
            controller: CONTROLLER.to_owned(),
            instance: options.identity.clone(),
            clock,
        };
        let event_metrics = EventMetrics::register(registry);
        let (event_service, events) = events::new(client.clone(), event_options, event_metrics);
        let access_in_doubt = Arc::new(Notify::new());
        let check = health.ready("access");
        let access = Access::new(client.clone(), options, check, access_in_doubt.clone());
        let surroundings = Surroundings {
            objects: Objects::new(&client, &options.namespaces),
            lease_client,
            metrics,
            events,
            health: health.clone(),
            access_in_doubt,
            clock,
        };
        let watcher = options.role.watches().then(|| Watcher::new(options, surroundings.clone()));
        let watcher = watcher.transpose().map_err(StartError::Presence)?;
        let processor =
            options.role.processes().then(|| Processor::new(options, surroundings, registry));
        let processor = processor.transpose().map_err(StartError::Timings)?;
        Ok(Assembled { events: event_service, access, watcher, processor })
    }
}
