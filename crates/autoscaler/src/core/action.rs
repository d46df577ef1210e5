//! What an iteration wants done, and what came of it.
//!
//! Calls that change sizes are made on a target that was read just before: [`Call::intent`] says
//! whether the call is still right on it, and what is to be recorded and saved before it is made.

use registry::{GroupId, InstanceId, NodeName, Outcome, RemovalReason, Step};
use serde::{Deserialize, Serialize};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Ask the provider.
    Call(Call),
    /// Make a node an ordinary one again: its removal did not happen.
    Lift(Lift),
    /// Mark a node as one that may soon go: `DeletionCandidate…=<value>:PreferNoSchedule`.
    Mark { node: NodeName, value: i64 },
    /// It may not.
    Unmark { node: NodeName },
}

/// What changes a group, planned on what the iteration read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Planned for a target of `target`; another one means that somebody else was here.
    Increase { group: GroupId, delta: u32, target: u32 },
    /// No lower than `floor`, which is how many machines the group has.
    Decrease { group: GroupId, delta: u32, floor: u32 },
    /// No lower than `floor`, the group's minimum.
    Delete { group: GroupId, machine: Machine, floor: u32 },
}

/// What is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub instance: InstanceId,
    /// `None`: it never had one.
    pub node: Option<NodeName>,
    pub reason: RemovalReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    pub node: NodeName,
    /// Whether we cordoned it.
    pub uncordons: bool,
    pub why: String,
}

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    Done,
    /// Answered with a refusal, or not saved and so not tried.
    Failed(String),
    /// Not answered: it may have happened.
    Unknown,
    /// Not tried: [`Call::intent`] refused.
    Stale,
}

/// Why a call is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    #[error("the target is {read} now, and was {planned} when the increase was planned")]
    Moved { planned: u32, read: u32 },
    #[error("the target is {read} now, and may not go below {floor}")]
    TooLow { read: u32, floor: u32 },
}

// === impl Call ===

impl Call {
    #[must_use]
    pub fn group(&self) -> &GroupId {
        match self {
            Self::Increase { group, .. }
            | Self::Decrease { group, .. }
            | Self::Delete { group, .. } => group,
        }
    }

    /// What is to be recorded as requested, saved, and then done, now that the target is `read`.
    ///
    /// # Errors
    ///
    /// If the target has changed so that the call is not right any more.
    pub fn intent(&self, read: u32) -> Result<registry::Action, Stale> {
        let leaves = |less: u32, floor: u32| match read.checked_sub(less) {
            Some(left) if left >= floor => Ok(()),
            _ => Err(Stale::TooLow { read, floor }),
        };
        Ok(match self {
            Self::Increase { target, .. } if *target != read => {
                return Err(Stale::Moved { planned: *target, read });
            }
            Self::Increase { group, delta, .. } => {
                registry::Action::Increase { group: group.clone(), delta: *delta, baseline: read }
            }
            Self::Decrease { group, delta, floor } => {
                leaves(*delta, *floor)?;
                registry::Action::Decrease { group: group.clone(), delta: *delta }
            }
            Self::Delete { group, machine, floor } => {
                leaves(1, *floor)?;
                let instance = machine.instance.clone();
                registry::Action::Delete { group: group.clone(), instance }
            }
        })
    }
}

// === impl Effect ===

impl Effect {
    /// What is to be recorded after the call, if it was made.
    #[must_use]
    pub fn outcome(&self, action: registry::Action) -> Option<Outcome> {
        let step = match self {
            Self::Done => Step::Done,
            Self::Failed(message) => Step::Failed { message: message.clone() },
            Self::Unknown => Step::Unknown,
            Self::Stale => return None,
        };
        Some(Outcome { action, step })
    }

    /// Whether what was asked for may have happened.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        matches!(self, Self::Done | Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_made_on_the_target_they_were_planned_for() {
        let group = || GroupId::from("g");
        let machine = || Machine {
            instance: "i".into(),
            node: None,
            reason: RemovalReason::LongUnregistered,
        };
        let increase = Call::Increase { group: group(), delta: 2, target: 3 };
        let decrease = Call::Decrease { group: group(), delta: 2, floor: 3 };
        let delete = Call::Delete { group: group(), machine: machine(), floor: 1 };
        let baseline = registry::Action::Increase { group: group(), delta: 2, baseline: 3 };
        assert_eq!(increase.intent(3), Ok(baseline));
        assert_eq!(increase.intent(4), Err(Stale::Moved { planned: 3, read: 4 }));
        assert!(decrease.intent(5).is_ok());
        assert_eq!(decrease.intent(4), Err(Stale::TooLow { read: 4, floor: 3 }));
        assert_eq!(decrease.intent(1), Err(Stale::TooLow { read: 1, floor: 3 }));
        assert!(delete.intent(2).is_ok());
        assert_eq!(delete.intent(1), Err(Stale::TooLow { read: 1, floor: 1 }));
    }
}
