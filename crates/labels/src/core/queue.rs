//! The transactions that wait, by node: fed by the watch on them, emptied by workers. It decides
//! whose turn it is and in which order a node's transactions are worked off; it never reads a
//! transaction's content, and knows no time or chance but what it is given.
//!
//! ```text
//!              on_seen, on_wish             due in pick
//!   (none) ───────────────────────▶ ready ─────────────────▶ busy
//!                                     ▲  ▲                     │ release
//!                          due in pick│  └──── more to do ─────┤
//!                                     │                        │
//!                                  aside ◀── refused, failed ──┘
//! ```
//!
//! A node without anything to do but quarantined transactions is idle: their label has to go first.

mod listed;
mod node;
mod spread;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::Timestamp;

pub use self::listed::Listed;
use self::{
    node::{NodeQueue, Stage},
    spread::{Place, Spread},
};
use super::{
    names::{NodeHash, TransactionName},
    object::{Document, Uid},
    settle::Cause,
};

/// Content kept beside the names. More is fetched when its turn comes: a storm of large nodes must
/// not take the memory of the process with it.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Names kept. The API server's own store ends near there; beyond it nothing new is taken in until
/// the queue is listed again, so that no later transaction overtakes one that was left out.
pub const TRANSACTIONS_MAX: usize = 200_000;

/// How long a node is set aside: about as long as another takes to work it off.
const ASIDE_MIN: Duration = Duration::from_millis(500);

/// Added to it by chance, so that those refused together do not come back together.
const ASIDE_SPREAD: Duration = Duration::from_secs(1);

/// The waiting transactions of all nodes.
#[derive(Debug)]
pub struct Queue {
    nodes: BTreeMap<NodeHash, NodeQueue>,
    /// Nodes to pick from, in the order of this processor.
    ready: BTreeSet<Place>,
    spread: Spread,
    /// Nodes that wait for a moment, soonest first.
    aside: BTreeSet<(Instant, NodeHash)>,
    payload_bytes_max: usize,
    transactions_max: usize,
    payload_bytes: usize,
    /// Of all transactions, whether their content is kept here or not.
    bytes: usize,
    transactions: usize,
    is_overflowing: bool,
}

/// A transaction as the watch or a list showed it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub name: TransactionName,
    /// Of the ConfigMap: another may take its name.
    pub uid: Option<Uid>,
    /// Absent where there was no room for it.
    pub document: Option<Document>,
    pub created: Timestamp,
    pub is_quarantined: bool,
    /// What the document takes in memory, about.
    pub bytes: usize,
}

/// A transaction to work off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: TransactionName,
    /// Of the ConfigMap: another may take its name.
    pub uid: Option<Uid>,
    /// Absent when there was no room for it; it has to be fetched.
    pub document: Option<Document>,
}

/// What a worker does under one reading of a node's record and of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// In the order of the resource versions in their names.
    pub entries: Vec<Entry>,
    pub wish: Option<Wish>,
}

/// Someone asks to settle a node, whether anything is queued for it or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub node: String,
    pub cause: Cause,
}

/// How a worker's turn with a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// Everything there was is done. What came meanwhile makes the node ready again.
    Done,
    /// Another works on the node, or changes it too often: it is set aside for a moment.
    Refused,
    /// Something failed that has nothing to do with the node's transactions: it is set aside, and
    /// longer each time.
    Failed,
}

/// The queue in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Transactions that wait, without quarantined ones.
    pub pending: usize,
    pub quarantined: usize,
    /// When the oldest pending one was created.
    pub oldest: Option<Timestamp>,
}

// === impl Queue ===

impl Queue {
    /// The queue of the processor that is called `me`.
    #[must_use]
    pub fn new(me: &str) -> Self {
        Self::bounded(me, PAYLOAD_BYTES_MAX, TRANSACTIONS_MAX)
    }

