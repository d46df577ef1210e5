//! Reading key-values back: from a bounded cache, else from the journal.

use std::sync::Arc;

use etcd_api::mvccpb::KeyValue;
use journal::Journal;
use mvcc::{Position, ReadError, Values};
use quick_cache::{Weighter, sync::Cache};

/// What one cached key-value costs besides its bytes: the cache's own books and the buffer's.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

/// A guess at the number of cached entries from their bytes; it only sizes the cache's tables.
const EXPECTED_ENTRY_BYTES: u64 = 1024;

/// Durable key-values by position. Shared by all readers.
pub(crate) struct KeptValues {
    journal: Arc<dyn Journal>,
    cache: Cache<Position, KeyValue, ByBytes>,
}

/// A position that the index names but the journal does not have.
#[derive(Debug, thiserror::Error)]
#[error("the journal does not hold the change at {0}")]
pub(crate) struct NotKept(Position);

#[derive(Clone)]
struct ByBytes;

// === impl KeptValues ===

impl KeptValues {
    pub(crate) fn new(journal: Arc<dyn Journal>, cache_bytes: u64) -> Self {
        let expected = usize::try_from(cache_bytes / EXPECTED_ENTRY_BYTES).unwrap_or(usize::MAX);
        Self { journal, cache: Cache::with_weighter(expected, cache_bytes, ByBytes) }
    }

    /// Keeps a change that just became durable at hand.
    pub(crate) fn remember(&self, at: Position, kv: KeyValue) {
        self.cache.insert(at, kv);
    }

    /// Takes a superseded change out of the cache, if it is there.
    pub(crate) fn take(&self, at: Position) -> Option<KeyValue> {
        self.cache.remove(&at).map(|(_, kv)| kv)
    }
}

impl Values for KeptValues {
    fn read(&self, at: Position) -> Result<KeyValue, ReadError> {
        if let Some(kv) = self.cache.get(&at) {
            return Ok(kv);
        }
        let Some(kv) = self.journal.read(at)? else {
            // Another member may have compacted what this one did not hear of yet.
            return Err(match self.journal.shared() {
                Some(_) => journal::Error::Forgotten { revision: at.revision }.into(),
                None => NotKept(at).into(),
            });
        };
        self.cache.insert(at, kv.clone());
        Ok(kv)
    }
}

// === impl ByBytes ===

impl Weighter<Position, KeyValue> for ByBytes {
    fn weight(&self, _: &Position, kv: &KeyValue) -> u64 {
        kv.encoded().len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}
