//! What to tell when events were missed: what is remembered against what is there.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{checkpoints::Saved, index::Index, post::Post};
use crate::core::{
    ledger::Ledger,
    names::NodeHash,
    object::{LiveNode, Uid},
    rv::ResourceVersion,
    settle::is_due,
    transaction::Source,
};

/// What the server has, read in the order of the fields.
#[derive(Debug)]
pub struct Listing {
    /// Where the nodes were read, and a watch goes on.
    pub position: ResourceVersion,
    pub nodes: Vec<LiveNode>,
    pub checkpoints: Vec<Saved>,
    /// The bookkeeping of records, by the node's name; without what cannot be read.
    pub records: BTreeMap<String, Ledger>,
    /// Incarnations that have a transaction in the queue.
    pub queued: BTreeSet<Uid>,
}

/// Until when stored labels are given to a node that returns.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub period: SignedDuration,
    pub now: Timestamp,
}

/// The last that is known of an incarnation that is no more.
struct Lost<'a> {
    rv: &'a ResourceVersion,
    uid: &'a Uid,
    post: Post,
}

/// The posts, per node in their order: first the ends that nobody saw, then what lives and waits for
/// its labels. Nobody else is told of, so that a restart restores nothing again.
#[must_use]
pub fn plan(index: &Index, listing: &Listing, retention: Retention) -> Vec<Post> {
    let ends = ends(index, listing).into_values().flat_map(|mut of_node| {
        of_node.sort_by_key(|lost| lost.rv);
        of_node.into_iter().map(|lost| lost.post)
    });
    let Retention { period, now } = retention;
    let waits = |node: &&LiveNode| {
        let ledger = listing.records.get(&node.name);
        ledger.is_some_and(|ledger| is_due(ledger, node, period, now))
            && !listing.queued.contains(&node.uid)
    };
    let arrivals = listing.nodes.iter().filter(waits);
    ends.chain(arrivals.map(|node| Post::added(node, Source::List))).collect()
}

fn ends<'a>(index: &'a Index, listing: &'a Listing) -> BTreeMap<NodeHash, Vec<Lost<'a>>> {
    let alive: BTreeSet<&Uid> = listing.nodes.iter().map(|node| &node.uid).collect();
    let is_lost = |node: &str, uid: &Uid| {
        !alive.contains(uid) && !listing.is_stored(node, uid) && !index.is_gone(uid)
    };
    let mut ends: BTreeMap<NodeHash, Vec<Lost<'_>>> = BTreeMap::new();
    for (hash, known) in index.nodes().filter(|(_, known)| is_lost(&known.name, &known.uid)) {
        let post = Post::deleted(known, Source::List);
        ends.entry(hash.clone()).or_default().push(Lost { rv: &known.rv, uid: &known.uid, post });
    }
    let saved = listing.checkpoints.iter().map(|saved| &saved.meta);
    for meta in saved.filter(|meta| is_lost(&meta.node, &meta.uid)) {
        let hash = NodeHash::of(&meta.node);
        let post = Post::checkpointed(hash.clone(), meta.uid.clone());
        let of_node = ends.entry(hash).or_default();
        let is_newest = |lost: &Lost<'_>| lost.uid == &meta.uid && *lost.rv >= meta.rv;
        if !of_node.iter().any(is_newest) {
            of_node.retain(|lost| lost.uid != &meta.uid);
            of_node.push(Lost { rv: &meta.rv, uid: &meta.uid, post });
        }
    }
    ends
}

// === impl Listing ===

impl Listing {
    /// Whether these are the labels that the node's record has.
    #[must_use]
    pub fn is_stored(&self, node: &str, uid: &Uid) -> bool {
        self.records.get(node).is_some_and(|ledger| ledger.stored_uid.as_ref() == Some(uid))
    }
}
