//! Everything about one node, and what would happen next.

use jiff::Timestamp;
use serde::Serialize;

use super::{Admin, Error};
use crate::core::{
    checkpoint::Checkpoint,
    command::{Decision, Row},
    decide::{decide, poisoned},
    keys::QUARANTINED,
    ledger::Restored,
    names::{NodeHash, TransactionName},
    object::{Document, Labels, LiveNode, Marker, Uid},
    reading::Reading,
    record::{Record, Stored},
    rv::ResourceVersion,
    settle::{Cause, settle},
    transaction::Transaction,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Show {
    pub node: String,
    pub live: Option<Live>,
    pub record: Option<ShownRecord>,
    pub checkpoint: Option<ShownCheckpoint>,
    /// In the order in which it will be worked off.
    pub queue: Vec<Queued>,
    /// The row that applies to the first of the queue, or to the node if nothing is queued.
    pub next: Next,
    /// What cannot be read, and why.
    pub problems: Vec<String>,
}

/// A row of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Next {
    pub row: String,
    pub meaning: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    pub uid: Uid,
    pub rv: ResourceVersion,
    pub created: Timestamp,
    pub marker: Option<Marker>,
    pub is_terminating: bool,
    pub labels: Labels,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownRecord {
    pub rv: ResourceVersion,
    pub stored_uid: Option<Uid>,
    pub stored_at: Option<Timestamp>,
    pub restored_uid: Option<Uid>,
    pub restored_rv: Option<ResourceVersion>,
    pub restored_at: Option<Timestamp>,
    pub labels: Labels,
    /// Versions of the older snapshots, newest first.
    pub past: Vec<ResourceVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownCheckpoint {
    pub uid: Option<Uid>,
    pub rv: ResourceVersion,
    pub labels: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// What the ConfigMap is called.
    pub name: String,
    pub rv: ResourceVersion,
    /// `added` or `deleted`; absent if it cannot be read.
    #[serde(rename = "type")]
    pub kind: Option<&'static str>,
    pub uid: Option<Uid>,
    /// How a watcher learned of it.
    pub source: Option<&'static str>,
    /// Why nobody works on it.
    pub quarantined: Option<String>,
}

// === impl Admin ===

impl Admin {
    /// Fails if nothing at all is known of the node.
    pub async fn show(&self, node: &str) -> Result<Show, Error> {
        let record = self.objects.records.get(node).await?;
        let hash = NodeHash::of(node).to_string();
        let checkpoint = self.objects.checkpoints.get(&hash).await?;
        let stored = Stored::read(record.as_ref());
        let reading = Reading { stored, live: self.objects.nodes.get(node).await? };
        let queue = self.queue(node).await?;
        let is_known = record.is_some() || checkpoint.is_some() || reading.live.is_some();
        if !is_known && queue.is_empty() {
            return Err(Error::NoRecord { node: node.to_owned() });
        }
        let mut problems = Vec::new();
        if let Stored::Unreadable(reason) = &reading.stored {
            problems.push(format!("record: {reason}"));
        }
        let checkpoint = checkpoint.map(|document| Checkpoint::decode(&document)).transpose();
        let checkpoint = checkpoint.unwrap_or_else(|error| {
            problems.push(format!("checkpoint: {error}"));
            None
        });
        Ok(Show {
            node: node.to_owned(),
            next: Next::of(&self.next(&reading, &queue)),
            record: reading.record().map(ShownRecord::of),
            live: reading.live.map(Live::from),
            checkpoint: checkpoint.map(ShownCheckpoint::from),
            queue: queue.iter().map(|(name, document)| Queued::of(name, document)).collect(),
            problems,
        })
    }

    fn next(&self, reading: &Reading, queue: &[(TransactionName, Document)]) -> Decision {
        let now = self.now();
        let is_waiting = |document: &Document| !document.labels.contains_key(QUARANTINED);
        let Some((name, document)) = queue.iter().find(|(_, document)| is_waiting(document)) else {
            return settle(reading, Cause::Queue, &self.policy, now);
        };
        match Transaction::decode(name, document) {
            Ok(transaction) => decide(reading, &transaction, &self.policy, now),
            Err(poison) => poisoned(name, &poison),
        }
    }
}

// === impl Next ===

impl Next {
    fn of(decision: &Decision) -> Self {
        let meaning = meaning(decision.then.unwrap_or(decision.row));
        Self { row: decision.to_string(), meaning }
    }
}

fn meaning(row: Row) -> &'static str {
    match row {
        Row::D0 => "the node that is said to be deleted lives: nothing",
        Row::D1 => "its labels are stored for the first time",
        Row::D2 => "a later word on the stored incarnation replaces it, an earlier one does not",
        Row::D3 => "its labels replace the stored ones",
        Row::D4 => "too late to replace the record: the labels are kept in the past",
        Row::D5 => "it left before it was restored: the stored labels stay",
        Row::A1 => "it is gone again: nothing",
        Row::A2 | Row::S1 => "no node, or nothing stored: nothing",
        Row::A3 => "it is settled",
        Row::S2 => "it has its labels back: nothing",
        Row::S3 => "it has its labels back, which the record does not know yet",
        Row::S4 => "it was given older labels: they are amended",
        Row::S5 => "the record is older than the retention: nothing",
        Row::S6 => "its labels are restored",
        Row::Adoption => "the record came from no deletion: only a node that is added gets it",
        Row::Poison => "the transaction cannot be read: quarantine",
        Row::Unreadable => "the record cannot be read: quarantine",
    }
}

// === impl Live ===

impl From<LiveNode> for Live {
    fn from(node: LiveNode) -> Self {
        let LiveNode { name: _, uid, rv, created, labels, marker, is_terminating } = node;
        Self { uid, rv, created, marker, is_terminating, labels }
    }
}

// === impl ShownRecord ===

impl ShownRecord {
    fn of(record: &Record) -> Self {
        let restored = record.ledger.restored.as_ref();
        Self {
            rv: record.rv().clone(),
            stored_uid: record.uid().cloned(),
            stored_at: record.ledger.stored_at,
            restored_uid: restored.map(|Restored { uid, .. }| uid.clone()),
            restored_rv: restored.map(|Restored { rv, .. }| rv.clone()),
            restored_at: restored.and_then(|Restored { at, .. }| *at),
            labels: record.labels().clone(),
            past: record.past.iter().map(|snapshot| snapshot.rv.clone()).collect(),
        }
    }
}

// === impl ShownCheckpoint ===

impl From<Checkpoint> for ShownCheckpoint {
    fn from(checkpoint: Checkpoint) -> Self {
        let snapshot = checkpoint.snapshot;
        Self { uid: snapshot.uid, rv: snapshot.rv, labels: snapshot.labels.len() }
    }
}

// === impl Queued ===

impl Queued {
    fn of(name: &TransactionName, document: &Document) -> Self {
        let transaction = Transaction::decode(name, document).ok();
        let quarantined = document.labels.get(QUARANTINED).cloned();
        Self {
            name: name.to_string(),
            rv: name.rv().clone(),
            kind: transaction.as_ref().map(|transaction| transaction.kind.as_str()),
            source: transaction.as_ref().and_then(|it| it.source).map(|source| source.as_str()),
            uid: transaction.and_then(|transaction| transaction.uid),
            quarantined,
        }
    }
}
