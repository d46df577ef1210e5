//! The status that is published for people and dashboards, in upstream's form. Built from answers; the
//! times of changes are remembered, so that they outlive a restart.

mod document;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::GroupId;
use crate::registry::Registry;

pub use document::{
    AutoscalerStatus, BackoffInfo, ClusterHealthStatus, ClusterWide, GroupHealthStatus,
    GroupScaleUp, GroupStatus, NodeCounts, RegisteredCounts, ScaleDownState, ScaleUpState, Status,
    UnreadyCounts,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthStatus {
    Healthy,
    Unhealthy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScaleUpStatus {
    InProgress,
    Unhealthy,
    Backoff,
    NoActivity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScaleDownStatus {
    CandidatesPresent,
    NoCandidates,
}

/// A status, and since when it is this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark<T> {
    pub(crate) status: T,
    pub(crate) since: Timestamp,
}

/// The three statuses of the cluster, or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    pub(crate) health: Mark<HealthStatus>,
    pub(crate) scale_up: Mark<ScaleUpStatus>,
    pub(crate) scale_down: Mark<ScaleDownStatus>,
}

// === impl Marks ===

impl Marks {
    fn next(
        earlier: Option<&Self>,
        (health, scale_up, scale_down): (HealthStatus, ScaleUpStatus, ScaleDownStatus),
        now: Timestamp,
    ) -> Self {
        Self {
            health: Mark::next(earlier.map(|it| it.health), health, now),
            scale_up: Mark::next(earlier.map(|it| it.scale_up), scale_up, now),
            scale_down: Mark::next(earlier.map(|it| it.scale_down), scale_down, now),
        }
    }
}

// === impl Mark ===

impl<T: Copy + PartialEq> Mark<T> {
    fn next(earlier: Option<Self>, status: T, now: Timestamp) -> Self {
        earlier.filter(|earlier| earlier.status == status).unwrap_or(Self { status, since: now })
    }
}

// === impl Registry ===

impl Registry {
    /// Remembers which statuses have changed.
    pub(crate) fn mark(&mut self, now: Timestamp) {
        let groups: Vec<GroupId> = self.groups().cloned().collect();
        for group in groups {
            let marks = self.group_marks(&group, now);
            if let Some(memory) = self.state.groups.get_mut(&group) {
                memory.marks = Some(marks);
            }
        }
        self.state.marks = Some(self.cluster_marks(now));
    }

    fn group_marks(&self, group: &GroupId, now: Timestamp) -> Marks {
        let statuses = (
            self.group_health_status(group, now),
            self.group_scale_up_status(group, now),
            candidates_status(self.candidates(group)),
        );
        let memory = self.state.groups.get(group);
        Marks::next(memory.and_then(|memory| memory.marks.as_ref()), statuses, now)
    }

    fn cluster_marks(&self, now: Timestamp) -> Marks {
        let is_growing = self.groups().any(|group| self.is_scaling_up(group, now));
        let statuses = (
            health_status(!self.view.cluster.is_unhealthy),
            if is_growing { ScaleUpStatus::InProgress } else { ScaleUpStatus::NoActivity },
            candidates_status(self.state.unneeded.len()),
        );
        Marks::next(self.state.marks.as_ref(), statuses, now)
    }

    /// How many nodes of the group are unneeded.
    pub(crate) fn candidates(&self, group: &GroupId) -> usize {
        let nodes = self.state.unneeded.keys().filter_map(|name| self.node(name));
        nodes.filter(|node| node.group.as_ref() == Some(group)).count()
    }

    fn group_health_status(&self, group: &GroupId, now: Timestamp) -> HealthStatus {
        health_status(self.is_group_healthy(group, now).unwrap_or(false))
    }

    fn group_scale_up_status(&self, group: &GroupId, now: Timestamp) -> ScaleUpStatus {
        if self.is_scaling_up(group, now) {
            ScaleUpStatus::InProgress
        } else if self.is_group_healthy(group, now) != Some(true) {
            ScaleUpStatus::Unhealthy
        } else if self.backoff(group, now).is_some() {
            ScaleUpStatus::Backoff
        } else {
            ScaleUpStatus::NoActivity
        }
    }
}

fn health_status(is_healthy: bool) -> HealthStatus {
    if is_healthy { HealthStatus::Healthy } else { HealthStatus::Unhealthy }
}

fn candidates_status(candidates: usize) -> ScaleDownStatus {
    match candidates {
        0 => ScaleDownStatus::NoCandidates,
        _ => ScaleDownStatus::CandidatesPresent,
    }
}
