//! What a write transaction leaves behind: the unit the journal orders and keeps.

use etcd_api::mvccpb::KeyValue;

use crate::{Position, Revision};

/// What a change takes in a journal beside its key-value, at most.
pub const CHANGE_OVERHEAD_BYTES: usize = 16;

/// One change of one key. A tombstone is a key-value of version 0 with key and mod revision only.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The change's number inside its transaction.
    pub sub: u32,
    pub kv: KeyValue,
}

/// One write transaction: at least one change, all at the same revision, in order of `sub`.
///
/// A record that was just written counts its changes from 0 without gaps. One that is read back
/// from below the compacted revision may lack the changes that compaction dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub revision: Revision,
    pub changes: Vec<Change>,
}

// === impl Record ===

impl Record {
    /// The changes with their positions.
    pub fn positions(&self) -> impl Iterator<Item = (Position, &KeyValue)> {
        self.changes.iter().map(|change| (Position::new(self.revision, change.sub), &change.kv))
    }

    /// The bytes of all encoded key-values, the measure of every bound on records.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.changes.iter().map(|change| change.kv.encoded().len()).sum()
    }
}
