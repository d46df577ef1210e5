//! The hourly look at checkpoints of nodes that are gone: the last net under every deletion that was
//! missed. Nobody else removes checkpoints.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{
    checkpoints::{Checkpoints, Saved},
    index::Index,
    post::Post,
};
use crate::core::{names::NodeHash, object::Uid, rv::ResourceVersion};

/// How often to look.
pub const SWEEP_EVERY: Duration = Duration::from_hours(1);

/// The first look comes soon after the start: it also shows which living nodes lack a checkpoint.
pub const SWEEP_FIRST: Duration = Duration::from_secs(60);

/// When to look, and what a look has left to do.
#[derive(Debug)]
pub struct Sweep {
    next: Instant,
    /// Incarnations that are being told of; their checkpoints go after that.
    telling: BTreeMap<Uid, NodeHash>,
}

/// What there is.
#[derive(Debug)]
pub struct Findings<'a> {
    pub checkpoints: &'a Checkpoints,
    pub alive: &'a BTreeSet<Uid>,
    /// Where the living were listed. Whoever was seen later may have been born later.
    pub position: &'a ResourceVersion,
    /// Incarnations whose labels are stored.
    pub stored: &'a BTreeSet<Uid>,
    pub index: &'a Index,
}

/// What a look decided.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub posts: Vec<Post>,
    /// Their end was told already.
    pub removals: Vec<Saved>,
}

// === impl Sweep ===

impl Sweep {
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { next: now + SWEEP_FIRST, telling: BTreeMap::new() }
    }

    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// A look was begun; the next one is an hour later, whatever becomes of it.
    pub fn on_begun(&mut self, now: Instant) {
        self.next = now + SWEEP_EVERY;
    }

    /// Decides about the checkpoints that are `mine` to look after.
    pub fn plan(&mut self, findings: &Findings<'_>, mine: impl Fn(&NodeHash) -> bool) -> Plan {
        let mut plan = Plan::default();
        // A cluster without nodes is less likely than a list that went wrong.
        if findings.alive.is_empty() {
            return plan;
        }
        let dead = findings.checkpoints.saved().filter(|(node, saved)| {
            let meta = &saved.meta;
            meta.rv <= *findings.position && !findings.alive.contains(&meta.uid) && mine(node)
        });
        for (node, saved) in dead {
            let uid = &saved.meta.uid;
            if findings.stored.contains(uid) || findings.index.is_gone(uid) {
                plan.removals.push(saved.clone());
            } else {
                plan.posts.push(Post::checkpointed(node.clone(), uid.clone()));
                self.telling.insert(uid.clone(), node.clone());
            }
        }
        plan
    }

    /// The end of an incarnation was told. Returns whose checkpoint may go.
    pub fn on_told(&mut self, uid: &Uid) -> Option<NodeHash> {
        self.telling.remove(uid)
    }
}
