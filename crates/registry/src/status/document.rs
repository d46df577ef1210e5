//! The fields of the published status, named as upstream names them.

use jiff::Timestamp;
use serde::Serialize;

use super::{HealthStatus, Mark, Marks, ScaleDownStatus, ScaleUpStatus};
use crate::backoff::Backoff;
use crate::id::GroupId;
use crate::registry::Registry;
use crate::terms::Counts;

/// No message is longer, its mark of having been cut included.
const MESSAGE_CHARS_MAX: usize = 500;

const TRUNCATED: &str = "<truncated>";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub time: Timestamp,
    pub autoscaler_status: AutoscalerStatus,
    /// Why nothing is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_wide: Option<ClusterWide>,
    pub node_groups: Vec<GroupStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AutoscalerStatus {
    /// Nothing was observed yet.
    Initializing,
    Running,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWide {
    pub health: ClusterHealthStatus,
    pub scale_up: ScaleUpState,
    pub scale_down: ScaleDownState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterHealthStatus {
    pub status: HealthStatus,
    pub node_counts: NodeCounts,
    pub last_probe_time: Timestamp,
    pub last_transition_time: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleUpState {
    pub status: ScaleUpStatus,
    pub last_probe_time: Timestamp,
    pub last_transition_time: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleDownState {
    pub status: ScaleDownStatus,
    pub candidates: usize,
    pub last_probe_time: Timestamp,
    pub last_transition_time: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupStatus {
    pub name: GroupId,
    pub health: GroupHealthStatus,
    pub scale_up: GroupScaleUp,
    pub scale_down: ScaleDownState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupHealthStatus {
    #[serde(flatten)]
    pub health: ClusterHealthStatus,
    /// The last good reading.
    pub cloud_provider_target: Option<u32>,
    pub min_size: u32,
    pub max_size: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupScaleUp {
    #[serde(flatten)]
    pub state: ScaleUpState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_info: Option<BackoffInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackoffInfo {
    pub error_code: String,
    pub error_message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    pub registered: RegisteredCounts,
    pub long_unregistered: u32,
    pub unregistered: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredCounts {
    pub total: u32,
    pub ready: u32,
    pub not_started: u32,
    pub suspended: u32,
    pub being_deleted: u32,
    pub unready: UnreadyCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnreadyCounts {
    pub total: u32,
    pub resource_unready: u32,
}

// === impl Registry ===

impl Registry {
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        let probed = self.state.observed_at.unwrap_or(now);
        let halt = self.view.cluster.halt(&self.config);
        let groups = self.groups().filter_map(|group| self.group_status(group, probed, now));
        let marks = self.view.is_made.then(|| self.cluster_marks(now));
        Status {
            time: now,
            autoscaler_status: match marks {
                Some(_) => AutoscalerStatus::Running,
                None => AutoscalerStatus::Initializing,
            },
            message: halt.map(|halt| cut(&halt.to_string())),
            cluster_wide: marks.map(|marks| ClusterWide {
                health: health(&marks, &self.view.counts, probed),
                scale_up: scale_up(&marks, probed),
                scale_down: scale_down(&marks, self.state.unneeded.len(), probed),
            }),
            node_groups: groups.collect(),
        }
    }

    fn group_status(
        &self,
        group: &GroupId,
        probed: Timestamp,
        now: Timestamp,
    ) -> Option<GroupStatus> {
        let (view, memory) = (self.view.groups.get(group)?, self.state.groups.get(group)?);
        let marks = self.group_marks(group, now);
        Some(GroupStatus {
            name: group.clone(),
            health: GroupHealthStatus {
                health: health(&marks, &view.counts, probed),
                cloud_provider_target: view.target,
                min_size: memory.profile.min,
                max_size: memory.profile.max,
            },
            scale_up: GroupScaleUp {
                state: scale_up(&marks, probed),
                backoff_info: self.backoff(group, now).map(BackoffInfo::of),
            },
            scale_down: scale_down(&marks, self.candidates(group), probed),
        })
    }
}

// === impl BackoffInfo ===

impl BackoffInfo {
    fn of(backoff: &Backoff) -> Self {
        Self { error_code: backoff.code.clone(), error_message: cut(&backoff.message) }
    }
}

// === impl NodeCounts ===

impl NodeCounts {
    fn of(counts: &Counts) -> Self {
        let unready =
            UnreadyCounts { total: counts.unready, resource_unready: counts.resource_unready };
        let registered = RegisteredCounts {
            total: counts.nodes(),
            ready: counts.ready,
            not_started: counts.starting,
            suspended: counts.suspended,
            being_deleted: counts.leaving + counts.left,
            unready,
        };
        let (long_unregistered, unregistered) = (counts.long_unregistered, counts.unregistered);
        Self { registered, long_unregistered, unregistered }
    }
}

fn health(marks: &Marks, counts: &Counts, last_probe_time: Timestamp) -> ClusterHealthStatus {
    let Mark { status, since } = marks.health;
    let node_counts = NodeCounts::of(counts);
    ClusterHealthStatus { status, node_counts, last_probe_time, last_transition_time: since }
}

fn scale_up(marks: &Marks, last_probe_time: Timestamp) -> ScaleUpState {
    let Mark { status, since } = marks.scale_up;
    ScaleUpState { status, last_probe_time, last_transition_time: since }
}

fn scale_down(marks: &Marks, candidates: usize, last_probe_time: Timestamp) -> ScaleDownState {
    let Mark { status, since } = marks.scale_down;
    ScaleDownState { status, candidates, last_probe_time, last_transition_time: since }
}

fn cut(message: &str) -> String {
    if message.chars().count() <= MESSAGE_CHARS_MAX {
        return message.to_owned();
    }
    let kept = MESSAGE_CHARS_MAX - TRUNCATED.len();
    message.chars().take(kept).chain(TRUNCATED.chars()).collect()
}
