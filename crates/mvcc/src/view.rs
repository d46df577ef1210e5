//! An immutable state of the keyspace at one revision. Taking one is O(1), reading it takes no lock
//! and never waits for a writer.

use std::{ops::ControlFlow, sync::Arc};

use etcd_api::{
    etcdserverpb::{RangeRequest, RangeResponse},
    mvccpb::KeyValue,
};

use crate::{Error, Position, ReadError, Revision, entry::Entry, key::KeyRange, range, tree::Tree};

/// Where key-values are read back from, by position. The index holds none of them.
pub trait Values {
    /// The change at a position that is part of the state being read.
    fn read(&self, at: Position) -> Result<KeyValue, ReadError>;
}

/// The keyspace as it was when the view was taken, with all history above `compacted`.
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) tree: Tree,
    pub(crate) revision: Revision,
    pub(crate) compacted: Revision,
}

// === impl View ===

impl View {
    /// The newest revision the view has.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Reads below this revision are refused.
    #[must_use]
    pub fn compacted(&self) -> Revision {
        self.compacted
    }

    /// Answers a range request. The header carries the revision only.
    pub fn range(
        &self,
        request: &RangeRequest,
        values: &dyn Values,
    ) -> Result<RangeResponse, Error> {
        range::execute(self, request, values)
    }

    /// How many keys a range request makes [`range`](Self::range) look at, at most. Cheap, whatever
    /// the number.
    #[must_use]
    pub fn keys_read(&self, request: &RangeRequest) -> usize {
        range::keys_read(self, request)
    }

    /// The number of keys of `range` at the newest revision.
    #[must_use]
    pub fn count(&self, range: KeyRange<'_>) -> usize {
        self.tree.count(range, self.revision)
    }

    /// The version that the change of `key` at `position` replaced; `None` also if compaction
    /// has forgotten the state before it.
    #[must_use]
    pub fn previous(&self, key: &[u8], position: Position) -> Option<Position> {
        if position.revision <= self.compacted {
            return None;
        }
        self.tree.get(key)?.before(position)
    }

    /// Whether the change of `key` at `position` is what a read at `at` would see.
    #[must_use]
    pub fn is_seen_at(&self, key: &[u8], position: Position, at: Revision) -> bool {
        let found = self.tree.get(key).and_then(|entry| entry.at(at));
        found.is_some_and(|found| found.position() == position)
    }

    /// The revision a request means, or why it cannot be served.
    pub(crate) fn resolve(&self, wanted: i64) -> Result<Revision, Error> {
        let wanted = Revision(wanted);
        if wanted > self.revision {
            return Err(Error::FutureRevision { wanted, current: self.revision });
        }
        if wanted.0 <= 0 {
            return Ok(self.revision);
        }
        if wanted < self.compacted {
            return Err(Error::Compacted { wanted, compacted: self.compacted });
        }
        Ok(wanted)
    }

    /// Visits the keys of `range` that existed at `at`, in order, until `visit` breaks.
    pub(crate) fn walk<'v>(
        &'v self,
        range: KeyRange<'_>,
        at: Revision,
        visit: &mut dyn FnMut(&'v Arc<Entry>) -> ControlFlow<()>,
    ) {
        self.tree.walk(range, at, visit);
    }
}
