//! What goes into a journal and comes out of it.

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use mvcc::{Position, Record, Revision};

/// The number of a claim of the writer's role. Larger is later; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Names one batch for ever: the writer's epoch, and the batch's number under it counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId {
    pub epoch: Epoch,
    pub number: u64,
}

/// The unit of durability: consecutive records, and changes to the meta table beside them.
///
/// Either may be empty, but not both. Meta changes are for what is kept but has no revision of its
/// own: leases, users and roles, alarms, the compacted revision, identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub id: BatchId,
    pub records: Vec<Record>,
    pub meta: Vec<MetaChange>,
}

/// Sets a meta entry, or removes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaChange {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A change without its value: all that the index needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    pub position: Position,
    /// The key-value with its value left out. Version 0 marks a tombstone.
    pub kv: KeyValue,
    /// Length of the whole encoded key-value, value included.
    pub encoded_len: u32,
}

/// A piece of a snapshot or an import: all that is left of the revisions up to `last`, counted from
/// where the piece before it ended. Unlike a batch it may have gaps, because compaction made them.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub last: Revision,
    pub records: Vec<Record>,
    pub meta: Vec<MetaChange>,
}

/// Bytes a journal takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Taken from the medium, room prepared for later writes not counted.
    pub total_bytes: u64,
    /// Of these, in use by changes that were not forgotten.
    pub in_use_bytes: u64,
    /// What the medium still has room for.
    pub available_bytes: u64,
    /// How much of that has to stay free for space to be given back.
    pub upkeep_bytes: u64,
}

// === impl Batch ===

impl Batch {
    /// The last revision of the batch, if it has records.
    #[must_use]
    pub fn last(&self) -> Option<Revision> {
        self.records.last().map(|record| record.revision)
    }
}
