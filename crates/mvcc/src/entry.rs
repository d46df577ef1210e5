//! One key of the index: its newest version in full, its older ones as places.

use crate::{
    LeaseId, Position, Revision,
    key::Key,
    trail::{Past, Trail},
};

/// All that is known of a key without reading the journal. Immutable: a change makes a successor.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) newest: Version,
    older: Trail,
}

/// A version of a key without its value. `version` counts from 1 in each generation; 0 marks a
/// tombstone, which has no other field set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) position: Position,
    pub(crate) created: Revision,
    pub(crate) version: i64,
    pub(crate) lease: LeaseId,
}

/// A version that a read at some revision found: in the index, or to be read from the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    Newest(&'a Version),
    Older(Position),
}

/// What compaction leaves of an entry.
pub(crate) enum Pruned {
    Unchanged,
    /// `None` if nothing of the key is left.
    Changed {
        entry: Option<Entry>,
        dead: Vec<Position>,
    },
}

// === impl Version ===

impl Version {
    pub(crate) fn is_tombstone(&self) -> bool {
        self.version == 0
    }

    fn past(&self) -> Past {
        Past { position: self.position, is_tombstone: self.is_tombstone() }
    }
}

// === impl Found ===

impl Found<'_> {
    pub(crate) fn position(&self) -> Position {
        match self {
            Self::Newest(version) => version.position,
            Self::Older(position) => *position,
        }
    }
}

// === impl Entry ===

impl Entry {
    pub(crate) fn first(key: Key, newest: Version) -> Self {
        Self { key, newest, older: Trail::default() }
    }

    /// The entry after one more change.
    pub(crate) fn succeeded_by(&self, newest: Version) -> Self {
        let older = self.older.pushed(self.newest.past());
        Self { key: self.key.clone(), newest, older }
    }

    pub(crate) fn is_live(&self) -> bool {
        !self.newest.is_tombstone()
    }

    /// The newest version if the key exists.
    pub(crate) fn live(&self) -> Option<&Version> {
        self.is_live().then_some(&self.newest)
    }

    /// What a read at `at` sees, if the key existed then.
    pub(crate) fn at(&self, at: Revision) -> Option<Found<'_>> {
        if self.newest.position.revision <= at {
            return self.live().map(Found::Newest);
        }
        let past = self.older.at(at)?;
        (!past.is_tombstone).then_some(Found::Older(past.position))
    }

    /// The version that `position` replaced, if the key existed just before it.
    pub(crate) fn before(&self, position: Position) -> Option<Position> {
        self.at(Revision(position.revision.0 - 1)).map(|found| found.position())
    }

    /// What is left once history below `compacted` is forgotten: the newest version at or before
    /// it stays if it is a put, or a tombstone written at exactly that revision.
    pub(crate) fn pruned(&self, compacted: Revision) -> Pruned {
        if self.newest.position.revision <= compacted {
            return self.pruned_to_newest(compacted);
        }
        let (older, gone) = self.older.split_at(compacted);
        if gone.is_empty() {
            return Pruned::Unchanged;
        }
        let entry = Self { key: self.key.clone(), newest: self.newest, older };
        let dead = gone.iter().map(|past| past.position).collect();
        Pruned::Changed { entry: Some(entry), dead }
    }

    fn pruned_to_newest(&self, compacted: Revision) -> Pruned {
        let is_kept = self.is_live() || self.newest.position.revision == compacted;
        if is_kept && self.older.is_empty() {
            return Pruned::Unchanged;
        }
        let mut dead: Vec<Position> = self.older.iter().map(|past| past.position).collect();
        if !is_kept {
            dead.push(self.newest.position);
        }
        let entry = is_kept.then(|| Self::first(self.key.clone(), self.newest));
        Pruned::Changed { entry, dead }
    }
}
