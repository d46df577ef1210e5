//! Kubernetes Events on pods, nodes and the status ConfigMap, by upstream's names, beside those of the
//! registry.

use std::fmt;

use registry::NodeName;

use super::world::PodKey;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub about: Subject,
    pub reason: EventReason,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Pod(PodKey),
    Node(NodeName),
    /// The status ConfigMap.
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventReason {
    TriggeredScaleUp,
    NotTriggerScaleUp,
    MaxNodesTotalReached,
    ScaleDown,
    ScaleDownEmpty,
}

// === impl EventReason ===

impl EventReason {
    #[must_use]
    pub fn is_warning(self) -> bool {
        matches!(self, Self::MaxNodesTotalReached)
    }
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
