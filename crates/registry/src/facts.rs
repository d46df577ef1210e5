//! What was read of the cluster and of its provider, as it was read: nothing here is checked yet, and
//! nothing remembers what was read before.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{GroupId, InstanceId, NodeName};

/// Everything one observation is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub nodes: Vec<Node>,
    /// A listing that failed says nothing of any group; it does not say that there are none.
    pub groups: Result<Vec<Group>, Fault>,
}

/// Why the provider's answer is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fault(pub String);

/// A Node object, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Node {
    pub created: Timestamp,
    pub name: NodeName,
    /// Empty: not set.
    pub provider_id: String,
    /// By kind: `Ready`, `DiskPressure`, …
    pub conditions: BTreeMap<String, Condition>,
    pub taints: BTreeSet<Taint>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// GPUs and other devices that the node's labels promise and its status lacks.
    pub missing_resources: BTreeSet<String>,
    pub membership: Membership,
}

/// Which group a node belongs to, by the provider's word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Membership {
    Group(GroupId),
    Unmanaged,
    /// The provider did not answer.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Condition {
    pub status: ConditionStatus,
    pub last_transition: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Taint {
    pub key: String,
    pub value: String,
}

/// A node group, as the provider tells of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub id: GroupId,
    pub min: i64,
    pub max: i64,
    /// Some providers offer groups that the first increase creates.
    pub exists: bool,
    pub options: Options,
    pub target: Result<i64, Fault>,
    pub instances: Result<Vec<Instance>, Fault>,
}

/// What differs from the defaults for one group. Absent and zero both mean the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub unneeded: Option<SignedDuration>,
    pub unready: Option<SignedDuration>,
    pub provision: Option<SignedDuration>,
    pub startup: Option<SignedDuration>,
}

/// A machine in a group's listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instance {
    pub id: InstanceId,
    pub state: Option<InstanceState>,
    pub error: Option<ErrorInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum InstanceState {
    Running,
    Creating,
    Deleting,
}

/// Why an instance could not be created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ErrorInfo {
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ErrorClass {
    /// Stockout or quota: another group may do better.
    OutOfResources,
    Other,
}

/// Target sizes read apart from an observation, before a size is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets(pub BTreeMap<GroupId, u32>);

// === impl Node ===

impl Node {
    /// The taint of this key; its effect does not matter here.
    pub(crate) fn taint(&self, key: &str) -> Option<&Taint> {
        self.taints.iter().find(|taint| taint.key == key)
    }
}
