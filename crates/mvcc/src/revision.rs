//! Places in the order. A revision is one write transaction; a position is one change inside it.

use std::fmt;

/// The place of a write transaction in the one order of the store. Dense: each effective write
/// is exactly one more than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub i64);

/// The place of one key's change: a transaction, and the change's number inside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub revision: Revision,
    pub sub: u32,
}

// === impl Revision ===

impl Revision {
    /// Where an empty store stands; its first write is at 2.
    pub const INITIAL: Self = Self(1);

    /// The compacted revision of a store that was never compacted. Clients can see it: a
    /// transaction's read at revision −1 is a read of the latest state only in such a store.
    pub const NEVER_COMPACTED: Self = Self(-1);

    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Position ===

impl Position {
    #[must_use]
    pub fn new(revision: Revision, sub: u32) -> Self {
        Self { revision, sub }
    }

    /// The position of the first change of `revision`.
    #[must_use]
    pub fn first_of(revision: Revision) -> Self {
        Self { revision, sub: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.revision, self.sub)
    }
}
