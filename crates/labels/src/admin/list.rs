//! Whose labels are stored or queued.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{Admin, Error};
use crate::core::{
    keys::{NODE, QUARANTINED},
    names::TransactionName,
    object::{Document, LiveNode},
    record::{Record, Stored, Unreadable},
    rv::ResourceVersion,
};

/// One node with a record or a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub node: String,
    pub is_live: bool,
    /// Whether the live incarnation was given the record.
    pub is_restored: bool,
    /// Absent where there is no record, or none that can be read.
    pub labels: Option<usize>,
    pub rv: Option<ResourceVersion>,
    pub stored_at: Option<Timestamp>,
    pub queued: usize,
    pub quarantined: usize,
    /// Why the record cannot be read.
    pub problem: Option<String>,
}

/// What the answer is made from.
pub(super) struct World {
    pub(super) records: Vec<Document>,
    pub(super) nodes: BTreeMap<String, LiveNode>,
    /// Without their data.
    pub(super) transactions: Vec<Document>,
}

// === impl Admin ===

impl Admin {
    /// All nodes with a record or a queue, by name.
    pub async fn list(&self) -> Result<Vec<Entry>, Error> {
        let nodes = self.objects.nodes.list().await?.items;
        let world = World {
            records: self.records().await?,
            nodes: nodes.into_iter().map(|node| (node.name.clone(), node)).collect(),
            transactions: self.objects.transactions.list_headers().await?.items,
        };
        Ok(world.entries())
    }
}

// === impl World ===

impl World {
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = BTreeMap::new();
        for document in &self.records {
            self.on_record(&mut entries, document);
        }
        for document in &self.transactions {
            self.on_transaction(&mut entries, document);
        }
        entries.into_values().collect()
    }

    fn on_record(&self, entries: &mut BTreeMap<String, Entry>, document: &Document) {
        match Stored::read(Some(document)) {
            Stored::Record(record) => {
                let live = self.nodes.get(&document.name);
                self.entry(entries, &document.name).on_record(&record, live);
            }
            Stored::Unreadable(Unreadable::Foreign) | Stored::Absent => {}
            Stored::Unreadable(reason) => {
                self.entry(entries, &document.name).problem = Some(reason.to_string());
            }
        }
    }

    /// Foreign ConfigMaps have other names, and a transaction that names no node is told by its
    /// own.
    fn on_transaction(&self, entries: &mut BTreeMap<String, Entry>, document: &Document) {
        if document.name.parse::<TransactionName>().is_err() {
            return;
        }
        let node = document.annotations.get(NODE).unwrap_or(&document.name);
        let entry = self.entry(entries, node);
        match document.labels.contains_key(QUARANTINED) {
            true => entry.quarantined += 1,
            false => entry.queued += 1,
        }
    }

    fn entry<'a>(&self, entries: &'a mut BTreeMap<String, Entry>, node: &str) -> &'a mut Entry {
        entries.entry(node.to_owned()).or_insert_with(|| Entry {
            node: node.to_owned(),
            is_live: self.nodes.contains_key(node),
            ..Entry::default()
        })
    }
}

// === impl Entry ===

impl Entry {
    fn on_record(&mut self, record: &Record, live: Option<&LiveNode>) {
        let given = record.ledger.restored.as_ref().filter(|given| given.rv == *record.rv());
        self.is_restored =
            live.is_some_and(|live| given.is_some_and(|given| given.uid == live.uid));
        self.labels = Some(record.labels().len());
        self.rv = Some(record.rv().clone());
        self.stored_at = record.ledger.stored_at;
    }
}
