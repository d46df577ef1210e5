//! What the shared parts count. Names have no prefix: the registry passed in adds it.

use std::fmt::{self, Write};

use http::StatusCode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Requests to the API server, by what they asked and how they were answered. Clones count
/// together.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    ended: Family<RequestLabels, Counter>,
}

/// A request under way. Dropped unanswered, it is counted as such: its connection failed, it took
/// too long, or nobody waited for it any more.
pub(crate) struct Pending {
    requests: Requests,
    asked: Asked,
    code: Code,
}

/// What a request asks for. Its values are bounded: a service speaks of few kinds of objects, in few
/// namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
    /// Empty for what lies in none.
    pub(crate) namespace: String,
}

/// Events for users, by reason and by what became of them. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Events {
    ended: Family<EventLabels, Counter>,
}

/// What became of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventEnd {
    Posted,
    Failed,
    /// There were too many of them.
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    #[prometheus(flatten)]
    asked: Asked,
    code: Code,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Code {
    Status(StatusCode),
    /// There was no answer.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    reason: &'static str,
    result: EventEnd,
}

// === impl Requests ===

impl Requests {
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Self::default();
        let help = "Requests to the API server, by what they asked and the code of the answer";
        registry.register("api_requests", help, requests.ended.clone());
        requests
    }

    pub(crate) fn begin(&self, asked: Asked) -> Pending {
        Pending { requests: self.clone(), asked, code: Code::None }
    }
}

// === impl Pending ===

impl Pending {
    pub(crate) fn answered(mut self, status: StatusCode) {
        self.code = Code::Status(status);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let labels = RequestLabels { asked: self.asked.clone(), code: self.code };
        self.requests.ended.get_or_create(&labels).inc();
    }
}

// === impl Events ===

impl Events {
    pub fn register(registry: &mut Registry) -> Self {
        let events = Self::default();
        let help = "Events for users, by reason; those over the rate are dropped";
        registry.register("events", help, events.ended.clone());
        events
    }

    pub(crate) fn on_end(&self, reason: &'static str, result: EventEnd) {
        self.ended.get_or_create(&EventLabels { reason, result }).inc();
    }
}

// === impl Code ===

impl EncodeLabelValue for Code {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => encoder.write_str(status.as_str()),
            Self::None => encoder.write_str("none"),
        }
    }
}

// === impl EventEnd ===

impl EncodeLabelValue for EventEnd {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        encoder.write_str(match self {
            Self::Posted => "posted",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        })
    }
}