    fn bounded(me: &str, payload_bytes_max: usize, transactions_max: usize) -> Self {
        Self {
            nodes: BTreeMap::new(),
            ready: BTreeSet::new(),
            spread: Spread::new(me),
            aside: BTreeSet::new(),
            payload_bytes_max,
            transactions_max,
            payload_bytes: 0,
            bytes: 0,
            transactions: 0,
            is_overflowing: false,
        }
    }

    /// A transaction was created or changed.
    pub fn on_seen(&mut self, mut seen: Seen, now: Instant) {
        self.forget(&seen.name);
        self.is_overflowing |= self.transactions >= self.transactions_max;
        if self.is_overflowing {
            return;
        }
        if self.payload_bytes + seen.bytes > self.payload_bytes_max {
            seen.document = None;
        }
        if seen.document.is_some() {
            self.payload_bytes += seen.bytes;
        }
        self.bytes += seen.bytes;
        self.transactions += 1;
        let hash = seen.name.node().clone();
        self.nodes.entry(hash.clone()).or_default().insert(seen);
        self.update(&hash, now);
    }

    /// A transaction is gone: deleted by us or by another. One that was posted under its name since
    /// then has another uid, and stays.
    pub fn on_gone(&mut self, name: &TransactionName, uid: Option<&Uid>) {
        let node = self.nodes.get(name.node());
        let waiting = node.and_then(|node| node.transactions.get(name.rv()));
        if waiting.is_some_and(|waiting| waiting.uid.as_ref() == uid) {
            self.forget(name);
            self.retire(name.node());
        }
    }

    /// A transaction was taken out of the queue. What the watch says of it comes later.
    pub fn on_quarantined(&mut self, name: &TransactionName) {
        let node = self.nodes.get_mut(name.node());
        if let Some(waiting) = node.and_then(|node| node.transactions.get_mut(name.rv())) {
            waiting.is_quarantined = true;
        }
        self.retire(name.node());
    }

    /// The queue is exactly what was listed: what is not among them is gone.
    pub fn on_listed(&mut self, listed: Listed, now: Instant) {
        let all = listed.all;
        self.is_overflowing = false;
        let listed: BTreeSet<TransactionName> = all.iter().map(|seen| seen.name.clone()).collect();
        let known: Vec<TransactionName> = self.names().collect();
        for gone in known.iter().filter(|name| !listed.contains(name)) {
            self.forget(gone);
            self.retire(gone.node());
        }
        for seen in all {
            self.on_seen(seen, now);
        }
    }

    /// The node is to be settled even if nothing is queued for it. The first wish counts until it is
    /// fulfilled.
    pub fn on_wish(&mut self, wish: Wish, now: Instant) {
        let hash = NodeHash::of(&wish.node);
        self.nodes.entry(hash.clone()).or_default().wish.get_or_insert(wish);
        self.update(&hash, now);
    }

    /// Another processor was found at work.
    pub fn on_met(&mut self, peer: &str, now: Instant) {
        if self.spread.on_met(peer, now) {
            self.place_anew();
        }
    }

    /// Gives the first ready node to the caller alone, until it releases it.
    pub fn pick(&mut self, now: Instant) -> Option<NodeHash> {
        if self.spread.forget(now) {
            self.place_anew();
        }
        self.wake(now);
        let picked = self.ready.first().filter(|place| place.due <= now)?.node.clone();
        self.ready.pop_first();
        self.node_mut(&picked).stage = Stage::Busy;
        Some(picked)
    }

    /// What there is to do for a node now. The node has to be read after this and not before:
    /// only then is it as new as the events that the transactions tell of.
    pub fn batch(&self, hash: &NodeHash) -> Batch {
        self.nodes.get(hash).map_or_else(Batch::default, NodeQueue::batch)
    }

    /// A wish is fulfilled.
    pub fn on_settled(&mut self, hash: &NodeHash) {
        if let Some(node) = self.nodes.get_mut(hash) {
            node.wish = None;
        }
        self.retire(hash);
    }

