//! The class of one node or instance, from what is read and what is remembered of it. Decides nothing,
//! and knows nothing of the others.

use std::time::Duration;

use jiff::Timestamp;

use crate::class::Class;
use crate::config::Times;
use crate::facts::{ConditionStatus, InstanceState, Node};
use crate::names;
use crate::readiness::Readiness;
use crate::state::{Deletion, InstanceMemory, NodeMemory, Presence};
use crate::time::{elapsed, later};

/// A node whose conditions changed no later than this after its creation was never Ready.
const NEVER_READY: Duration = Duration::from_mins(1);

/// Everything a node's class depends on.
#[derive(Clone, Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) node: &'a Node,
    /// Not in the future.
    pub(crate) created: Timestamp,
    pub(crate) readiness: Readiness,
    pub(crate) presence: Presence,
    pub(crate) deletion: Option<&'a Deletion>,
    pub(crate) memory: Option<&'a NodeMemory>,
    pub(crate) times: &'a Times,
    pub(crate) now: Timestamp,
}

// === impl Sight ===

impl Sight<'_> {
    pub(crate) fn class(&self) -> Class {
        let is_tainted = self.node.taint(names::TO_BE_DELETED).is_some();
        let is_handed_over = self.deletion.is_some() || self.presence == Presence::Deleting;
        let is_gone = match self.presence {
            Presence::Absent => true,
            Presence::Unknown => is_tainted,
            Presence::Listed | Presence::Deleting => false,
        };
        if is_gone {
            Class::Gone
        } else if is_tainted || is_handed_over {
            Class::Leaving
        } else if self.is_suspended() {
            Class::Suspended
        } else if self.readiness.is_ready() {
            Class::Ready
        } else if self.now < self.startup_end() {
            Class::Starting
        } else if self.was_ready() {
            Class::Unready
        } else {
            Class::BrokenStart
        }
    }

    /// Since when it has this class. Times that Kubernetes keeps are the better ones, unless they are
    /// from before the class it had last.
    pub(crate) fn since(&self, class: Class) -> Timestamp {
        if let Some(memory) = self.memory
            && memory.class == class
        {
            return memory.since;
        }
        let kept = self.kept_since(class).min(self.now);
        let is_late = self.memory.is_some_and(|memory| memory.since > kept);
        if is_late { self.now } else { kept }
    }

    fn kept_since(&self, class: Class) -> Timestamp {
        let transition = self.readiness.transition.unwrap_or(self.created);
        match class {
            Class::Leaving => self.leaving_since(),
            Class::Suspended => {
                let condition = self.node.conditions.get(names::SUSPENDED);
                condition.and_then(|it| it.last_transition).unwrap_or(self.now)
            }
            Class::Ready => transition,
            Class::Starting => self.created,
            Class::BrokenStart => self.startup_end(),
            Class::Unready if self.readiness.is_dated() => transition.max(self.startup_end()),
            _ => self.now,
        }
    }

    fn leaving_since(&self) -> Timestamp {
        let handed_over = self.deletion.map(|deletion| deletion.opened);
        drain_began(self.node).or(handed_over).unwrap_or(self.now)
    }

    /// The moment from which its unreadiness is counted.
    pub(crate) fn unready_since(&self, since: Timestamp) -> Timestamp {
        let transition = self.readiness.transition.unwrap_or(self.created).min(self.now);
        if self.readiness.is_dated() { transition } else { transition.max(since) }
    }

    /// Whether it was ever Ready: by memory, or else because its conditions changed later than those
    /// of a machine that never comes up. If none of them is bad, an old node is believed to have been.
    pub(crate) fn was_ready(&self) -> bool {
        let transition = self.readiness.transition.unwrap_or(self.created);
        match self.memory {
            _ if self.readiness.is_ready() => true,
            Some(memory) => memory.was_ready,
            None if !self.readiness.is_dated() => self.now >= self.startup_end(),
            None => elapsed(self.created, transition.min(self.now)) > NEVER_READY,
        }
    }

    pub(crate) fn startup_end(&self) -> Timestamp {
        later(self.created, self.times.startup)
    }

    fn is_suspended(&self) -> bool {
        let condition = self.node.conditions.get(names::SUSPENDED);
        condition.is_some_and(|it| it.status == ConditionStatus::True)
    }
}

/// When the drain of a node began, by the value of its taint.
pub(crate) fn drain_began(node: &Node) -> Option<Timestamp> {
    let seconds = node.taint(names::TO_BE_DELETED)?.value.parse().ok()?;
    Timestamp::from_second(seconds).ok()
}

/// The class of an instance without Node.
pub(crate) fn instance_class(
    instance: &InstanceMemory,
    is_handed_over: bool,
    times: &Times,
    now: Timestamp,
) -> Class {
    if instance.state == Some(InstanceState::Deleting) || is_handed_over {
        Class::CloudDeleting
    } else if instance.error.is_some() {
        Class::CreateFailed
    } else if now < later(instance.first_listed, times.provision) {
        Class::Unregistered
    } else {
        Class::LongUnregistered
    }
}
