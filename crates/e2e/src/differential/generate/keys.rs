//! Keys and values: few, so that requests meet, with the awkward ones among them.

use bytes::Bytes;

use super::{Generator, Profile};

const KEYS: [&str; 14] =
    ["a", "aa", "ab", "b", "b\0", "c", "k/1", "k/10", "k/2", "k/3", "k/9", "l", "z", "~"];

/// etcd's limit is 1.5 MiB and somewhat more on the wire; this is above both.
const TOO_LARGE_BYTES: usize = 2 * 1024 * 1024;

// === impl Generator ===

impl Generator {
    pub(super) fn key(&mut self) -> Bytes {
        Bytes::from_static(self.pick(&KEYS).as_bytes())
    }

    /// A key where sometimes none is given.
    pub(super) fn key_or_empty(&mut self) -> Bytes {
        if self.one_in(40) { Bytes::new() } else { self.key() }
    }

    /// A key and a range end: one key, an interval, a prefix, everything from here, nothing.
    pub(super) fn interval(&mut self) -> (Bytes, Bytes) {
        match self.below(12) {
            0..5 => (self.key_or_empty(), Bytes::new()),
            5..8 => self.ordered(),
            // Whether etcd permits a range whose end lies below its key depends on the shape that its
            // tree of permissions happens to have.
            8 if self.profile == Profile::Guarded => self.ordered(),
            8 => (self.key(), self.key()),
            9 => (Bytes::from_static(b"k/"), Bytes::from_static(b"k0")),
            10 => (self.key(), Bytes::from_static(b"\0")),
            _ => (Bytes::from_static(b"\0"), Bytes::from_static(b"\0")),
        }
    }

    fn ordered(&mut self) -> (Bytes, Bytes) {
        let (one, other) = (self.key(), self.key());
        if one < other { (one, other) } else { (other, one) }
    }

    pub(super) fn value(&mut self) -> Bytes {
        match self.below(200) {
            0 => Bytes::from(vec![b'x'; TOO_LARGE_BYTES]),
            1..20 => Bytes::new(),
            20..30 => Bytes::from_static(b"\xff\0\xfe"),
            _ => Bytes::from(format!("v{}", self.below(20))),
        }
    }
}
