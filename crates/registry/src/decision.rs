//! What is to be done. Others do it and record what came of it.

use serde::{Deserialize, Serialize};

use crate::health::Halt;
use crate::id::{GroupId, InstanceId, NodeName};
use crate::notice::Notices;

/// So many instances of one group are removed after one observation: each is a call.
pub const REMOVALS_PER_GROUP_MAX: usize = 10;

/// What an observation means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    pub decisions: Vec<Decision>,
    pub notices: Notices,
}

/// Something to do. Told again by each observation until it is done or no longer right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Decision {
    /// Do nothing else that changes the cluster, but for removals that are decided on all the same.
    Halt(Halt),
    /// Delete an instance that has no Node.
    RemoveInstance { group: GroupId, instance: InstanceId, reason: RemovalReason },
    /// Give up nodes that did not come. Takes no instance that is listed.
    ReduceTarget { group: GroupId, delta: u32 },
    /// Its removal did not end in time, and its machine runs: make it a node like others again.
    LiftTaint { node: NodeName },
}

/// Why an instance goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RemovalReason {
    CreateFailed,
    LongUnregistered,
    BrokenStart,
    Unready,
    Unneeded,
}

/// A node whose time has come, if its pods may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    pub node: NodeName,
    pub group: GroupId,
    pub instance: Option<InstanceId>,
    pub reason: RemovalReason,
}
