//! The snapshots that are kept of one node, and what changed between them.

use jiff::Timestamp;
use serde::Serialize;

use super::{Admin, Error};
use crate::core::{
    object::{Labels, Marker, Uid},
    record::Record,
    rv::ResourceVersion,
    snapshot::Snapshot,
};

/// All snapshots of one node, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    pub node: String,
    /// When the newest was stored.
    pub stored_at: Option<Timestamp>,
    pub snapshots: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub rv: ResourceVersion,
    /// The incarnation it is of.
    pub uid: Option<Uid>,
    pub marker: Option<Marker>,
    pub labels: Labels,
    /// Against the snapshot before it; of the oldest, all its labels are new.
    pub changes: Vec<Change>,
}

/// One key that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

// === impl Admin ===

impl Admin {
    pub async fn history(&self, node: &str) -> Result<History, Error> {
        Ok(History::of(&self.record(node).await?))
    }
}

// === impl History ===

impl History {
    pub(super) fn of(record: &Record) -> Self {
        let snapshots: Vec<&Snapshot> = record.snapshots().collect();
        let none = Labels::new();
        let entries = snapshots.iter().enumerate().map(|(index, snapshot)| {
            let before = snapshots.get(index + 1).map_or(&none, |before| &before.labels);
            Entry {
                rv: snapshot.rv.clone(),
                uid: snapshot.uid.clone(),
                marker: snapshot.marker.clone(),
                labels: snapshot.labels.clone(),
                changes: changes(before, &snapshot.labels),
            }
        });
        Self {
            node: record.snapshot.node.clone(),
            stored_at: record.ledger.stored_at,
            snapshots: entries.collect(),
        }
    }
}

fn changes(before: &Labels, after: &Labels) -> Vec<Change> {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let mut keys: Vec<&String> = after.keys().chain(gone).collect();
    keys.sort();
    let change = |key: &String| Change {
        key: key.clone(),
        before: before.get(key).cloned(),
        after: after.get(key).cloned(),
    };
    keys.into_iter().map(change).filter(|change| change.before != change.after).collect()
}
