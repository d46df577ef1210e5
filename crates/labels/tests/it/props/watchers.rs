//! Two naive watchers: each posts the events it has read in order, and what it can recover of those
//! that nobody saw.

use jiff::Timestamp;
use labels::core::{
    checkpoint::Checkpoint,
    ledger::Ledger,
    names::{NodeHash, TransactionName},
    policy::Policy,
    settle::is_due,
    snapshot::Snapshot,
    transaction::{Kind, Source, Transaction},
};

use chance::Chance;

use super::cluster::{Cluster, NODE};

pub(crate) struct Watchers {
    /// How many events each has posted.
    cursors: [usize; 2],
    pub(crate) are_up: bool,
    /// In permutations: which events are posted.
    posted: Vec<usize>,
}

// === impl Watchers ===

impl Watchers {
    pub(crate) fn new() -> Self {
        Self { cursors: [0, 0], are_up: true, posted: Vec::new() }
    }

    /// How many events are posted by any of them.
    pub(crate) fn reached(&self) -> usize {
        self.cursors[0].max(self.cursors[1])
    }

    pub(crate) fn is_behind(&self, cluster: &Cluster) -> bool {
        self.cursors.iter().any(|cursor| *cursor < cluster.events.len())
    }

    /// One of them posts its next event; it may have been posted, worked off and deleted already.
    pub(crate) fn post_next(&mut self, chance: &mut Chance, cluster: &mut Cluster) {
        let cursor = &mut self.cursors[chance.below(2)];
        if let Some(event) = cluster.events.get(*cursor).cloned() {
            cluster.post(&event);
            *cursor += 1;
        }
    }

    /// An `added` that nobody has posted overtakes what was before it.
    pub(crate) fn overtake(&self, chance: &mut Chance, cluster: &mut Cluster) {
        let waiting = cluster.events.get(self.reached()..).unwrap_or_default();
        let added: Vec<&Transaction> =
            waiting.iter().filter(|event| event.kind == Kind::Added).collect();
        if !added.is_empty() {
            let event = (*chance.pick(&added)).clone();
            cluster.post(&event);
        }
    }

    /// Any event that was not posted yet.
    pub(crate) fn post_any(&mut self, chance: &mut Chance, cluster: &mut Cluster) {
        let all = 0..cluster.events.len();
        let waiting: Vec<usize> = all.filter(|event| !self.posted.contains(event)).collect();
        if !waiting.is_empty() {
            let picked = *chance.pick(&waiting);
            self.posted.push(picked);
            cluster.post(&cluster.events[picked].clone());
        }
        self.cursors = [self.posted.len(); 2];
    }

    /// Only once everything before is posted: else the checkpoint of the next incarnation could
    /// replace the only trace of one whose deletion waits. Says whether the model may reckon with it:
    /// also where it is left out because a processor is about to restore the labels, which must make
    /// no difference.
    pub(crate) fn checkpoint(&self, cluster: &mut Cluster) -> bool {
        let is_due = self.are_up && self.reached() == cluster.events.len();
        let Some(live) = cluster.live().filter(|_| is_due) else { return false };
        let known = cluster.checkpoint.as_ref().and_then(|known| known.snapshot.uid.as_ref());
        let is_return = known.is_some_and(|uid| *uid != live.uid);
        let awaits_restore = is_return && live.marker.is_none() && !cluster.is_worked_off();
        if !awaits_restore {
            cluster.checkpoint = Some(Checkpoint::of(&live));
        }
        true
    }

    /// Comes back after the API server has forgotten the events in between.
    pub(crate) fn relist(&mut self, cluster: &mut Cluster) {
        self.are_up = true;
        self.cursors = [cluster.events.len(); 2];
        let ledger = cluster.record.as_ref().map(|record| Ledger::decode(&record.annotations));
        let ledger = ledger.transpose().expect("our own bookkeeping");
        let stored = ledger.as_ref().and_then(|ledger| ledger.stored_uid.clone());
        let live = cluster.live();
        if let Some(Checkpoint { snapshot, created }) = cluster.checkpoint.clone() {
            let is_alive = live.as_ref().map(|live| &live.uid) == snapshot.uid.as_ref();
            if !is_alive && snapshot.uid != stored {
                cluster.post(&recovered(cluster, snapshot, created));
            }
        }
        let retention = Policy::default().retention;
        let is_due = |live| ledger.is_some_and(|it| is_due(&it, live, retention, cluster.now()));
        if live.as_ref().is_some_and(is_due) {
            let added =
                cluster.node.as_ref().map(|node| node.transaction(Source::List, Kind::Added));
            cluster.post(&added.expect("it lives"));
        }
    }
}

/// The end of an incarnation that only a checkpoint tells of. It is named with the version that was
/// last seen, or with the next where that one is the node's arrival, still queued.
fn recovered(cluster: &Cluster, last: Snapshot, created: Timestamp) -> Transaction {
    let named = |rv| TransactionName::new(NodeHash::of(NODE), rv);
    let queued = cluster.queue.get(&named(last.rv.clone()));
    let is_arrival = queued.is_some_and(|document| document.data["type"] == "added");
    let rv = if is_arrival { last.rv.successor().expect("small") } else { last.rv.clone() };
    Transaction {
        name: named(rv),
        node: NODE.to_owned(),
        uid: last.uid.clone(),
        created: Some(created),
        source: Some(Source::Checkpoint),
        kind: Kind::Deleted(last),
    }
}
