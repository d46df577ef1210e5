//! What is to happen to one object next. Looks at how things stand, never at how they came to be: what
//! is asked again, late or by another sharder has the same answer.
//!
//! An object goes `A` → `A` draining → nobody's → `B`, each arrow one write; or at once from `A` to
//! `B` when `A` is gone and the sharder holds its Lease, or has not answered in time and can do no
//! harm.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

use super::names::InstanceId;
use super::object::{Drain, LabelChange, Object};
use super::spec::Force;
use super::time::later;

/// A former owner that has seen what it is to give up is trusted to have stopped this much after its
/// grace.
pub const SEEN_MARGIN: Duration = Duration::from_secs(5);

/// Where an object is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Instance {
        id: &'a InstanceId,
        is_ready: bool,
    },
    /// The ring has no instance to give it to.
    NoInstance,
    /// The ring no longer has the object: its labels are to go.
    Outside,
}

/// How it stands with the instance that an object's label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Ready,
    /// Unknown or restarting. What it has stays with it.
    Silent,
    /// Dead, released or without a Lease.
    Gone {
        /// Whether the sharder holds its Lease, so that it cannot come back meanwhile.
        is_held: bool,
    },
}

/// All that decides about a main object.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub object: &'a Object,
    pub target: Target<'a>,
    /// None for an object that is nobody's.
    pub owner: Option<Owner>,
    pub force: Force,
    /// Whether the owner can do no harm after a forced move: the fence refuses it, or it is known to
    /// have stopped.
    pub is_harmless: bool,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is as it should be.
    Settled,
    Wait(Wait),
    Write(Step),
}

/// One write, refused if the object has changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody's: given to an instance.
    Assign(InstanceId),
    /// Its owner is to give it up.
    Drain,
    /// Its owner may keep it after all.
    Undrain,
    /// Its owner did not give it up in time.
    Force(Option<InstanceId>),
    /// Its owner is gone.
    TakeOver(Option<InstanceId>),
    /// A child goes where its parent goes.
    Follow(InstanceId),
    /// Only a leftover is to go.
    Tidy,
}

/// What has to happen first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// That an instance joins.
    Instance,
    /// That the instance it is to go to is ready.
    Target,
    /// That its owner gives it up, until then.
    Acknowledgement { deadline: Timestamp },
    /// The same, but the time is over and its owner may still be at work.
    Overdue,
    /// That its silent owner speaks or is declared dead.
    Owner,
    /// That the sharder holds the Lease of its owner.
    Hold,
    /// That its parent is settled.
    Parent,
}

#[must_use]
pub fn judge(question: &Question<'_>) -> Verdict {
    let Some(owner) = question.owner else { return judge_unassigned(question) };
    let is_at_home = match question.target {
        Target::Instance { id, .. } => question.object.shard.as_ref() == Some(id),
        Target::NoInstance | Target::Outside => false,
    };
    match owner {
        Owner::Gone { .. } if is_at_home => Verdict::Wait(Wait::Target),
        Owner::Gone { is_held } => judge_left(question, is_held),
        Owner::Ready | Owner::Silent if is_at_home => judge_at_home(question),
        Owner::Silent => Verdict::Wait(Wait::Owner),
        Owner::Ready => judge_elsewhere(question),
    }
}

fn judge_unassigned(question: &Question<'_>) -> Verdict {
    match question.target {
        Target::Instance { id, is_ready: true } => Verdict::Write(Step::Assign(id.clone())),
        Target::Instance { .. } => Verdict::Wait(Wait::Target),
        Target::NoInstance => Verdict::Wait(Wait::Instance),
        Target::Outside if question.object.drain.is_some() => Verdict::Write(Step::Tidy),
        Target::Outside => Verdict::Settled,
    }
}

fn judge_at_home(question: &Question<'_>) -> Verdict {
    let is_draining = question.object.drain.is_some();
    if is_draining { Verdict::Write(Step::Undrain) } else { Verdict::Settled }
}

