//! What there is to tell besides decisions: Kubernetes events, failed scale-ups, and facts that make
//! no sense. Telling them is left to others.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{GroupId, InstanceId, NodeName};

/// So many codes of creation errors are named in one event.
pub const CODES_NAMED_MAX: usize = 3;

/// What an observation or an outcome gives occasion to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    pub events: Vec<Event>,
    pub failures: Vec<Failure>,
    pub reports: Vec<Report>,
}

/// A Kubernetes event on the status ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub reason: EventReason,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventReason {
    ScaledUpGroup,
    FailedToScaleUpGroup,
    ScaleUpTimedOut,
    FailedToRevertScaleUp,
    ScaleUpFailed,
    DeleteUnregistered,
    DeleteUnregisteredFailed,
    ClusterUnhealthy,
}

/// Nodes that were asked for and will not come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub group: GroupId,
    pub code: FailureCode,
    pub message: String,
    /// How many nodes.
    pub delta: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureCode {
    /// The provider's own code of a creation error.
    Creation(String),
    Timeout,
    ApiCallError,
    TargetNotRaised,
    MissingNodes,
    LostBeforeReady,
}

/// Facts that were not taken as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    ClockWentBack { told: Timestamp, taken: Timestamp },
    GroupsUnknown { reason: String },
    GroupIgnored { group: GroupId, reason: &'static str },
    GroupStale { group: GroupId, reason: String },
    OptionIgnored { group: GroupId, option: &'static str },
    InstanceInSeveralGroups { instance: InstanceId },
    NodeListedTwice { node: NodeName },
    TimeInFuture { node: NodeName, what: &'static str },
    InstanceWithSeveralNodes { instance: InstanceId },
    NodeUnmatched { node: NodeName },
    MembershipUnknown { node: NodeName },
}

// === impl Notices ===

impl Notices {
    pub(crate) fn tell(&mut self, reason: EventReason, message: String) {
        self.events.push(Event { reason, message });
    }
}

// === impl EventReason ===

impl EventReason {
    #[must_use]
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::ScaledUpGroup | Self::DeleteUnregistered)
    }
}

impl fmt::Display for EventReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl FailureCode ===

impl FailureCode {
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Creation(code) => code,
            Self::Timeout => "timeout",
            Self::ApiCallError => "apiCallError",
            Self::TargetNotRaised => "targetNotRaised",
            Self::MissingNodes => "missingNodes",
            Self::LostBeforeReady => "lostBeforeReady",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Report ===

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClockWentBack { told, taken } => {
                write!(f, "the clock went back to {told}; {taken} is used until it has caught up")
            }
            Self::GroupsUnknown { reason } => write!(f, "the groups are not known: {reason}"),
            Self::GroupIgnored { group, reason } => write!(f, "group {group:?} ignored: {reason}"),
            Self::GroupStale { group, reason } => {
                write!(f, "the sizes of group {group} are not known: {reason}")
            }
            Self::OptionIgnored { group, option } => {
                write!(f, "the {option} of group {group} is negative or over 7 days: ignored")
            }
            Self::InstanceInSeveralGroups { instance } => {
                write!(f, "instance {instance} is listed in several groups")
            }
            Self::NodeListedTwice { node } => write!(f, "node {node} is listed twice"),
            Self::TimeInFuture { node, what } => {
                write!(f, "the {what} time of node {node} is in the future: taken as now")
            }
            Self::InstanceWithSeveralNodes { instance } => {
                write!(f, "several nodes call themselves {instance}; the youngest counts")
            }
            Self::NodeUnmatched { node } => {
                write!(f, "node {node} has no provider id and fits no instance: unmanaged")
            }
            Self::MembershipUnknown { node } => {
                write!(f, "the provider does not tell which group node {node} is in")
            }
        }
    }
}

/// At most so many of the parts, and how many more there are.
pub(crate) fn some_of<'a>(
    parts: impl Iterator<Item = &'a str>,
    total: usize,
    named_max: usize,
) -> String {
    let named = parts.take(named_max).collect::<Vec<_>>().join(", ");
    match total.saturating_sub(named_max) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
