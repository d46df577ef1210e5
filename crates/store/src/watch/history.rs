//! Reading what a watch has missed.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use etcd_api::mvccpb::{Event, KeyValue};
use journal::Journal;
use mvcc::{Position, ReadError, Record, Revision, Values};

use super::{
    WatchNumber,
    class::{self, Class},
    hub::Events,
    index::{ClassId, Index},
};
use crate::{
    published::{Published, State},
    values::KeptValues,
};

/// Bytes of key-values read at once for the watches of one stream that are behind.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Bytes of events that one piece holds for all of these watches together; only the last revision may
/// lie across the bound, because it is not cut. A chunk fits with what its changes replaced, unless
/// that was larger.
pub(super) const PIECE_BYTES: usize = 2 * CHUNK_BYTES;

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

/// What a watch that is behind has to get.
pub(super) struct Wanted {
    pub(super) watch: WatchNumber,
    pub(super) class: Class,
    /// The first revision it has not got.
    pub(super) from: Revision,
}

/// What a chunk holds for those who want it, encoded once for all of them. It keeps no state, so it
/// may wait for slow clients.
#[derive(Default)]
pub(super) struct Piece {
    /// As of a chunk.
    pub(super) last: Revision,
    /// Those of a watch may begin before what it wants, because others of its class want more.
    pub(super) shares: VecDeque<(WatchNumber, Events)>,
}

/// Watches by their class.
#[derive(Default)]
struct Groups {
    index: Index,
    ids: HashMap<Class, ClassId>,
    groups: Vec<Group>,
}

/// What the watches of one class get.
struct Group {
    class: Class,
    /// The first revision that one of them wants.
    from: Revision,
    events: Vec<(Revision, Event)>,
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
    /// What the watches want of it; those that want only what is behind it have no share. May block.
    pub(super) fn piece(&self, mut wanted: Vec<Wanted>) -> Result<Piece, Error> {
        wanted.retain(|wanted| wanted.from <= self.last.next());
        let mut groups = Groups::default();
        let ids: Vec<ClassId> = wanted.iter().map(|wanted| groups.add(wanted)).collect();
        let last = self.gather(&mut groups)?;
        let events: Vec<Events> =
            groups.groups.into_iter().map(|group| group.events.into()).collect();
        let shares = wanted.into_iter().zip(ids);
        let shares = shares
            .filter(|(wanted, _)| wanted.from <= last.next())
            .map(|(wanted, id)| (wanted.watch, events[id].clone()))
            .collect();
        Ok(Piece { last, shares })
    }

    /// Gathers whole revisions until there is enough, and returns the last of them.
    fn gather(&self, groups: &mut Groups) -> Result<Revision, Error> {
        let mut bytes = 0;
        for record in &self.records {
            for (position, kv) in record.positions() {
                bytes += self.gather_change(groups, position, kv)?;
            }
            if bytes >= PIECE_BYTES {
                return Ok(record.revision);
            }
        }
        Ok(self.last)
    }

    /// Gives a change to all who want it. Returns how many bytes that took.
    fn gather_change(
        &self,
        groups: &mut Groups,
        position: Position,
        kv: &KeyValue,
    ) -> Result<usize, Error> {
        let mut bytes = 0;
        let (mut plain, mut with_previous) = (None, None);
        for id in groups.matching(kv.key()) {
            let Group { class, from, events } = &mut groups.groups[id];
            if position.revision < *from || !class.passes_filters(kv) {
                continue;
            }
            let encoded = if class.wants_previous { &mut with_previous } else { &mut plain };
            let event = match encoded {
                Some(event) => event,
                None => {
                    let previous = self.previous(class, kv.key(), position)?;
                    let event = class::event(kv, previous.as_ref());
                    bytes += event.encoded().len();
                    encoded.insert(event)
                }
            };
            bytes += size_of::<(Revision, Event)>();
            events.push((position.revision, event.clone()));
        }
        Ok(bytes)
    }

    fn previous(
        &self,
        class: &Class,
        key: &[u8],
        position: Position,
    ) -> Result<Option<KeyValue>, Error> {
        if !class.wants_previous {
            return Ok(None);
        }
        let Some(previous) = self.state.view.previous(key, position) else { return Ok(None) };
        self.kept.read(previous).map(Some).map_err(|source| Error::Read { source })
    }
}

// === impl Groups ===

impl Groups {
    fn add(&mut self, wanted: &Wanted) -> ClassId {
        let Wanted { class, from, .. } = wanted;
        if let Some(id) = self.ids.get(class) {
            let group = &mut self.groups[*id];
            group.from = group.from.min(*from);
            return *id;
        }
        let id = self.groups.len();
        self.index.insert(id, class);
        self.ids.insert(class.clone(), id);
        self.groups.push(Group { class: class.clone(), from: *from, events: Vec::new() });
        id
    }

    fn matching(&self, key: &[u8]) -> Vec<ClassId> {
        let mut matching = Vec::new();
        self.index.matching(key, |id| matching.push(id));
        matching
    }
}
