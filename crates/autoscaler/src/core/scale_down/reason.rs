//! Why a node stays, and what is to be done with one that goes. Upstream's names, in the order in which
//! they are asked for, and a few of our own.

use std::fmt;

use jiff::Timestamp;
use registry::{GroupId, InstanceId, NodeName, RemovalReason};
use serde::{Deserialize, Serialize};

use super::super::account::clock;

/// Why a node stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    NotAutoscaled,
    CurrentlyBeingDeleted,
    ScaleDownDisabledAnnotation,
    ScaleDownUnreadyDisabled,
    /// Ours: it is not Ready yet, and still in its time.
    NotStarted,
    /// Ours: it sleeps on purpose.
    Suspended,
    RecentlyUnremovable,
    NotUnderutilized,
    BlockedByPod,
    NoPlaceToMovePods,
    NotUnneededLongEnough,
    NotUnreadyLongEnough,
    NodeGroupMinSizeReached,
    MinimalResourceLimitExceeded,
    /// Ours.
    ZoneDisrupted,
    UnexpectedError,
}

/// Why a node stays, with its numbers or names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Against {
    pub reason: Reason,
    /// May be empty.
    pub detail: String,
}

/// A node that is to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub node: NodeName,
    pub group: GroupId,
    pub instance: InstanceId,
    pub reason: RemovalReason,
    /// Whether it has no pods that would have to go first.
    pub is_empty: bool,
    /// The group's minimum.
    pub floor: u32,
}

/// Why no node goes for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cooldown {
    AfterAdd { until: Timestamp },
    AfterDelete { until: Timestamp },
    AfterFailure { until: Timestamp },
}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl Order ===

impl Order {
    /// Whether the node goes because it is of no use.
    pub(in super::super) fn is_lost(&self) -> bool {
        matches!(self.reason, RemovalReason::Unready | RemovalReason::BrokenStart)
    }
}

// === impl Against ===

impl Against {
    pub(in super::super) fn new(reason: Reason, detail: &str) -> Self {
        Self { reason, detail: detail.to_owned() }
    }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, detail } = self;
        if detail.is_empty() { write!(f, "{reason}") } else { write!(f, "{reason}: {detail}") }
    }
}

// === impl Cooldown ===

impl fmt::Display for Cooldown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Who has lost its memory waits as if it had just happened.
        let (what, until) = match self {
            Self::AfterAdd { until } => ("nodes were or may have been added", until),
            Self::AfterDelete { until } => ("a node was or may have been removed", until),
            Self::AfterFailure { until } => ("a removal failed or may have", until),
        };
        write!(f, "{what}; no node goes before {}", clock(*until))
    }
}
