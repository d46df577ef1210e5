//! Whether what was read of a state's history was all of it.
//!
//! Whoever holds a state keeps the writer of its own process from giving up what the state shows. It
//! keeps nothing from the writer of another process.

use journal::{Epoch, Journal};
use mvcc::Revision;

use crate::{Error, meta::Meta};

/// Checks, after the last piece was read, that nobody can have given up any of it before. `held` is the
/// term under which this member wrote when it took the state, if it did.
pub(crate) fn check(
    journal: &dyn Journal,
    held: Option<Epoch>,
    compacted: Revision,
) -> Result<(), Error> {
    let Some(shared) = journal.shared() else { return Ok(()) };
    if held.is_some() && held == Some(shared.tip().map_err(Error::Journal)?.epoch) {
        return Ok(());
    }
    // A compaction is in the meta table before anything is given up for it.
    let entries = journal.meta().map_err(Error::Journal)?;
    let meta = Meta::parse(entries).map_err(|source| Error::History(source.into()))?;
    if meta.compacted.is_none_or(|newest| newest <= compacted) {
        return Ok(());
    }
    Err(Error::Journal(journal::Error::Forgotten { revision: compacted }))
}
