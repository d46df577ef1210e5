//! Which checkpoints are there, and which are due. A checkpoint is what is left of a node's labels
//! when nobody saw it go, so one of an earlier incarnation is only written over once that one's end
//! was told.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::index::Index;
use crate::core::{
    checkpoint::{Checkpoint, CheckpointError, CheckpointMeta, digest},
    names::NodeHash,
    object::{Document, LiveNode, Uid},
    rank::Rank,
    rv::ResourceVersion,
};

/// How long to wait before trying again, when a checkpoint could not be written or may not be yet.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The checkpoints on the server, and the nodes whose labels are in none.
#[derive(Debug)]
pub struct Checkpoints {
    delay: Duration,
    saved: BTreeMap<NodeHash, Saved>,
    /// Since when a node's labels are in no checkpoint.
    unsaved: BTreeMap<NodeHash, Instant>,
    /// When the unsaved are to be written, soonest first; without those being written.
    due: BTreeSet<(Instant, NodeHash)>,
    /// Checkpoints of a history that is no more, however new they claim to be.
    doubted: BTreeSet<NodeHash>,
}

/// A checkpoint on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub meta: CheckpointMeta,
    /// The ConfigMap that may be written over or removed, as it was seen.
    pub object_uid: Option<Uid>,
    pub object_rv: Option<String>,
    /// What it takes, about.
    pub bytes: usize,
}

/// What to do with the checkpoint of a living node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It has the labels, or newer ones than we know of.
    Nothing,
    Create,
    /// Only if it is still this one.
    Replace(Saved),
    /// It has the last labels of an incarnation whose end nobody told: that first.
    Recover(Saved),
}

// === impl Checkpoints ===

impl Checkpoints {
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self {
            delay,
            saved: BTreeMap::new(),
            unsaved: BTreeMap::new(),
            due: BTreeSet::new(),
            doubted: BTreeSet::new(),
        }
    }

    /// A node has labels that its checkpoint may not have. The first such change sets the time.
    pub fn on_changed(&mut self, node: &NodeHash, rank: Rank, now: Instant) {
        if !self.unsaved.contains_key(node) {
            self.unsaved.insert(node.clone(), now);
            self.due.insert((now + self.delay + rank.seconds(), node.clone()));
        }
    }

    /// A checkpoint was seen on the server.
    pub fn on_seen(&mut self, saved: Saved) {
        let node = saved.node_hash();
        self.doubted.remove(&node);
        self.saved.insert(node, saved);
    }

    pub fn on_removed(&mut self, node: &NodeHash) {
        self.doubted.remove(node);
        self.saved.remove(node);
    }

    /// The server has exactly these.
    pub fn on_listed(&mut self, all: Vec<Saved>) {
        self.saved.clear();
        self.doubted.clear();
        all.into_iter().for_each(|saved| self.on_seen(saved));
    }

    /// The server's history went back to this version.
    pub fn on_went_back(&mut self, to: &ResourceVersion) {
        let above = self.saved.iter().filter(|(_, saved)| saved.meta.rv > *to);
        self.doubted = above.map(|(node, _)| node.clone()).collect();
    }

    /// The next node whose checkpoint is to be looked at. It is not given again before
    /// [`on_settled`](Self::on_settled) or [`on_postponed`](Self::on_postponed).
    pub fn take_due(&mut self, now: Instant) -> Option<NodeHash> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        self.due.pop_first().map(|(_, node)| node)
    }

    /// A node that was due needs nothing more.
    pub fn on_settled(&mut self, node: &NodeHash) {
        self.unsaved.remove(node);
    }

    /// A node that was due has to be looked at again.
    pub fn on_postponed(&mut self, node: &NodeHash, now: Instant) {
        self.due.insert((now + RETRY_AFTER, node.clone()));
    }

    /// A node that was due has nothing yet that is to be saved: it is looked at again, and its labels
    /// do not count as unsaved until then.
    pub fn on_nothing_yet(&mut self, node: &NodeHash, now: Instant) {
        self.unsaved.insert(node.clone(), now);
        self.on_postponed(node, now);
    }

    #[must_use]
    pub fn plan(&self, live: &LiveNode, index: &Index) -> Plan {
        let node = NodeHash::of(&live.name);
        let Some(saved) = self.saved.get(&node) else { return Plan::Create };
        let is_ahead = saved.meta.rv > live.rv && !self.doubted.contains(&node);
        if saved.covers(live) || is_ahead {
            Plan::Nothing
        } else if saved.meta.uid == live.uid || index.is_gone(&saved.meta.uid) {
            Plan::Replace(saved.clone())
        } else {
            Plan::Recover(saved.clone())
        }
    }

    #[must_use]
    pub fn get(&self, node: &NodeHash) -> Option<&Saved> {
        self.saved.get(node)
    }

    pub fn saved(&self) -> impl Iterator<Item = (&NodeHash, &Saved)> {
        self.saved.iter()
    }

    /// The size of all of them, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.saved.values().map(|saved| saved.bytes).sum()
    }

    /// For how long some node's labels have been in no checkpoint.
    #[must_use]
    pub fn lag(&self, now: Instant) -> Duration {
        let oldest = self.unsaved.values().min();
        oldest.map_or(Duration::ZERO, |since| now.saturating_duration_since(*since))
    }
}

// === impl Saved ===

impl Saved {
    /// From a ConfigMap, of which the metadata is enough.
    pub fn decode(document: &Document) -> Result<Self, CheckpointError> {
        Ok(Self {
            meta: CheckpointMeta::decode(document)?,
            object_uid: document.uid.clone(),
            object_rv: document.rv.clone(),
            bytes: document.bytes(),
        })
    }

    #[must_use]
    pub fn node_hash(&self) -> NodeHash {
        NodeHash::of(&self.meta.node)
    }

    /// Whether it has what the node has now.
    fn covers(&self, live: &LiveNode) -> bool {
        self.meta.uid == live.uid && self.meta.digest == digest(&Checkpoint::of(live).snapshot)
    }
}