/// With a ready instance, and it should not be.
fn judge_elsewhere(question: &Question<'_>) -> Verdict {
    let to = match question.target {
        Target::Instance { id, is_ready: true } => Some(id.clone()),
        Target::Outside => None,
        // Nobody could take it, so it is better off where it is.
        Target::NoInstance if question.object.drain.is_some() => {
            return Verdict::Write(Step::Undrain);
        }
        Target::NoInstance => return Verdict::Wait(Wait::Instance),
        Target::Instance { .. } => return Verdict::Wait(Wait::Target),
    };
    let Some(Drain::Until(deadline)) = question.object.drain else {
        return Verdict::Write(Step::Drain);
    };
    let deadline = deadline_of(deadline);
    if question.now < deadline {
        return Verdict::Wait(Wait::Acknowledgement { deadline });
    }
    let may_force = match question.force {
        Force::Always => true,
        Force::WhenSafe => question.is_harmless,
        Force::Never => false,
    };
    if may_force { Verdict::Write(Step::Force(to)) } else { Verdict::Wait(Wait::Overdue) }
}

/// With an instance that is gone.
fn judge_left(question: &Question<'_>, is_held: bool) -> Verdict {
    let to = match question.target {
        Target::Instance { id, is_ready: true } => Some(id.clone()),
        Target::Outside => None,
        Target::Instance { .. } => return Verdict::Wait(Wait::Target),
        Target::NoInstance => return Verdict::Wait(Wait::Instance),
    };
    if is_held { Verdict::Write(Step::TakeOver(to)) } else { Verdict::Wait(Wait::Hold) }
}

/// A child whose owner lives, or that has none. `parent` is as it was just read; none if it is gone,
/// and then the garbage collection sees to the child.
#[must_use]
pub fn judge_child(
    child: &Object,
    parent: Option<&Object>,
    is_ready: impl Fn(&InstanceId) -> bool,
) -> Verdict {
    let Some(parent) = parent else { return Verdict::Settled };
    match (&child.shard, &parent.shard) {
        (Some(own), Some(of_parent)) if own == of_parent => Verdict::Settled,
        (_, None) => Verdict::Wait(Wait::Parent),
        (_, Some(_)) if parent.drain.is_some() => Verdict::Wait(Wait::Parent),
        // One that is elsewhere is remembered: when its parent moves, it has to move first.
        (Some(_), Some(of_parent)) if !is_ready(of_parent) => Verdict::Wait(Wait::Parent),
        (None, Some(of_parent)) if !is_ready(of_parent) => Verdict::Wait(Wait::Target),
        (None, Some(of_parent)) => Verdict::Write(Step::Assign(of_parent.clone())),
        (Some(_), Some(of_parent)) => Verdict::Write(Step::Follow(of_parent.clone())),
    }
}

/// A child of a parent that leaves the ring: stripped once its parent has no owner any more.
#[must_use]
pub fn judge_child_outside(child: &Object, parent: Option<&Object>) -> Verdict {
    let is_labelled = child.shard.is_some() || child.drain.is_some();
    match parent.and_then(|parent| parent.shard.as_ref()) {
        _ if !is_labelled => Verdict::Settled,
        Some(_) => Verdict::Wait(Wait::Parent),
        None => Verdict::Write(Step::Tidy),
    }
}

/// An object that nothing of the ring controls, though it may have done so once.
#[must_use]
pub fn judge_orphan(object: &Object) -> Verdict {
    let is_labelled = object.shard.is_some() || object.drain.is_some();
    if is_labelled { Verdict::Write(Step::Tidy) } else { Verdict::Settled }
}

// === impl Step ===

impl Step {
    /// The write. A drain ends after `timeout`.
    #[must_use]
    pub fn change(&self, now: Timestamp, timeout: Duration) -> LabelChange {
        match self {
            Self::Assign(to)
            | Self::Follow(to)
            | Self::Force(Some(to))
            | Self::TakeOver(Some(to)) => LabelChange::Shard(to.clone()),
            Self::Force(None) | Self::TakeOver(None) | Self::Tidy => LabelChange::Clear,
            Self::Drain => LabelChange::Drain(Drain::Until(deadline_after(now, timeout))),
            Self::Undrain => LabelChange::Undrain,
        }
    }
}

/// Labels count whole seconds; rounded up, lest a deadline come early.
fn deadline_after(now: Timestamp, timeout: Duration) -> u64 {
    let at = later(now, timeout);
    let started = i64::from(at.subsec_nanosecond() > 0);
    u64::try_from(at.as_second() + started).unwrap_or(0)
}

/// A time that no clock reaches is the end of time.
fn deadline_of(seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
