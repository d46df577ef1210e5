//! Keys, and the ranges of keys that requests name.

use std::sync::Arc;

/// A key as the index holds it: shared by every version of the key and by the nodes above it.
pub(crate) type Key = Arc<[u8]>;

/// The keys a request means, from its `key` and `range_end` as etcd defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    start: &'a [u8],
    end: End<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End<'a> {
    /// Just the key `start`.
    Single,
    /// Every key before this one.
    Before(&'a [u8]),
    /// Every key from `start` on.
    Open,
}

// === impl KeyRange ===

impl<'a> KeyRange<'a> {
    /// An empty `range_end` means the one key, `\0` means all keys from `key` on.
    #[must_use]
    pub fn new(key: &'a [u8], range_end: &'a [u8]) -> Self {
        let end = match range_end {
            [] => End::Single,
            [0] => End::Open,
            before => End::Before(before),
        };
        Self { start: key, end }
    }

    #[must_use]
    pub fn start(&self) -> &'a [u8] {
        self.start
    }

    /// The one key of a single-key range.
    #[must_use]
    pub fn single(&self) -> Option<&'a [u8]> {
        matches!(self.end, End::Single).then_some(self.start)
    }

    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && !self.is_past(key)
    }

    /// Whether `key`, and so every key after it, lies behind the range.
    #[must_use]
    pub fn is_past(&self, key: &[u8]) -> bool {
        match self.end {
            End::Single => key > self.start,
            End::Before(end) => key >= end,
            End::Open => false,
        }
    }
}
