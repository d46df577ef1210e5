//! Records: a node's labels as they were when it last left, in a ConfigMap of the node's name.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    flat,
    keys::{EARLIER_RV, EARLIER_VERSION, HISTORY, MANAGED_BY, MANAGER, MARKER, SNAPSHOT},
    ledger::{Ledger, LedgerError, Restored},
    object::{Document, Labels, LiveNode, Marker, Uid},
    past::{HISTORY_BYTES_MAX, Past},
    rv::{ResourceVersion, RvError},
    snapshot::{SNAPSHOT_BYTES_MAX, Snapshot, SnapshotError},
};

#[cfg(test)]
mod tests;

/// What a record's snapshot, history and flat keys may have together. Flat keys give way first,
/// then the history, oldest first; the snapshot never.
pub const RECORD_BYTES_MAX: usize = SNAPSHOT_BYTES_MAX;

/// What is under the node's name in the namespace of records.
#[derive(Debug)]
pub enum Stored {
    Absent,
    Record(Box<Record>),
    Unreadable(Unreadable),
}

/// A node's last labels, the ones before, and to whom they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its version is the record's, and what a node that was given these labels is marked with.
    pub snapshot: Snapshot,
    pub ledger: Ledger,
    pub past: Past,
    /// Flat keys that say something else than the snapshot.
    pub drift: BTreeSet<String>,
    /// As read: the guards of the next write, and what others put on it.
    carrier: Document,
}

