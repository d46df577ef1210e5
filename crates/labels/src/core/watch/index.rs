//! What a watcher remembers of each node, and what an event means against it.
//!
//! Events come in the order of their resource versions. The memory may be ahead of them: a list
//! taken while a watch still replays knows more. Then the memory stays, and the event is told all the
//! same.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{post::Post, recent::Recent};
use crate::core::{
    names::NodeHash,
    object::{LiveNode, Uid},
    transaction::Source,
};

/// Incarnations whose end was seen. Beyond them an end may be told twice, which changes nothing.
const GONE_MAX: usize = 20_000;

/// The nodes that are alive as far as events were read.
#[derive(Debug)]
pub struct Index {
    nodes: BTreeMap<NodeHash, LiveNode>,
    gone: Recent<Uid>,
}

/// A change of one node, as a watch tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    pub kind: EventKind,
    /// As it is after the change; of a deleted one, as it was last, at the deletion's own version.
    pub node: LiveNode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// What an event asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// In their order.
    pub posts: Vec<Post>,
    /// The node has labels that no checkpoint may have.
    pub is_changed: bool,
}

// === impl Index ===

impl Default for Index {
    fn default() -> Self {
        Self { nodes: BTreeMap::new(), gone: Recent::new(GONE_MAX) }
    }
}

impl Index {
    pub fn on_event(&mut self, event: NodeEvent) -> Outcome {
        let hash = NodeHash::of(&event.node.name);
        let known = self.nodes.get(&hash);
        if known.is_some_and(|known| known.rv >= event.node.rv) {
            return self.on_replayed(&event);
        }
        let replaced = known.filter(|known| known.uid != event.node.uid).cloned();
        let is_same = known.is_some_and(|known| {
            (&known.uid, &known.labels, &known.marker)
                == (&event.node.uid, &event.node.labels, &event.node.marker)
        });
        let mut posts: Vec<_> =
            replaced.iter().map(|known| Post::deleted(known, Source::Gap)).collect();
        posts.extend(event.to_post(replaced.is_some()));
        if let Some(replaced) = replaced {
            self.gone.insert(replaced.uid);
        }
        if event.kind == EventKind::Deleted {
            self.nodes.remove(&hash);
            self.gone.insert(event.node.uid);
            return Outcome { posts, is_changed: false };
        }
        // Who is alive after its end was read lives in another history than the one that was read.
        self.gone.remove(&event.node.uid);
        self.nodes.insert(hash, event.node);
        Outcome { posts, is_changed: !is_same }
    }

    /// Takes in a list of living nodes that is newer than the events read so far. Who is known stays
    /// as it is, so that events still find what they differ from. Returns those that were unknown.
    pub fn on_listed(&mut self, nodes: Vec<LiveNode>) -> Vec<NodeHash> {
        let mut unknown = Vec::new();
        for node in nodes {
            let hash = NodeHash::of(&node.name);
            if !self.nodes.contains_key(&hash) && !self.gone.contains(&node.uid) {
                self.nodes.insert(hash.clone(), node);
                unknown.push(hash);
            }
        }
        unknown
    }

    /// Forgets everything and begins with these. They live, whatever was read before: after a
    /// rollback of the server's storage an end that was told has not happened yet.
    pub fn on_relisted(&mut self, nodes: Vec<LiveNode>) {
        nodes.iter().for_each(|node| self.gone.remove(&node.uid));
        let known = std::mem::take(&mut self.nodes);
        self.nodes = nodes.into_iter().map(|node| (NodeHash::of(&node.name), node)).collect();
        for (hash, known) in known {
            if self.nodes.get(&hash).is_none_or(|alive| alive.uid != known.uid) {
                self.gone.insert(known.uid);
            }
        }
    }

    /// The end of this incarnation has been told from a checkpoint.
    pub fn on_recovered(&mut self, uid: Uid) {
        self.gone.insert(uid);
    }

    #[must_use]
    pub fn get(&self, node: &NodeHash) -> Option<&LiveNode> {
        self.nodes.get(node)
    }

    pub fn nodes(&self) -> impl Iterator<Item = (&NodeHash, &LiveNode)> {
        self.nodes.iter()
    }

    /// Whether the end of this incarnation has been read, and so is posted or waits to be. Which of
    /// the two, only the order of posts knows.
    #[must_use]
    pub fn is_gone(&self, uid: &Uid) -> bool {
        self.gone.contains(uid)
    }

    /// The memory is ahead: it learns nothing, but what happened is told.
    fn on_replayed(&mut self, event: &NodeEvent) -> Outcome {
        if event.kind == EventKind::Deleted {
            self.gone.insert(event.node.uid.clone());
        }
        Outcome { posts: event.to_post(false).into_iter().collect(), is_changed: false }
    }
}

// === impl NodeEvent ===

impl NodeEvent {
    /// A modification says nothing, unless it is the first sign of a new incarnation.
    fn to_post(&self, is_new: bool) -> Option<Post> {
        match self.kind {
            EventKind::Added => Some(Post::added(&self.node, Source::Watch)),
            EventKind::Modified if is_new => Some(Post::added(&self.node, Source::Gap)),
            EventKind::Modified => None,
            EventKind::Deleted => Some(Post::deleted(&self.node, Source::Watch)),
        }
    }
}
