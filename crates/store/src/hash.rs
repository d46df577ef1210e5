//! Hashing the history of a state.

use std::sync::Arc;

use journal::Journal;
use mvcc::{HistoryHash, Revision};

use crate::{Error, context::Context, published::State, wholeness};

/// Bytes of key-values read at once.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// A hash, and what it is of.
pub(crate) struct Hashed {
    pub(crate) hash: u32,
    /// The last revision that went into it.
    pub(crate) at: Revision,
    pub(crate) compacted: Revision,
    /// Where the store stood.
    pub(crate) current: Revision,
}

/// Hashes the history up to a revision; 0 means the newest.
pub(crate) async fn compute(context: &Context, revision: i64) -> Result<Hashed, Error> {
    let held = context.standing.held();
    let state = context.state();
    let journal = context.journal.clone();
    let work = tokio::task::spawn_blocking(move || {
        let hashed = hash(&*journal, &state, revision)?;
        wholeness::check(&*journal, held, hashed.compacted)?;
        Ok(hashed)
    });
    work.await.expect("hashing does not panic")
}

fn hash(journal: &dyn Journal, state: &Arc<State>, revision: i64) -> Result<Hashed, Error> {
    let view = &state.view;
    let (current, compacted) = (view.revision(), view.compacted());
    let wanted = Revision(revision);
    if revision > 0 && wanted < compacted {
        return Err(Error::Keyspace(mvcc::Error::Compacted { wanted, compacted }));
    }
    if wanted > current {
        return Err(Error::Keyspace(mvcc::Error::FutureRevision { wanted, current }));
    }
    // Nothing is at or below a negative revision, and that is what is hashed.
    let at = if revision == 0 { current } else { wanted };
    let mut hash = HistoryHash::new(view, at);
    let mut next = Revision::INITIAL;
    while next <= at {
        let records = journal.records(next, CHUNK_BYTES).map_err(Error::Journal)?;
        state.go_on().map_err(Error::Keyspace)?;
        let Some(last) = records.last() else { break };
        next = last.revision.next();
        for (position, kv) in records.iter().flat_map(mvcc::Record::positions) {
            hash.add(position, kv);
        }
    }
    Ok(Hashed { hash: hash.finish(), at, compacted, current })
}
