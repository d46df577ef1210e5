//! What is looked after from time to time: nodes that an accident passed over, records and locks
//! that nobody needs any more. Decides from metadata; whoever carries it out reads again before it
//! writes, so a wrong guess here costs a look and nothing else.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

use super::{
    keys::{MANAGED_BY, MANAGER},
    ledger::Ledger,
    names::NodeHash,
    object::{Document, LiveNode},
    settle::is_due,
};

/// One record in so many may be collected in one pass: a mistake is noticed before all are gone.
const COLLECTED_SHARE: usize = 10;

/// A lock lasts seconds; one that nobody touched for so long belongs to nobody.
pub const LOCK_ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// Everything at one moment, read completely.
pub struct World<'a> {
    pub nodes: &'a [LiveNode],
    /// Records, without their data.
    pub records: &'a [Document],
    /// Nodes with queued transactions, quarantined ones included.
    pub queued: &'a dyn Fn(&NodeHash) -> bool,
    pub retention: SignedDuration,
    pub now: Timestamp,
}

/// What one pass found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Nodes to settle.
    pub settle: Vec<String>,
    /// Records to delete as they were read.
    pub collect: Vec<Document>,
    /// Live nodes that have a record.
    pub known: usize,
    /// Of these, the ones that have its labels.
    pub restored: usize,
}

/// Remembers from one pass to the next.
#[derive(Debug, Default)]
pub struct Resync {
    /// Records whose node was absent in the last pass.
    absent: BTreeSet<String>,
}

/// Remembers since when each lock has looked as it does.
#[derive(Debug, Default)]
pub struct Abandoned {
    seen: BTreeMap<String, (Option<String>, Instant)>,
}

// === impl Resync ===

impl Resync {
    pub fn pass(&mut self, world: &World<'_>) -> Plan {
        let nodes: BTreeMap<&str, &LiveNode> =
            world.nodes.iter().map(|node| (node.name.as_str(), node)).collect();
        let mut plan = Plan::default();
        let mut absent = BTreeSet::new();
        for record in world.records {
            match nodes.get(record.name.as_str()) {
                Some(node) => plan.on_live(record, node, world),
                None => {
                    absent.insert(record.name.clone());
                }
            }
        }
        plan.collect = self.collectable(&absent, world);
        self.absent = absent;
        plan
    }

    /// A cluster without nodes is a failed reading, whatever the answer said.
    fn collectable(&self, absent: &BTreeSet<String>, world: &World<'_>) -> Vec<Document> {
        if world.nodes.is_empty() {
            return Vec::new();
        }
        let is_collectable = |record: &&Document| {
            absent.contains(&record.name)
                && self.absent.contains(&record.name)
                && is_ours(record)
                && is_expired(record, world)
                && !(world.queued)(&NodeHash::of(&record.name))
        };
        let share = world.records.len().div_ceil(COLLECTED_SHARE);
        world.records.iter().filter(is_collectable).take(share).cloned().collect()
    }
}

// === impl Plan ===

impl Plan {
    fn on_live(&mut self, record: &Document, node: &LiveNode, world: &World<'_>) {
        self.known += 1;
        // What cannot be read is not written either, so settling would do nothing.
        let Ok(ledger) = Ledger::decode(&record.annotations) else { return };
        self.restored += usize::from(is_restored(&ledger, node));
        let is_due = is_due(&ledger, node, world.retention, world.now);
        if is_due || is_adoptable(&ledger, node) {
            self.settle.push(node.name.clone());
        }
    }
}

/// A record that a person wrote has no version in its bookkeeping; given once, it is given.
fn is_restored(ledger: &Ledger, node: &LiveNode) -> bool {
    let is_newest = |rv| ledger.stored_rv.as_ref().is_none_or(|stored| stored == rv);
    let given = ledger.restored.as_ref().filter(|given| given.uid == node.uid);
    given.is_some_and(|given| is_newest(&given.rv))
}

/// Such a record is marked, so that it is applied to the node's next incarnation and not to this.
fn is_adoptable(ledger: &Ledger, node: &LiveNode) -> bool {
    ledger.stored_uid.is_none() && !ledger.is_given_to(&node.uid) && !node.is_terminating
}

// === impl Abandoned ===

impl Abandoned {
    /// The locks that have not changed for an hour, of all there are.
    pub fn pass(&mut self, locks: &[Document], now: Instant) -> Vec<Document> {
        let seen = locks.iter().filter(|lock| is_ours(lock)).map(|lock| {
            let before = self.seen.get(&lock.name).filter(|(rv, _)| *rv == lock.rv);
            (lock.name.clone(), (lock.rv.clone(), before.map_or(now, |(_, since)| *since)))
        });
        self.seen = seen.collect();
        let is_abandoned = |lock: &&Document| {
            let seen = self.seen.get(&lock.name);
            seen.is_some_and(|(_, since)| now.duration_since(*since) >= LOCK_ABANDONED_AFTER)
        };
        locks.iter().filter(is_abandoned).cloned().collect()
    }
}

fn is_ours(document: &Document) -> bool {
    document.labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

/// A record that does not tell its age, because a person wrote it, has none.
fn is_expired(record: &Document, world: &World<'_>) -> bool {
    let ledger = Ledger::decode(&record.annotations);
    ledger.is_ok_and(|ledger| ledger.is_expired(world.retention, world.now))
}
