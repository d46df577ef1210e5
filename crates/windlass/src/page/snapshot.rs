//! What is known of everything at one moment. Only data.

use jiff::Timestamp;
use serde::Serialize;

use crate::commands::{nodes, task::describe};

/// All there is to show. What could not be learnt says why, so that one silent part hides no other.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Snapshot {
    pub(super) version: &'static str,
    pub(super) at: Timestamp,
    pub(super) store: Told<StoreFacts>,
    pub(super) tasks: Told<TaskFacts>,
    /// Those of Kubernetes, if there are any.
    pub(super) services: Vec<ServiceFacts>,
}

/// What a part said, or why it did not.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Told<T> {
    Known(T),
    Unknown(String),
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct StoreFacts {
    pub(super) endpoint: String,
    pub(super) revision: i64,
    pub(super) keys: i64,
    pub(super) bytes: i64,
    pub(super) bytes_in_use: i64,
    /// Alarms, and settings that somebody should know of.
    pub(super) errors: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct TaskFacts {
    pub(super) counts: Counts,
    pub(super) nodes: Vec<nodes::Described>,
    /// The oldest of them.
    pub(super) running: Vec<describe::Described>,
    /// Those submitted first.
    pub(super) queued: Vec<describe::Described>,
    /// The latest, newest first.
    pub(super) ended: Vec<describe::Described>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) queued: i64,
    pub(super) running: i64,
    pub(super) complete: i64,
    pub(super) canceled: i64,
    pub(super) failed: i64,
}

/// A service that answers probes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ServiceFacts {
    pub(super) name: &'static str,
    pub(super) address: String,
    /// Whether it is ready; else what it lacks.
    pub(super) ready: Told<()>,
}
