//! Reading what a watch has missed.

use std::sync::Arc;

use etcd_api::mvccpb::Event;
use journal::Journal;
use mvcc::{Position, ReadError, Record, Revision, Values};

use super::class::{self, Class};
use crate::{
    published::{Published, State},
    values::KeptValues,
};

/// Bytes of key-values read at once for the watches of one stream that are behind.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Where the past is.
#[derive(Clone)]
pub(crate) struct History {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) published: Arc<Published>,
    pub(crate) kept: Arc<KeptValues>,
}

/// A piece of history: all changes from where it was asked for up to `last`.
pub(super) struct Chunk {
    state: Arc<State>,
    kept: Arc<KeptValues>,
    records: Vec<Record>,
    /// Nothing up to here is missing; at least the revision before the one asked for.
    pub(super) last: Revision,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The first revision a watch can still start from is `compacted`.
    #[error("history below {compacted} is forgotten")]
    Compacted { compacted: Revision },
    #[error("history could not be read from the journal")]
    Read {
        #[source]
        source: ReadError,
    },
}

// === impl History ===

impl History {
    /// Reads on from `from`. Blocks.
    pub(super) fn read(&self, from: Revision) -> Result<Chunk, Error> {
        // Holding the state keeps everything from its compacted revision on readable.
        let state = self.published.load();
        let compacted = state.view.compacted();
        if from < compacted {
            return Err(Error::Compacted { compacted });
        }
        let newest = state.view.revision();
        let mut records = self
            .journal
            .records(from, CHUNK_BYTES)
            .map_err(|source| Error::Read { source: source.into() })?;
        self.check_kept(from, compacted)?;
        let is_end = records.last().is_none_or(|record| record.revision >= newest);
        records.retain(|record| record.revision <= newest);
        let last = match records.last() {
            Some(record) if !is_end => record.revision,
            _ => newest.max(Revision(from.0 - 1)),
        };
        Ok(Chunk { state, kept: self.kept.clone(), records, last })
    }
}

impl History {
    /// Holding a state keeps nothing from the writer of a shared journal, who may have compacted what
    /// this member did not hear of: what was read may have holes then.
    fn check_kept(&self, from: Revision, compacted: Revision) -> Result<(), Error> {
        let Some(shared) = self.journal.shared() else { return Ok(()) };
        let tip = shared.tip().map_err(|source| Error::Read { source: source.into() })?;
        // The first change there can be follows the initial revision.
        let first = from.max(Revision::INITIAL.next());
        if tip.forgotten < first || tip.forgotten <= compacted {
            return Ok(());
        }
        let source = journal::Error::Forgotten { revision: from };
        Err(Error::Read { source: source.into() })
    }
}

// === impl Chunk ===

impl Chunk {
    /// The events a watch of this class wants, from `from` on. May block.
    pub(super) fn events(&self, class: &Class, from: Revision) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        for record in self.records.iter().filter(|record| record.revision >= from) {
            for (position, kv) in record.positions().filter(|(_, kv)| class.wants(kv)) {
                let previous = self.previous(class, kv.key(), position)?;
                events.push(class::event(kv, previous.as_ref()));
            }
        }
        Ok(events)
    }

    fn previous(
        &self,
        class: &Class,
        key: &[u8],
        position: Position,
    ) -> Result<Option<etcd_api::mvccpb::KeyValue>, Error> {
        if !class.wants_previous {
            return Ok(None);
        }
        let Some(previous) = self.state.view.previous(key, position) else { return Ok(None) };
        self.kept.read(previous).map(Some).map_err(|source| Error::Read { source })
    }
}
