//! A Node, as its kubelet would have it.

use jiff::Timestamp;
use registry::{GroupId, NodeName};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: NodeName,
    pub group: GroupId,
    pub zone: String,
    pub provider_id: String,
    pub created: Timestamp,
    pub health: Health,
    /// Since when it fares so.
    pub since: Timestamp,
    /// Of its machine, within the group.
    pub(super) number: u64,
    /// `None`: never.
    pub(super) ready_at: Option<Timestamp>,
    pub(super) machine: Machine,
}

/// What is heard of a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    Ready,
    NotReady,
    /// Nothing: its kubelet writes no more, and does nothing either.
    Silent,
}

/// What lies under a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    Present,
    /// It is gone, and the Node stays until then; `None`: for good.
    Gone {
        until: Option<Timestamp>,
    },
}
