//! One process of the sharder: it stands for election, runs every ring while it leads, and tells about
//! both.

use std::net::SocketAddr;
use std::sync::Arc;

use kubekit::client::{self, Cluster};
use kubekit::election;
use kubekit::events;
use kubekit::health::{self, Health};
use kubekit::lease::WallClock;
use kubekit::lease::core::{InvalidTimings, Timings};
use kubekit::metrics::{Events as EventMetrics, Requests};
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::feed::Watches;
use super::lifecycle::{self, Parts, StopError};
use super::metrics::{Metrics, PREFIX};
use super::options::{self, Options};
use super::{Context, LEASE_WORKERS, UPKEEP_WORKERS};
use crate::kubernetes::Rings;
use crate::manifests::NAME;

/// What Events say about where they come from.
const CONTROLLER: &str = "windlass.dev/sharder";

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
    #[error("the times of the election contradict themselves")]
    Timings(#[source] InvalidTimings),
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
        let client = cluster.client().map_err(StartError::Client)?;
        let lease_client = cluster.lease_client().map_err(StartError::Client)?;
        let event_options = events::Options {
            controller: CONTROLLER.to_owned(),
            instance: options.identity.clone(),
            clock,
        };
        let event_metrics = EventMetrics::register(&mut registry);
        let (event_service, events) = events::new(client.clone(), event_options, event_metrics);
        let election = election::new(lease_client.clone(), election_options(&options, clock));
        let context = Arc::new(Context {
            rings: Rings::new(client.clone()),
            client,
            lease_client,
            home: options.namespace.clone(),
            metrics: Metrics::new(&mut registry),
            events,
            watches: Watches::new(health.ready("watches")),
            clock,
            upkeep_workers: Semaphore::new(UPKEEP_WORKERS),
            lease_workers: Semaphore::new(LEASE_WORKERS),
        });
        let live = health.live("rings");
        let listen = health::Options { listen: options.listen };
        let health = health::Service::bind(&listen, health, Arc::new(registry)).await;
        let health = health.map_err(StartError::Health)?;
        let address = health.address();
        let election = election.map_err(StartError::Timings)?;
        Ok(Self {
            parts: Parts { health, events: event_service, election, live, context },
            address,
        })
    }

    /// Where health and metrics are served; a port given as 0 is the one the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Works until `shutdown`: then nothing new is begun, what is under way ends, and the lead is
    /// given back.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        lifecycle::run(self.parts, &shutdown).await
    }
}

fn election_options(options: &Options, clock: WallClock) -> election::Options {
    election::Options {
        namespace: options.namespace.clone(),
        lease: NAME.to_owned(),
        holder: options.identity.clone(),
        labels: [("app.kubernetes.io/name".to_owned(), NAME.to_owned())].into(),
        timings: Timings::LEADER,
        clock,
    }
}