    /// Ends a turn that began with [`pick`](Self::pick). `chance`, in 0..=1, spreads the waits.
    pub fn release(&mut self, hash: &NodeHash, end: TurnEnd, now: Instant, chance: f64) {
        let node = self.node_mut(hash);
        debug_assert_eq!(node.stage, Stage::Busy, "released without having been picked");
        node.stage = match end {
            TurnEnd::Done => {
                node.backoff.on_success();
                Stage::Idle
            }
            TurnEnd::Refused => {
                Stage::Aside { until: now + ASIDE_MIN + ASIDE_SPREAD.mul_f64(chance) }
            }
            TurnEnd::Failed => Stage::Aside { until: now + node.backoff.on_failure(chance) },
        };
        if let Stage::Aside { until } = node.stage {
            self.aside.insert((until, hash.clone()));
        }
        self.update(hash, now);
    }

    /// When the next node is due that is not yet.
    pub fn next_due(&self) -> Option<Instant> {
        let aside = self.aside.first().map(|(until, _)| *until);
        let ready = self.ready.first().map(|place| place.due);
        aside.into_iter().chain(ready).min()
    }

    /// Whether transactions were left out and the rest has shrunk enough to list anew.
    pub fn needs_listing(&self) -> bool {
        self.is_overflowing && self.transactions <= self.transactions_max / 2
    }

    /// The size of all transactions, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn census(&self) -> Census {
        self.nodes.values().fold(Census::default(), |census, node| node.count(census))
    }

    /// Whether a node has transactions, quarantined ones included.
    pub fn has_transactions(&self, hash: &NodeHash) -> bool {
        self.nodes.get(hash).is_some_and(|node| !node.transactions.is_empty())
    }

    fn names(&self) -> impl Iterator<Item = TransactionName> {
        self.nodes.iter().flat_map(|(hash, node)| {
            node.transactions.keys().map(|rv| TransactionName::new(hash.clone(), rv.clone()))
        })
    }

    fn node_mut(&mut self, hash: &NodeHash) -> &mut NodeQueue {
        self.nodes.get_mut(hash).expect("a node that is ready or busy is not dropped")
    }

    fn forget(&mut self, name: &TransactionName) {
        let node = self.nodes.get_mut(name.node());
        let Some(removed) = node.and_then(|node| node.transactions.remove(name.rv())) else {
            return;
        };
        self.transactions -= 1;
        self.bytes -= removed.bytes;
        if removed.document.is_some() {
            self.payload_bytes -= removed.bytes;
        }
    }

    /// Brings a node's stage in line with what it has to do. Who is busy or set aside stays so.
    fn update(&mut self, hash: &NodeHash, now: Instant) {
        let Some(node) = self.nodes.get_mut(hash) else { return };
        if node.stage == Stage::Idle && node.has_work() {
            node.stage = Stage::Ready { since: now };
            self.ready.insert(self.spread.place(hash, now));
        } else {
            self.retire(hash);
        }
    }

    /// The same after something was taken from it: it can only have less to do.
    fn retire(&mut self, hash: &NodeHash) {
        let Some(node) = self.nodes.get_mut(hash) else { return };
        if let Stage::Ready { since } = node.stage
            && !node.has_work()
        {
            node.stage = Stage::Idle;
            self.ready.remove(&self.spread.place(hash, since));
        }
        let is_droppable = node.stage == Stage::Idle && node.transactions.is_empty();
        if is_droppable && node.wish.is_none() {
            self.nodes.remove(hash);
        }
    }

    /// Makes those ready that were set aside until now.
    fn wake(&mut self, now: Instant) {
        while let Some((until, _)) = self.aside.first()
            && *until <= now
        {
            let (_, hash) = self.aside.pop_first().expect("just looked at");
            self.node_mut(&hash).stage = Stage::Idle;
            self.update(&hash, now);
        }
    }

    /// Puts those who are ready in the order that now holds.
    fn place_anew(&mut self) {
        let ready = self.nodes.iter().filter_map(|(hash, node)| match node.stage {
            Stage::Ready { since } => Some(self.spread.place(hash, since)),
            _ => None,
        });
        self.ready = ready.collect();
    }
}

// === impl Batch ===

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.wish.is_none()
    }
}
