//! How things are after a turn, told to everybody whom it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use std::time::Duration;

use super::Owner;
use crate::core::fsck::Absences;
use crate::core::id::NodeId;
use crate::core::lease::KILL_WITHIN;
use crate::core::time::{Boottime, Now};
use crate::node::audience::Standing;

/// Since when nodes with tasks have been seen to be gone.
#[derive(Debug, Default)]
pub(super) struct Absent {
    since: BTreeMap<NodeId, Boottime>,
}

/// Since when the node may not run anything, and what runs should be dead.
#[derive(Debug, Default)]
pub(super) struct Fenced {
    since: Option<Boottime>,
}

// === impl Owner ===

impl Owner {
    pub(super) fn publish(&mut self, now: Now) {
        self.look_after_fence(now.boot);
        self.tell_hindrance();
        self.give_orders();
        let cache = self.parts.agent.cache();
        self.absent.follow(cache.lost().filter_map(|task| task.node()), now.boot);

        let metrics = &self.parts.metrics;
        metrics.set_lengths(cache.queue_len(), cache.running_len());
        metrics.set_lease_remaining(self.deadline.since(now.boot));
        let ledger = self.parts.agent.ledger();
        metrics.set_amounts(&ledger.capacity(), &ledger.reserved());
        self.parts.audience.set_standing(Standing {
            node: self.parts.agent.node_id(),
            is_informed: self.lists.is_complete(),
            is_draining: self.is_draining,
            has_left: self.has_left,
        });
    }

    /// Says so when the machine itself begins or ceases to keep tasks from being taken.
    fn tell_hindrance(&mut self) {
        let before = std::mem::replace(&mut self.hindrance, self.parts.agent.hindrance());
        match (before, self.hindrance) {
            (Some(before), Some(now)) if discriminant(&before) == discriminant(&now) => {}
            (_, Some(now)) => {
                tracing::warn!(reason = %now, "tasks that would fit are not taken");
            }
            (Some(_), None) => tracing::info!("tasks that fit are taken again"),
            (None, None) => {}
        }
    }

    /// The keeper keeps the lease of the present registration, and no other.
    fn give_orders(&self) {
        let node = self.parts.agent.node_id();
        let order = self.registered.filter(|(of, _)| Some(*of) == node).map(|(_, order)| order);
        let orders = &self.parts.sources.reins.orders;
        orders.send_if_modified(|given| std::mem::replace(given, order) != order);
    }

    /// Says so when the node is fenced, and goes on killing what does not die in time.
    fn look_after_fence(&mut self, now: Boottime) {
        let before = self.parts.audience.standing().node;
        if self.parts.agent.node_id().is_some() || self.has_left {
            self.fenced.since = None;
        } else if let Some(node) = before {
            tracing::warn!(%node, "fenced: everything is stopped");
            self.parts.metrics.on_fenced();
            self.fenced.since = Some(now);
        }
        let is_overdue = self.fenced.since.is_some_and(|since| now.since(since) > KILL_WITHIN);
        if is_overdue && self.parts.runs.has_live() {
            tracing::error!("what runs does not die; the node stays fenced");
            self.parts.runs.stop_all();
            self.fenced.since = Some(now);
        }
    }
}

// === impl Absent ===

impl Absent {
    fn follow(&mut self, gone: impl Iterator<Item = NodeId>, now: Boottime) {
        let gone: BTreeSet<NodeId> = gone.collect();
        self.since.retain(|node, _| gone.contains(node));
        for node in gone {
            self.since.entry(node).or_insert(now);
        }
    }

    pub(super) fn absences(&self, now: Boottime, ttl: Duration) -> Absences {
        let gone_for = self.since.iter().map(|(node, since)| (*node, now.since(*since)));
        Absences { gone_for: gone_for.collect(), ttl }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn absence_is_counted_from_when_it_was_first_seen() {
        let node = NodeId(Uuid::from_u128(1));
        let at = |seconds| Boottime(Duration::from_secs(seconds));
        let mut absent = Absent::default();
        absent.follow([node].into_iter(), at(10));
        absent.follow([node].into_iter(), at(15));
        let ttl = Duration::from_secs(10);
        assert_eq!(absent.absences(at(20), ttl).gone_for[&node], Duration::from_secs(10));
        absent.follow([].into_iter(), at(21));
        assert!(absent.absences(at(22), ttl).gone_for.is_empty());
    }
}
