//! Why an object is where it is, and what it waits for: the sharder's own reasons, told for people.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use super::handover::{Owner, Question, Target, Verdict, Wait, judge};
use super::key::{Kinds, Role};
use super::membership::State;
use super::names::InstanceId;
use super::object::{Drain, Object};
use super::partition::{Partition, SlotId, Table};
use super::spec::Force;
use super::time::until;

/// All that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub object: &'a Object,
    /// Of a controlled object.
    pub parent: Option<&'a Object>,
    pub kinds: &'a Kinds,
    pub table: Option<&'a Table>,
    /// Each instance's state, where it is known.
    pub states: &'a BTreeMap<InstanceId, State>,
    pub is_selected: bool,
    pub force: Force,
    pub is_fenced: bool,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// None for an object that is not of the ring.
    pub key: Option<String>,
    /// By whose name it counts, if not its own.
    pub counts_as: Option<String>,
    pub slot: Option<SlotId>,
    pub table_owner: Option<InstanceId>,
    pub label: Option<InstanceId>,
    pub label_state: Option<State>,
    pub drain: Option<DrainLeft>,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainLeft {
    For(Duration),
    Over,
    Unreadable,
}

/// What the object waits for, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NotOfTheRing,
    Settled,
    /// The sharder will see to it next.
    Sharder,
    Waits(Wait),
}

#[must_use]
pub fn explain(scene: &Scene<'_>) -> Explanation {
    let role = scene.kinds.role(scene.object);
    let key = role.key();
    let owner = scene.table.zip(key).and_then(|(table, key)| table.owner(key));
    let label = scene.object.shard.clone();
    let drain = scene.object.drain.map(|drain| drain_left(drain, scene.now));
    Explanation {
        key: key.map(|key| format!("{}/{}", key.kind, key.path)),
        counts_as: match &role {
            Role::Child { parent, .. } => Some(parent.to_string()),
            Role::Main { .. } | Role::Foreign => None,
        },
        slot: scene.table.zip(key).and_then(|(table, key)| table.slot(key)),
        table_owner: owner.cloned(),
        label_state: label.as_ref().and_then(|id| scene.states.get(id).copied()),
        label,
        drain: drain.filter(|_| scene.object.shard.is_some()),
        reason: reason(scene, &role, owner),
    }
}

fn reason(scene: &Scene<'_>, role: &Role, owner: Option<&InstanceId>) -> Reason {
    let is_ready = |id: &InstanceId| scene.states.get(id) == Some(&State::Ready);
    let target = match owner {
        _ if !scene.is_selected => Target::Outside,
        Some(id) => Target::Instance { id, is_ready: is_ready(id) },
        None => Target::NoInstance,
    };
    let owner = scene.object.shard.as_ref().map(|id| match scene.states.get(id).copied() {
        Some(State::Ready) => Owner::Ready,
        Some(state) if state.is_gone() => Owner::Gone { is_held: state == State::Dead },
        _ => Owner::Silent,
    });
    let verdict = match (role, owner) {
        (Role::Foreign, _) => return Reason::NotOfTheRing,
        (Role::Child { .. }, None | Some(Owner::Ready | Owner::Silent)) => {
            super::handover::judge_child(scene.object, scene.parent, is_ready)
        }
        _ => judge(&Question {
            object: scene.object,
            target,
            owner,
            force: scene.force,
            is_harmless: scene.is_fenced,
            now: scene.now,
        }),
    };
    match verdict {
        Verdict::Settled => Reason::Settled,
        Verdict::Write(_) => Reason::Sharder,
        Verdict::Wait(wait) => Reason::Waits(wait),
    }
}

fn drain_left(drain: Drain, now: Timestamp) -> DrainLeft {
    let Drain::Until(seconds) = drain else { return DrainLeft::Unreadable };
    let at = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    match until(now, at.unwrap_or(Timestamp::MAX)) {
        Duration::ZERO => DrainLeft::Over,
        left => DrainLeft::For(left),
    }
}

// === impl Explanation ===

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(key) = &self.key else { return writeln!(f, "waits for    {}", self.reason) };
        writeln!(f, "key          {key}")?;
        if let Some(parent) = &self.counts_as {
            writeln!(f, "counts as    {parent}")?;
        }
        if let Some(SlotId(slot)) = self.slot {
            writeln!(f, "slot         {slot}")?;
        }
        let table_owner = self.table_owner.as_ref().map_or("nobody", InstanceId::as_str);
        writeln!(f, "belongs to   {table_owner}")?;
        match (&self.label, self.label_state) {
            (None, _) => writeln!(f, "label        none")?,
            (Some(label), Some(state)) => writeln!(f, "label        {label} ({})", state.as_str())?,
            (Some(label), None) => writeln!(f, "label        {label} (no Lease)")?,
        }
        match self.drain {
            None => {}
            Some(DrainLeft::For(left)) => writeln!(f, "draining     {} s left", left.as_secs())?,
            Some(DrainLeft::Over) => writeln!(f, "draining     overdue")?,
            Some(DrainLeft::Unreadable) => writeln!(f, "draining     without a deadline")?,
        }
        writeln!(f, "waits for    {}", self.reason)
    }
}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotOfTheRing => "nothing: it does not belong to the ring",
            Self::Settled => "nothing",
            Self::Sharder => "the sharder, which sees to it next",
            Self::Waits(Wait::Instance) => "an instance to join",
            Self::Waits(Wait::Target) => "the instance it belongs to, to be ready",
            Self::Waits(Wait::Acknowledgement { .. }) => "its owner to give it up",
            Self::Waits(Wait::Overdue) => {
                "its owner to give it up; it is overdue and not safe to take"
            }
            Self::Waits(Wait::Owner) => "its silent owner to return or be declared dead",
            Self::Waits(Wait::Hold) => "the sharder to hold the Lease of its former owner",
            Self::Waits(Wait::Parent) => "its parent to settle",
        })
    }
}
