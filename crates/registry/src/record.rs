//! What came of what was asked of the provider. An intent is recorded, and saved, before its call; so
//! whoever comes after a crash knows what may have happened.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure;
use crate::id::{GroupId, InstanceId};
use crate::notice::{EventReason, FailureCode, Notices};
use crate::registry::Registry;
use crate::request::{ask, confirm, lower, take_back};
use crate::save::{STATE_BYTES_MAX, is_full};
use crate::state::{DELETION_TIMEOUT, Deletion, GroupMemory, Profile};
use crate::time::later;

/// A call to the provider, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub action: Action,
    pub step: Step,
}

/// What changes a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// `baseline` is the target as read just before.
    Increase {
        group: GroupId,
        delta: u32,
        baseline: u32,
    },
    Decrease {
        group: GroupId,
        delta: u32,
    },
    /// Hands a machine to the provider; lowers the target by one.
    Delete {
        group: GroupId,
        instance: InstanceId,
    },
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// About to be made.
    Requested,
    Done,
    /// Refused: it has no effect, or if it has one after all, it is taken for somebody else's.
    Failed {
        message: String,
    },
    /// Not answered. The next good target and listing tell.
    Unknown,
}

/// Why an intent must not be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("more is under way than {STATE_BYTES_MAX} bytes of state can hold")]
    StateFull,
}

// === impl Registry ===

impl Registry {
    /// # Errors
    ///
    /// If an intent cannot be kept. Then it is not remembered, and its call must not be made.
    pub fn record(&mut self, now: Timestamp, outcome: &Outcome) -> Result<Notices, RecordError> {
        let now = self.state.observed_at.map_or(now, |last| now.max(last));
        if outcome.step == Step::Requested && is_full(&self.state) {
            return Err(RecordError::StateFull);
        }
        let mut notices = Notices::default();
        match &outcome.action {
            Action::Increase { group, delta, baseline } => {
                self.on_increase(now, (group, *delta, *baseline), &outcome.step, &mut notices);
            }
            Action::Decrease { group, delta } => {
                self.on_decrease(group, *delta, &outcome.step, &mut notices);
            }
            Action::Delete { group, instance } => {
                self.on_delete(now, (group, instance), &outcome.step, &mut notices);
            }
        }
        Ok(notices)
    }

    fn on_increase(
        &mut self,
        now: Timestamp,
        (group, delta, baseline): (&GroupId, u32, u32),
        step: &Step,
        notices: &mut Notices,
    ) {
        let Self { config, state, .. } = self;
        let times = config.times;
        let known = state.groups.entry(group.clone());
        let memory = known.or_insert_with(|| GroupMemory::new(Profile::unknown(times)));
        match step {
            Step::Requested => ask(&mut memory.own, delta, baseline, (now, config.settle_timeout)),
            Step::Done => {
                confirm(&mut memory.own);
                let (size, max) = (baseline.saturating_add(delta), memory.profile.max);
                let sizes = format!("size set to {size} instead of {baseline} (max: {max})");
                notices
                    .tell(EventReason::ScaledUpGroup, format!("Scale-up: group {group} {sizes}"));
            }
            Step::Failed { message } => {
                take_back(&mut memory.own, delta);
                let event = format!("Scale-up failed for group {group}: {message}");
                notices.tell(EventReason::FailedToScaleUpGroup, event);
                let code = FailureCode::ApiCallError;
                let failure = failure::of(group, code, message.clone(), delta);
                failure::note(Some(memory), failure, (now, config), notices);
            }
            // The request settles: the target will tell.
            Step::Unknown => confirm(&mut memory.own),
        }
    }

    fn on_decrease(&mut self, group: &GroupId, delta: u32, step: &Step, notices: &mut Notices) {
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        match step {
            Step::Done => {
                lower(&mut memory.own, delta);
                expect_less(memory, delta);
                (memory.revert, memory.size) = (0, None);
            }
            Step::Failed { message } => {
                let event = format!("Failed to lower the size of group {group}: {message}");
                notices.tell(EventReason::FailedToRevertScaleUp, event);
            }
            // Decided anew on the next good target, so there is nothing to keep.
            Step::Requested | Step::Unknown => {}
        }
    }

    fn on_delete(
        &mut self,
        now: Timestamp,
        (group, instance): (&GroupId, &InstanceId),
        step: &Step,
        notices: &mut Notices,
    ) {
        let is_unregistered = self.view.instances.contains_key(instance);
        let deadline = later(now, DELETION_TIMEOUT);
        let deletion = Deletion { group: group.clone(), opened: now, deadline, is_overdue: false };
        match step {
            Step::Requested => _ = self.state.deletions.insert(instance.clone(), deletion),
            Step::Done | Step::Unknown => {
                if let Some(open) = self.state.deletions.get_mut(instance) {
                    open.deadline = deadline;
                }
                self.state.groups.get_mut(group).into_iter().for_each(|it| expect_less(it, 1));
            }
            Step::Failed { .. } => _ = self.state.deletions.remove(instance),
        }
        if is_unregistered {
            tell_unregistered(instance, step, notices);
        }
    }
}

/// We lowered a target, or may have, that an increase still waits for.
fn expect_less(memory: &mut GroupMemory, delta: u32) {
    let settling = memory.own.as_mut().and_then(|own| own.settling.as_mut());
    if let Some(settling) = settling {
        settling.expects = settling.expects.saturating_sub(delta);
    }
}

fn tell_unregistered(instance: &InstanceId, step: &Step, notices: &mut Notices) {
    match step {
        Step::Done => notices
            .tell(EventReason::DeleteUnregistered, format!("Removed unregistered node {instance}")),
        Step::Failed { message } => notices.tell(
            EventReason::DeleteUnregisteredFailed,
            format!("Failed to remove unregistered node {instance}: {message}"),
        ),
        Step::Requested | Step::Unknown => {}
    }
}
