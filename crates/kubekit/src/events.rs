//! Telling users about their objects, through the API server's Events. They explain and never
//! carry state: one too many is dropped and counted, and nobody waits for any.

mod rate;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::rate::Rate;
use crate::failure::Failure;
use crate::lease::WallClock;
use crate::metrics::{self, EventEnd};

/// Events a second. A storm of nodes must not become a storm of Events.
const PER_SECOND_MAX: u32 = 10;
/// Events that wait to be posted: what a slow server leaves lying for half a minute.
const QUEUE_MAX: usize = 256;
/// How long posting one may take.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last ones may take once we are asked to stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest text the API server takes.
const NOTE_BYTES_MAX: usize = 1024;
/// Longest name the API server takes.
const NAME_BYTES_MAX: usize = 253;
/// Where Events on objects without a namespace are kept.
const NAMESPACE_OF_CLUSTER_OBJECTS: &str = "default";

#[derive(Clone, Debug)]
pub struct Options {
    /// Which controller reports: a qualified name such as `windlass.dev/labels`.
    pub controller: String,
    /// Which process of it.
    pub instance: String,
    pub clock: WallClock,
}

/// Something worth telling about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub regarding: ObjectReference,
    pub severity: Severity,
    /// Why, in one word: `LabelsRestored`. Also a label of metrics, so there are few.
    pub reason: &'static str,
    /// What was done or tried, in one word: `Restore`.
    pub action: &'static str,
    /// The same for people.
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Normal,
    Warning,
}

/// Takes Events from anywhere. Clones share one rate.
#[derive(Clone)]
pub struct Handle {
    queue: mpsc::Sender<Queued>,
    rate: Arc<Mutex<Rate>>,
    clock: WallClock,
    metrics: metrics::Events,
}

/// Posts Events, one after the other.
pub struct Service {
    client: Client,
    options: Options,
    queue: mpsc::Receiver<Queued>,
    metrics: metrics::Events,
    /// Whether the last one was refused.
    is_refused: bool,
}

struct Queued {
    event: Event,
    happened: jiff::Timestamp,
}

/// Two ends of one queue.
#[must_use]
pub fn new(client: Client, options: Options, metrics: metrics::Events) -> (Service, Handle) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let handle = Handle {
        queue: sender,
        rate: Arc::new(Mutex::new(Rate::new(PER_SECOND_MAX))),
        clock: options.clock,
        metrics: metrics.clone(),
    };
    (Service { client, options, queue: receiver, metrics, is_refused: false }, handle)
}

// === impl Handle ===

impl Handle {
    /// Hands an Event over, or drops it where there are too many.
    pub fn publish(&self, event: Event) {
        let reason = event.reason;
        let is_allowed = self.rate.lock().allows(Instant::now().into_std());
        let queued = Queued { event, happened: (self.clock)() };
        if !is_allowed || self.queue.try_send(queued).is_err() {
            self.metrics.on_end(reason, EventEnd::Dropped);
        }
    }
}

// === impl Service ===

impl Service {
    /// Posts until `shutdown`, and then what is left if that is quick.
    pub async fn run(mut self, shutdown: CancellationToken) {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                queued = self.queue.recv() => match queued {
                    Some(queued) => self.post(queued).await,
                    // Whoever published has ended; being told so is somebody else's to decide.
                    None => return shutdown.cancelled().await,
                },
            }
        }
        self.queue.close();
        let rest = async {
            while let Some(queued) = self.queue.recv().await {
                self.post(queued).await;
            }
        };
        if tokio::time::timeout(DRAIN_TIMEOUT, rest).await.is_err() {
            tracing::debug!("stopped before the last Events were posted");
        }
    }

    /// Failures are counted. Of refusals in a row the first is logged: they come in crowds.
    async fn post(&mut self, queued: Queued) {
        let reason = queued.event.reason;
        let object = self.options.object(queued);
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let events: Api<Object> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams::default();
        let posted = tokio::time::timeout(POST_TIMEOUT, events.create(&params, &object)).await;
        match posted {
            Ok(Ok(_)) => {
                self.is_refused = false;
                self.metrics.on_end(reason, EventEnd::Posted);
            }
            Ok(Err(error)) => {
                self.on_refused(reason, error.into());
                self.metrics.on_end(reason, EventEnd::Failed);
            }
            Err(_elapsed) => self.metrics.on_end(reason, EventEnd::Failed),
        }
    }

    fn on_refused(&mut self, reason: &'static str, failure: Failure) {
        let is_first = !std::mem::replace(&mut self.is_refused, true);
        let error = &failure as &dyn std::error::Error;
        if is_first {
            tracing::warn!(reason, error, "an Event was refused; further ones are only counted");
        } else {
            tracing::debug!(reason, error, "an Event was refused");
        }
    }
}

// === impl Options ===

impl Options {
    fn object(&self, queued: Queued) -> Object {
        let Queued { event, happened } = queued;
        let Event { regarding, severity, reason, action, note } = event;
        let namespace = regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
        let about = regarding.name.clone().unwrap_or_default();
        Object {
            metadata: ObjectMeta {
                // The server appends what makes it unique.
                generate_name: Some(format!("{}-", shortened(about, NAME_BYTES_MAX - 1))),
                namespace: namespace.or_else(|| Some(NAMESPACE_OF_CLUSTER_OBJECTS.to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(action.to_owned()),
            event_time: Some(MicroTime(happened)),
            note: Some(shortened(note, NOTE_BYTES_MAX)),
            reason: Some(reason.to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(severity.as_str().to_owned()),
            ..Object::default()
        }
    }
}

/// At most what the server takes, cut between characters.
fn shortened(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

// === impl Severity ===

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[cfg(test)]
mod tests;
