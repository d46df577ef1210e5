//! The hash of a history, equal to the one etcd computes over the same history.

use crc32c::crc32c_append;
use etcd_api::mvccpb::{KeyValue, KeyValueParts};

use crate::{KeyRange, Position, Revision, View};

/// The name of the table in which etcd keeps its history; its hash begins with it.
const TABLE_NAME: &[u8] = b"key";

/// Hashes the changes up to a revision that a compaction at the view's compacted revision keeps.
/// Changes are fed in order.
#[derive(Debug)]
pub struct HistoryHash<'v> {
    view: &'v View,
    at: Revision,
    /// Of the changes that the compaction kept, those count that a read at this revision sees.
    seen_at: Revision,
    crc: u32,
}

// === impl HistoryHash ===

impl<'v> HistoryHash<'v> {
    #[must_use]
    pub fn new(view: &'v View, at: Revision) -> Self {
        // Where nothing lives at `at`, etcd takes the empty list of what is live for no list at all
        // and hashes everything that the compaction kept.
        let is_empty = view.tree.count(KeyRange::new(b"", b"\0"), at) == 0;
        let seen_at = if is_empty { view.compacted() } else { at };
        Self { view, at, seen_at, crc: crc32c_append(0, TABLE_NAME) }
    }

    pub fn add(&mut self, position: Position, kv: &KeyValue) {
        if position.revision > self.at || !self.is_kept(position, kv) {
            return;
        }
        self.crc = crc32c_append(self.crc, &table_key(position, kv.is_tombstone()));
        if kv.is_tombstone() {
            let key_alone = KeyValueParts { key: kv.key(), ..KeyValueParts::default() };
            self.crc = crc32c_append(self.crc, KeyValue::new(&key_alone).encoded());
        } else {
            self.crc = crc32c_append(self.crc, kv.encoded());
        }
    }

    #[must_use]
    pub fn finish(self) -> u32 {
        self.crc
    }

    /// Up to the compacted revision only what is still seen counts. A tombstone at exactly that
    /// revision does not, because older etcd versions dropped it and hashes must agree with theirs.
    fn is_kept(&self, position: Position, kv: &KeyValue) -> bool {
        let compacted = self.view.compacted();
        if position.revision > compacted {
            return true;
        }
        !kv.is_tombstone() && self.view.is_seen_at(kv.key(), position, self.seen_at)
    }
}

/// A position as etcd spells it in its table: revision, underscore, number, and a mark on
/// tombstones.
fn table_key(position: Position, is_tombstone: bool) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    key.extend_from_slice(&position.revision.0.to_be_bytes());
    key.push(b'_');
    key.extend_from_slice(&i64::from(position.sub).to_be_bytes());
    if is_tombstone {
        key.push(b't');
    }
    key
}
