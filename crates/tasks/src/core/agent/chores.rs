//! What is done now and then: sweeping, forgetting old tasks, telling what is reserved.

use super::Agent;
use super::writes::Purpose;
use crate::core::admission::Hindrance;
use crate::core::amounts::Amounts;
use crate::core::gc;
use crate::core::id::{NodeId, TaskId};
use crate::core::keys::Key;
use crate::core::node::{Node, TELL_EVERY};
use crate::core::rank::chosen;
use crate::core::sweep::{self, SWEEP_EVERY};
use crate::core::time::{Boottime, Epoch, Now};
use crate::core::transition::{Batch, delete};
use crate::core::txn::{Answer, Compare, Op, Txn};

/// When each is due next, and what was told last.
#[derive(Debug, Default)]
pub(super) struct Chores {
    sweep_at: Boottime,
    gc_at: Boottime,
    tell_at: Boottime,
    told: Option<(Amounts, bool, Option<Hindrance>)>,
}

// === impl Chores ===

impl Chores {
    /// A sweep at once: a node that has just come may be the only one.
    pub(super) fn on_registered(&mut self, now: Boottime) {
        *self = Self { sweep_at: now, gc_at: now + gc::GC_EVERY, tell_at: now, told: None };
    }

    /// What was told last may not have been heard.
    pub(super) fn on_not_told(&mut self) {
        self.told = None;
    }
}

// === impl Agent ===

impl Agent {
    pub(super) fn do_chores(&mut self, now: Now) {
        if self.held_claimant(now).is_none() {
            return;
        }
        if self.chores.sweep_at <= now.boot {
            self.chores.sweep_at = now.boot + SWEEP_EVERY;
            self.send(sweep::request(), Purpose::Sweep);
        }
        if self.chores.gc_at <= now.boot {
            self.chores.gc_at = now.boot + gc::GC_EVERY;
            self.forget_old(now);
        }
        if self.chores.tell_at <= now.boot {
            self.tell(now);
        }
        let next = self.chores.sweep_at.min(self.chores.gc_at);
        self.wake_by(next);
    }

    /// One live node is enough.
    fn forget_old(&mut self, now: Now) {
        let me = self.node_id();
        if chosen(gc::CHORE, self.cache.nodes().map(|node| node.id)) != me {
            return;
        }
        let before = gc::horizon(Epoch::of(now.wall));
        let old: Vec<TaskId> = gc::choose(self.cache.ended(), before, gc::KEPT_MAX).collect();
        let keys = old.into_iter().filter_map(|id| self.cache.ended_key(id));
        let plans = keys.filter_map(|(key, modified)| delete(key, modified).ok()).collect();
        for batch in Batch::split(plans) {
            self.send(batch.txn, Purpose::Delete);
        }
    }

    /// Tells the others what is reserved here and what hinders, if that is news. The key must still be the one that
    /// was created with the lease.
    fn tell(&mut self, now: Now) {
        let news = (self.ledger.reserved(), self.drain.is_some(), self.hindrance);
        let lease = self.registration.lease_id();
        let (Some(claimant), Some(lease)) = (self.registration.claimant(), lease) else { return };
        if self.chores.told == Some(news) {
            return;
        }
        let node = claimant.node;
        let key = Key::Node(node);
        let described = Node { reserved_at: now.wall, ..self.described(node) };
        let txn = Txn {
            compares: vec![Compare::CreatedAt(key, claimant.registered)],
            then: vec![Op::PutLeased(key, described.encode(), lease)],
            otherwise: Vec::new(),
        };
        self.chores.told = Some(news);
        self.chores.tell_at = now.boot + TELL_EVERY;
        self.send(txn, Purpose::Tell { node });
    }

    /// The node's key is not what it was: somebody else is right about whether it lives. An answer that
    /// comes after the next registration says nothing about that one.
    pub(super) fn on_told(&mut self, told: NodeId, answer: &Answer) {
        if !answer.succeeded && self.node_id() == Some(told) {
            self.fence();
        }
    }
}