/// Why a ConfigMap under a node's name is not read, let alone written.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("the ConfigMap is somebody else's")]
    Foreign,
    #[error("`{key}` is no resource version")]
    Rv {
        key: &'static str,
        #[source]
        source: RvError,
    },
    #[error("`{SNAPSHOT}` cannot be read")]
    Snapshot(#[source] SnapshotError),
    #[error("`{HISTORY}` cannot be read")]
    History(#[source] SnapshotError),
    #[error("the bookkeeping cannot be read")]
    Ledger(#[source] LedgerError),
    #[error("there are no labels, and no `{SNAPSHOT}` that says so")]
    Empty,
}

// === impl Stored ===

impl Stored {
    #[must_use]
    pub fn read(document: Option<&Document>) -> Self {
        match document.map(Record::decode) {
            None => Self::Absent,
            Some(Ok(record)) => Self::Record(Box::new(record)),
            Some(Err(unreadable)) => Self::Unreadable(unreadable),
        }
    }

    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

// === impl Record ===

impl Record {
    /// A node's first record.
    #[must_use]
    pub fn new(snapshot: Snapshot, now: Timestamp) -> Self {
        let carrier = Document { name: snapshot.node.clone(), ..Document::default() };
        let ledger = Ledger::default().stored(&snapshot, now);
        let (past, drift) = (Past::default(), BTreeSet::new());
        Self { snapshot, ledger, past, drift, carrier }
    }

    pub fn decode(document: &Document) -> Result<Self, Unreadable> {
        if !is_record(document) {
            return Err(Unreadable::Foreign);
        }
        let data = &document.data;
        let ledger = Ledger::decode(&document.annotations).map_err(Unreadable::Ledger)?;
        let own = data.get(SNAPSHOT).map(|json| Snapshot::from_json(json)).transpose();
        let own = own.map_err(Unreadable::Snapshot)?;
        let drift = own.as_ref().map_or_else(BTreeSet::new, |own| drift(data, &own.labels));
        let (marker, labels) = match own {
            Some(snapshot) => (snapshot.marker, snapshot.labels),
            None => (None, flat::decode(data)),
        };
        if labels.is_empty() && !data.contains_key(SNAPSHOT) {
            return Err(Unreadable::Empty);
        }
        let history = data.get(HISTORY).map(|json| Past::from_json(json, &labels)).transpose();
        let past = history.map_err(Unreadable::History)?.unwrap_or_default();
        // The node is the one whose name the record has, and the version and origin are those of
        // the bookkeeping: a snapshot copied from another record only lends its labels.
        let snapshot = Snapshot {
            node: document.name.clone(),
            uid: ledger.stored_uid.clone(),
            rv: version(data)?,
            marker,
            labels,
        };
        Ok(Self { snapshot, ledger, past, drift, carrier: document.clone() })
    }

    #[must_use]
    pub fn rv(&self) -> &ResourceVersion {
        &self.snapshot.rv
    }

    #[must_use]
    pub fn uid(&self) -> Option<&Uid> {
        self.ledger.stored_uid.as_ref()
    }

    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.snapshot.labels
    }

    /// The snapshot, present or past, that a marker names.
    #[must_use]
    pub fn named(&self, marker: &Marker) -> Option<&Snapshot> {
        if marker.names(self.rv()) { Some(&self.snapshot) } else { self.past.named(marker) }
    }

    /// The snapshot, present or past, of a version.
    #[must_use]
    pub fn at(&self, rv: &ResourceVersion) -> Option<&Snapshot> {
        if self.rv() == rv { Some(&self.snapshot) } else { self.past.at(rv) }
    }

    /// Present and past, newest first.
    pub fn snapshots(&self) -> impl Iterator<Item = &Snapshot> {
        std::iter::once(&self.snapshot).chain(self.past.iter())
    }

    /// Whether the record had the snapshot of one version before that of another. Their numbers do
    /// not tell: versions can go back.
    #[must_use]
    pub fn has_before(&self, one: &ResourceVersion, other: &ResourceVersion) -> bool {
        let age = |rv: &ResourceVersion| self.snapshots().position(|snapshot| snapshot.rv == *rv);
        age(one) > age(other)
    }

    /// The record with other labels. To whom the old ones were given stays known.
    #[must_use]
    pub fn replaced_by(&self, snapshot: Snapshot, now: Timestamp) -> Self {
        let mut past = self.past.clone();
        past.push(self.snapshot.clone());
        let ledger = self.ledger.clone().stored(&snapshot, now);
        Self { snapshot, ledger, past, drift: BTreeSet::new(), carrier: self.carrier.clone() }
    }

    /// The record that also remembers a snapshot which came too late.
    #[must_use]
    pub fn with_late(&self, late: Snapshot) -> Self {
        let mut record = Self { drift: BTreeSet::new(), ..self.clone() };
        record.past.insert_late(late);
        record
    }

    /// The record that knows its labels to be given to `live`.
    #[must_use]
    pub fn given_to(&self, live: &LiveNode, now: Timestamp) -> Self {
        let restored = Restored {
            uid: live.uid.clone(),
            rv: self.rv().clone(),
            at: Some(now),
            node_rv: Some(live.rv.clone()),
        };
        let ledger = Ledger { restored: Some(restored), ..self.ledger.clone() };
        Self { ledger, ..self.clone() }
    }

    /// What to tell whoever edited flat keys: that the snapshot counts.
    #[must_use]
    pub fn drift_note(&self) -> Option<String> {
        let keys = self.drift.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let note =
            format!("flat keys of the record differ from its {SNAPSHOT}, which counts: {keys}");
        (!keys.is_empty()).then_some(note)
    }

    /// The whole record, to be created or replaced.
    #[must_use]
    pub fn encode(&self) -> Document {
        Document { data: self.encode_data(), ..self.encode_ledger() }
    }

    /// The record as it was read, with new bookkeeping.
    #[must_use]
    pub fn encode_ledger(&self) -> Document {
        let mut document = self.carrier.clone();
        document.labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
        self.ledger.encode_into(&mut document.annotations);
        document
    }

    fn encode_data(&self) -> BTreeMap<String, String> {
        let json = self.snapshot.to_json();
        let left = RECORD_BYTES_MAX.saturating_sub(json.len());
        let history = self.past.to_json(self.labels(), left.min(HISTORY_BYTES_MAX));
        let left = left - history.as_ref().map_or(0, String::len);
        let flat = flat::encode(self.labels());
        let flat_bytes: usize = flat.iter().map(|(key, value)| key.len() + value.len()).sum();
        let mut data = if flat_bytes <= left { flat } else { BTreeMap::new() };
        data.insert(MARKER.to_owned(), self.rv().to_string());
        data.insert(SNAPSHOT.to_owned(), json);
        data.extend(history.map(|json| (HISTORY.to_owned(), json)));
        data
    }
}

// === impl Ledger ===

impl Ledger {
    fn stored(self, snapshot: &Snapshot, now: Timestamp) -> Self {
        Self {
            stored_uid: snapshot.uid.clone(),
            stored_rv: Some(snapshot.rv.clone()),
            stored_at: Some(now),
            ..self
        }
    }
}

/// Our label, or a key that no other ConfigMap has. `snapshot.json` alone could be anyone's.
fn is_record(document: &Document) -> bool {
    let is_ours = document.labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER);
    let keys = [MARKER, EARLIER_RV, EARLIER_VERSION];
    is_ours || keys.iter().any(|key| document.data.contains_key(*key))
}

/// Records of an earlier implementation have another key; those written by hand may have none.
fn version(data: &BTreeMap<String, String>) -> Result<ResourceVersion, Unreadable> {
    let found = [MARKER, EARLIER_RV].into_iter().find_map(|key| Some((key, data.get(key)?)));
    let Some((key, text)) = found else { return Ok(ResourceVersion::lowest()) };
    text.parse().map_err(|source| Unreadable::Rv { key, source })
}

/// The keys on which the mirror differs from the snapshot. A mirror that was left out for its size
/// does not differ.
fn drift(data: &BTreeMap<String, String>, labels: &Labels) -> BTreeSet<String> {
    let (found, due) = (flat::decode(data), flat::decode(&flat::encode(labels)));
    if found.is_empty() {
        return BTreeSet::new();
    }
    let keys = found.keys().chain(due.keys());
    keys.filter(|key| found.get(*key) != due.get(*key)).cloned().collect()
}
