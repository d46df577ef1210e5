//! Records to write, and the dice that choose them. The same seed gives the same records.

use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use mvcc::{Change, Record, Revision};

/// A small generator of numbers (splitmix64): no dependency, and stable for ever, so that a seed
/// that once failed can be replayed.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

// === impl Dice ===

impl Dice {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is above 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a usize fits 64 bits");
        usize::try_from(self.next_u64() % bound).expect("below a usize")
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next_u64().to_le_bytes()[0]).collect()
    }
}

/// A put of `key` at `revision`.
#[must_use]
pub fn put(revision: i64, key: &str, value: &[u8]) -> KeyValue {
    KeyValue::new(&KeyValueParts {
        key: key.as_bytes(),
        create_revision: revision,
        mod_revision: revision,
        version: 1,
        value,
        lease: 0,
    })
}

/// A deletion of `key` at `revision`.
#[must_use]
pub fn tombstone(revision: i64, key: &str) -> KeyValue {
    KeyValue::tombstone(key.as_bytes(), revision)
}

/// A record of these key-values, in their order.
#[must_use]
pub fn record(revision: i64, kvs: impl IntoIterator<Item = KeyValue>) -> Record {
    let changes = (0..).zip(kvs).map(|(sub, kv)| Change { sub, kv }).collect();
    Record { revision: Revision(revision), changes }
}
