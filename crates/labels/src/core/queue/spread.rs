//! Which node a processor takes next, so that several processors rarely ask for the same lock.
//!
//! Every processor sees every transaction. Those that know of each other have an order for each
//! node, another one for another node: the first takes it at once, the others only if it still
//! waits after a head start. They learn of each other from locks that are refused, so that nobody
//! has to announce itself, and one that is alone waits for nobody.
//!
//! ```text
//!   node x ready                    step               max
//!     │ first takes it               │ second would      │ everyone would
//!     ├──────────────────────────────┼───────────────────┼────────▶
//! ```
//!
//! It only saves requests: who is wrong about the others, or takes a node too early, is refused
//! the lock.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::core::{
    names::NodeHash,
    rank::{HeadStart, Rank},
};

/// Longer than a turn takes even in a storm, and in all less than the second within which a node
/// shall have its labels.
const TURN: HeadStart =
    HeadStart { step: Duration::from_millis(400), max: Duration::from_millis(800) };

/// How long a processor is reckoned with after it was met. While it is and no longer lives, its
/// nodes are late by a head start.
const REMEMBERED_FOR: Duration = Duration::from_mins(1);

/// Processors reckoned with. More would make nobody wait longer.
const PEERS_MAX: usize = 32;

/// A processor among others.
#[derive(Debug)]
pub(super) struct Spread {
    me: String,
    /// Where on the circle of hashes to begin with nodes that are due together, as all are after a
    /// list: each processor at a point of its own.
    start: u64,
    /// When they were last met.
    peers: BTreeMap<String, Instant>,
}

/// A node's place in the order in which this processor takes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) due: Instant,
    distance: u64,
    pub(super) node: NodeHash,
}

// === impl Spread ===

impl Spread {
    pub(super) fn new(me: &str) -> Self {
        Self { me: me.to_owned(), start: NodeHash::of(me).point(), peers: BTreeMap::new() }
    }

    /// The place of a node that is ready `since` then. It is never later than [`TURN`] allows, so
    /// that no node waits for ever, whoever was met.
    pub(super) fn place(&self, node: &NodeHash, since: Instant) -> Place {
        let rank = Rank::of(node.as_bytes(), &self.me, self.peers.keys().map(String::as_str));
        let distance = node.point().wrapping_sub(self.start);
        Place { due: since + rank.wait(TURN), distance, node: node.clone() }
    }

    /// Whether this changes places: another processor holds a lock, and was not known.
    pub(super) fn on_met(&mut self, peer: &str, now: Instant) -> bool {
        if peer == self.me {
            return false;
        }
        if let Some(met) = self.peers.get_mut(peer) {
            *met = now;
            return false;
        }
        let has_room = self.peers.len() < PEERS_MAX;
        if has_room {
            self.peers.insert(peer.to_owned(), now);
        }
        has_room
    }

    /// Whether this changes places: somebody was not met for long.
    pub(super) fn forget(&mut self, now: Instant) -> bool {
        let known = self.peers.len();
        self.peers.retain(|_, met| now.saturating_duration_since(*met) < REMEMBERED_FOR);
        self.peers.len() < known
    }
}
