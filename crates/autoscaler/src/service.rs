//! One process of the autoscaler: it stands for election, runs the loop while it leads, and tells
//! about both.

use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;
use kubekit::client::{self, Cluster};
use kubekit::health::{self, Answers, Health, Page};
use kubekit::lease::WallClock;
use kubekit::lease::core::InvalidTimings;
use kubekit::metrics::{Events as EventMetrics, Requests};
use kubekit::{election, events};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::kubernetes::Kubernetes;
use crate::lifecycle::{self, Parts, StopError};
use crate::metrics::Metrics;
use crate::options::{self, Mode, Options};
use crate::provider::{Provider, Reader};
use crate::record::Recorder;
use crate::view::Shown;
use crate::world::Preferences;

/// What Events say about where they come from: upstream's name, for those who look for it.
const CONTROLLER: &str = "cluster-autoscaler";

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Where `status` and `explain` ask.
pub const STATUS_PATH: &str = "/status";
pub const EXPLAIN_PATH: &str = "/explain/";

/// Where upstream's probes ask.
const HEALTH_CHECK_PATH: &str = "/health-check";

/// A process that has its socket and its credentials, and has not begun.
pub struct Service<P> {
    parts: Parts<P>,
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

/// What the loop is given beside its options.
pub struct Surroundings<P> {
    pub provider: P,
    pub connection: client::Options,
    pub clock: WallClock,
    /// Where iterations are recorded, if they are.
    pub recorder: Option<Recorder>,
}

// === impl Service ===

impl<P: Provider + 'static> Service<P> {
    /// Reads the credentials and binds the listener. Talks to nobody before [`run`](Self::run).
    pub async fn start(
        options: Options,
        surroundings: Surroundings<P>,
    ) -> Result<Self, StartError> {
        let Surroundings { provider, connection, clock, recorder } = surroundings;
        options.validate().map_err(StartError::Options)?;
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let ours = registry.sub_registry_with_prefix("windlass_autoscaler");
        let (requests, event_metrics) = (Requests::register(ours), EventMetrics::register(ours));
        let connection = client::Options { inflight_max: options.max_inflight, ..connection };
        let cluster = Cluster::open(connection, requests).await.map_err(StartError::Client)?;
        let client = cluster.client().map_err(StartError::Client)?;
        let event_options = events::Options {
            controller: CONTROLLER.to_owned(),
            instance: options.identity.clone(),
            clock,
        };
        let (event_service, events) = events::new(client.clone(), event_options, event_metrics);
        let election = match options.mode == Mode::Act && options.is_elected {
            true => {
                let client = cluster.lease_client().map_err(StartError::Client)?;
                let election = election::new(client, election_options(&options, clock));
                Some(election.map_err(StartError::Timings)?)
            }
            false => None,
        };
        let health = Health::default();
        let kubernetes = Kubernetes::new(client, &options, events, health.ready("watches"));
        let shown = Shown::default();
        let answers = answers(shown.clone(), options.identity.clone());
        let listen = health::Options { listen: options.listen };
        let (active, succeeding) = (health.live("activity"), health.live("success"));
        let health = health::Service::bind(&listen, health, Arc::new(registry)).await;
        let health = health.map_err(StartError::Health)?;
        let health = health.answering(answers).also_live_at(HEALTH_CHECK_PATH);
        let address = health.address();
        let (election, standing) = election.unzip();
        let asked: Option<election::Handle> = standing.clone();
        let driver = Driver {
            preferences: Preferences::new(options.expander.clone()),
            options: Arc::new(options),
            reader: Reader::new(provider),
            wakes: kubernetes.wakes(),
            cluster: Arc::new(kubernetes),
            clock: Arc::new(clock),
            leads: Arc::new(move || asked.as_ref().is_none_or(election::Handle::is_leading)),
            standing,
            metrics,
            shown,
            recorder,
            active,
            succeeding,
        };
        Ok(Self { parts: Parts { health, events: event_service, election, driver }, address })
    }

    /// Where health, metrics and answers are served; a port given as 0 is the one the system chose.
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
        lease: options.lease.clone(),
        holder: options.identity.clone(),
        labels: [("app.kubernetes.io/name".to_owned(), CONTROLLER.to_owned())].into(),
        timings: options.lease_timings,
        clock,
    }
}

fn answers(shown: Shown, identity: String) -> Answers {
    Arc::new(move |path, _query| {
        if path == STATUS_PATH {
            let text = shown.status(&identity);
            return Some(Page { status: StatusCode::OK, content_type: JSON, text });
        }
        let name = path.strip_prefix(EXPLAIN_PATH)?;
        let (status, text) = match shown.explain(&decoded(name)) {
            Some(text) => (StatusCode::OK, text),
            None => (StatusCode::NOT_FOUND, format!("nothing is known of {}", decoded(name))),
        };
        Some(Page { status, content_type: TEXT, text: text + "\n" })
    })
}

/// A path without its `%` escapes; what is none stays as it is.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| behind.get(..2)).flatten();
        let digits = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_a_path_are_read() {
        assert_eq!(decoded("sim:%2F%2Fpool-a%2F7"), "sim://pool-a/7");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz/%2"), "%zz/%2");
    }
}
