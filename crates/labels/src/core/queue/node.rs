//! What waits for one node.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kubekit::backoff::Backoff;

use super::{Batch, Census, Entry, Seen, Wish};
use crate::core::{
    names::TransactionName,
    object::{Document, Uid},
    rv::ResourceVersion,
};

/// How long a node waits after its first failed turn.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// How long at most, however often it failed.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// One node's transactions, and where it stands.
#[derive(Debug)]
pub(super) struct NodeQueue {
    /// By the resource version in the name: the order in which they are worked off.
    pub(super) transactions: BTreeMap<ResourceVersion, Waiting>,
    pub(super) wish: Option<Wish>,
    pub(super) stage: Stage,
    pub(super) backoff: Backoff,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing to do; a new transaction makes it ready.
    Idle,
    /// Waits for a worker, longer if another processor is better placed.
    Ready { since: Instant },
    /// A worker has it.
    Busy,
    /// Waits for a moment; transactions that come meanwhile wait with it.
    Aside { until: Instant },
}

#[derive(Debug)]
pub(super) struct Waiting {
    name: TransactionName,
    pub(super) uid: Option<Uid>,
    pub(super) document: Option<Document>,
    pub(super) bytes: usize,
    created: Timestamp,
    pub(super) is_quarantined: bool,
}

// === impl NodeQueue ===

impl Default for NodeQueue {
    fn default() -> Self {
        Self {
            transactions: BTreeMap::new(),
            wish: None,
            stage: Stage::Idle,
            backoff: Backoff::new(BACKOFF_FIRST, BACKOFF_MAX),
        }
    }
}

impl NodeQueue {
    pub(super) fn insert(&mut self, seen: Seen) {
        let waiting = Waiting {
            name: seen.name.clone(),
            uid: seen.uid,
            document: seen.document,
            bytes: seen.bytes,
            created: seen.created,
            is_quarantined: seen.is_quarantined,
        };
        self.transactions.insert(seen.name.rv().clone(), waiting);
    }

    pub(super) fn has_work(&self) -> bool {
        self.wish.is_some() || self.pending().next().is_some()
    }

    pub(super) fn batch(&self) -> Batch {
        let entry = |waiting: &Waiting| Entry {
            name: waiting.name.clone(),
            uid: waiting.uid.clone(),
            document: waiting.document.clone(),
        };
        Batch { entries: self.pending().map(entry).collect(), wish: self.wish.clone() }
    }

    pub(super) fn count(&self, census: Census) -> Census {
        let pending = self.pending().count();
        let oldest = self.pending().map(|waiting| waiting.created).chain(census.oldest).min();
        Census {
            pending: census.pending + pending,
            quarantined: census.quarantined + self.transactions.len() - pending,
            oldest,
        }
    }

    fn pending(&self) -> impl Iterator<Item = &Waiting> {
        self.transactions.values().filter(|waiting| !waiting.is_quarantined)
    }
}
