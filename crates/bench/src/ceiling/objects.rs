//! The objects a ceiling answers reads with: made once, already encoded, never changed.

use etcd_api::mvccpb::{KeyValue, KeyValueParts};

use crate::shape;

pub(super) struct Objects {
    /// In key order.
    sorted: Vec<KeyValue>,
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(count: usize) -> Self {
        let value = shape::value(shape::OBJECT_BYTES);
        let object = |index: u64| {
            KeyValue::new(&KeyValueParts {
                key: &shape::object_key(index),
                create_revision: 1,
                mod_revision: 1,
                version: 1,
                value: &value,
                lease: 0,
            })
        };
        Self { sorted: (0..count as u64).map(object).collect() }
    }

    /// The objects from `key` on, up to `range_end`; one object if that is empty.
    pub(super) fn range(&self, key: &[u8], range_end: &[u8]) -> &[KeyValue] {
        let start = self.sorted.partition_point(|kv| kv.key() < key);
        if range_end.is_empty() {
            // A get of a key outside the objects is answered too: what matters is the size.
            let start = start.min(self.sorted.len().saturating_sub(1));
            return self.sorted.get(start..=start).unwrap_or_default();
        }
        let end = self.sorted.partition_point(|kv| kv.key() < range_end);
        &self.sorted[start.min(end)..end]
    }
}
