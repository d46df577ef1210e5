//! What the frames add up to beside the changes themselves: the writer's epoch, the durable
//! revision, the meta table, and which batches arrived. Pure: the same frames give the same ledger
//! whether they were just written or are replayed.

use std::collections::BTreeMap;

use bytes::Bytes;
use mvcc::Revision;

use super::frame::{Contents, Header, Kind};
use crate::{BatchId, Epoch, MetaChange};

/// A writer asks about its last batch after its role was taken over, so a few epochs back are
/// enough; a store that changed hands more often than this meanwhile starts afresh anyway.
const MARKS_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ledger {
    pub(super) epoch: Epoch,
    /// The last revision.
    pub(super) last: Revision,
    pub(super) meta: BTreeMap<Bytes, Bytes>,
    /// The last batch of each of the last epochs that had one, oldest first.
    pub(super) marks: Vec<BatchId>,
}

/// Why a sound frame cannot stand where it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    #[error("epoch {} follows epoch {}", found.0, current.0)]
    Epoch { current: Epoch, found: Epoch },
    #[error("revision {found} follows {last}")]
    Revision { last: Revision, found: Revision },
}

// === impl Ledger ===

impl Ledger {
    /// Before anything was written.
    pub(super) fn blank() -> Self {
        Self { epoch: Epoch(0), last: Revision::INITIAL, meta: BTreeMap::new(), marks: Vec::new() }
    }

    /// Who may write, and what the last revision is.
    pub(super) fn standing(&self) -> (Epoch, Revision) {
        (self.epoch, self.last)
    }

    /// Takes in the next frame, or says why it cannot be the next one.
    pub(super) fn on_frame(&mut self, header: &Header, contents: &Contents) -> Result<(), Misfit> {
        if header.id.epoch < self.epoch {
            return Err(Misfit::Epoch { current: self.epoch, found: header.id.epoch });
        }
        self.check_revisions(header, contents)?;
        match header.kind {
            Kind::Batch => self.on_batch(header.id),
            Kind::Claim | Kind::Sparse => {}
            Kind::Start => {
                self.meta.clear();
                self.marks.clone_from(&contents.marks);
            }
        }
        self.epoch = header.id.epoch;
        self.last = header.last;
        self.on_meta(&contents.meta);
        Ok(())
    }

    pub(super) fn on_batch(&mut self, id: BatchId) {
        match self.marks.last_mut() {
            Some(mark) if mark.epoch == id.epoch => *mark = id,
            _ => self.marks.push(id),
        }
        if self.marks.len() > MARKS_MAX {
            self.marks.remove(0);
        }
    }

    pub(super) fn on_meta(&mut self, changes: &[MetaChange]) {
        for change in changes {
            match &change.value {
                Some(value) => self.meta.insert(owned(&change.key), owned(value)),
                None => self.meta.remove(&change.key),
            };
        }
    }

    /// Batches of an epoch arrive in the order of their numbers, so the last one stands for all.
    pub(super) fn holds(&self, id: BatchId) -> bool {
        self.marks.iter().any(|mark| mark.epoch == id.epoch && mark.number >= id.number)
    }

    /// Whether no batch was ever appended, so that an image may still be loaded.
    pub(super) fn is_pristine(&self) -> bool {
        self.marks.is_empty()
    }

    fn check_revisions(&self, header: &Header, contents: &Contents) -> Result<(), Misfit> {
        let last = match header.kind {
            Kind::Batch => Revision(self.last.0 + i64::from(contents.records)),
            Kind::Claim | Kind::Start => self.last,
            Kind::Sparse => header.last.max(self.last),
        };
        if header.last != last {
            return Err(Misfit::Revision { last: self.last, found: header.last });
        }
        let mut before = self.last;
        for change in &contents.changes {
            let revision = change.position.revision;
            let is_next = revision == before || revision == before.next();
            let fits = match header.kind {
                Kind::Batch => is_next && revision > self.last,
                Kind::Sparse => revision > self.last && revision <= header.last,
                Kind::Claim | Kind::Start => false,
            };
            if !fits {
                return Err(Misfit::Revision { last: before, found: revision });
            }
            before = revision;
        }
        Ok(())
    }
}

/// A copy, so that the table does not keep a whole request or segment in memory.
fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
