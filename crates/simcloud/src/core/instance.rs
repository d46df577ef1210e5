//! A machine.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use registry::{ErrorInfo, GroupId, InstanceId, InstanceState, NodeName};

use super::ledger::{FaultIndex, Place};

/// What every id begins with.
pub(super) const SCHEME: &str = "simcloud://";

#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) group: GroupId,
    /// Within its group.
    pub(super) number: u64,
    pub(super) name: NodeName,
    pub(super) zone: String,
    /// What its Node says it is, which is not always true.
    pub(super) claimed_id: String,
    pub(super) running_at: Timestamp,
    /// `None`: never.
    pub(super) registers_at: Option<Timestamp>,
    /// From then on; `None`: never.
    pub(super) ready_after: Option<Duration>,
    pub(super) has_registered: bool,
    pub(super) error: Option<ErrorInfo>,
    /// Being deleted, and gone from then on.
    pub(super) gone_at: Option<Timestamp>,
    /// Faults that have had their chance at it.
    pub(super) considered: BTreeSet<FaultIndex>,
    /// Faults that have struck it.
    pub(super) struck: BTreeSet<FaultIndex>,
}

// === impl Instance ===

impl Instance {
    pub(super) fn id(&self) -> InstanceId {
        id(&self.group, &self.name)
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { group: Some(&self.group), zone: Some(&self.zone) }
    }

    pub(super) fn is_running(&self, now: Timestamp) -> bool {
        self.state(now) == InstanceState::Running
    }

    pub(super) fn state(&self, now: Timestamp) -> InstanceState {
        if self.gone_at.is_some() {
            InstanceState::Deleting
        } else if self.error.is_some() || now < self.running_at {
            InstanceState::Creating
        } else {
            InstanceState::Running
        }
    }

    pub(super) fn listed(&self, now: Timestamp) -> registry::Instance {
        let (id, state) = (self.id(), Some(self.state(now)));
        registry::Instance { id, state, error: self.error.clone() }
    }
}

pub(super) fn id(group: &GroupId, name: &NodeName) -> InstanceId {
    InstanceId(format!("{SCHEME}{group}/{name}"))
}
