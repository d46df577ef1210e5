//! What of a task matters for choosing and listing.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Place;
use crate::core::id::{AttemptNumber, HostId, NodeId, Revision, TaskId};
use crate::core::keys::End;
use crate::core::node::Requirements;
use crate::core::record::Record;
use crate::core::spec::{Spec, SpecError};
use crate::core::status::Status;
use crate::core::time::Epoch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub id: TaskId,
    pub modified: Revision,
    pub created: Revision,
    pub phase: Phase,
    pub requirements: Requirements,
    pub failed_hosts: Vec<HostId>,
    pub priority: i32,
    pub is_restarted_on_cluster_error: bool,
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

/// Where a task is, as briefly as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `not_before` is set for a backoff.
    Queued {
        not_before: Option<Timestamp>,
    },
    Running {
        node: NodeId,
        attempt: AttemptNumber,
    },
    Ended(End, Epoch),
}

// === impl Summary ===

impl Summary {
    pub fn new(record: &Record) -> Result<Self, SpecError> {
        let task = &record.task;
        let spec: Spec = task.decode_spec()?;
        let phase = match &task.status {
            Status::Queued(queued) => Phase::Queued { not_before: queued.not_before },
            Status::Running(running) => {
                Phase::Running { node: running.node, attempt: running.attempt }
            }
            Status::Complete(complete) => Phase::Ended(End::Complete, complete.epoch),
            Status::Canceled(canceled) => Phase::Ended(End::Canceled, canceled.epoch),
            Status::Failed(failed) => Phase::Ended(End::Failed, failed.epoch),
        };
        Ok(Self {
            id: task.id,
            modified: record.modified,
            created: record.created,
            phase,
            requirements: Requirements::new(task.schema, &spec),
            failed_hosts: task.failed_hosts().collect(),
            priority: spec.priority,
            is_restarted_on_cluster_error: spec.restart_on_cluster_error,
            name: spec.name,
            labels: spec.labels,
        })
    }

    #[must_use]
    pub fn place(&self) -> Place {
        Place::new(self.priority, self.created, self.id)
    }

    /// The registration under which the task runs.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match self.phase {
            Phase::Running { node, .. } => Some(node),
            Phase::Queued { .. } | Phase::Ended(..) => None,
        }
    }

    /// Whether the task runs under this registration.
    #[must_use]
    pub fn is_running_on(&self, me: NodeId) -> bool {
        self.node() == Some(me)
    }
}
