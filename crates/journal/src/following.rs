//! What a journal offers beside its own trait when several processes open it at once: one of them
//! writes, the others follow.

use mvcc::{Record, Revision};

use crate::{Batch, BatchId, Epoch, Error, Journal};

/// Entries of the meta table whose keys begin with this are read by whoever takes the writer's role,
/// and by nobody who follows. They change often, so a batch that changes only these is no news.
pub const WRITERS_META: &[u8] = b"lease/";

/// A journal that is open in several processes.
///
/// Obligations beside those of [`Journal`]:
///
/// 1. **Newest.** A [`tip`](Self::tip) is at least as new as everything that was appended or claimed
///    anywhere before the call began.
/// 2. **Followed whole.** [`tail`](Self::tail) gives every revision it is asked for, with all its
///    changes, or fails: with [`Error::Forgotten`] if any of them may have been forgotten before it
///    was read, with [`Error::Damaged`] if one is missing all the same.
/// 3. **Members only tell.** What [`announce`](Self::announce) leaves behind says who lives and where
///    the writer is. It fences nobody: only a claim does.
pub trait Shared: Journal {
    /// How things stand, whoever wrote last.
    fn tip(&self) -> Result<Tip, Error>;

    /// All records from `from` to `to`, which a tip named.
    fn tail(&self, from: Revision, to: Revision) -> Result<Vec<Record>, Error>;

    /// Tells the others of a member, and with a beat that rises that it lives.
    fn announce(&self, member: &Member) -> Result<(), Error>;

    /// Takes back what was announced of a member.
    fn withdraw(&self, id: u64) -> Result<(), Error>;

    /// Everyone who was announced and not withdrawn, living or not.
    fn members(&self) -> Result<Vec<Member>, Error>;

    /// The process ends, and the engine does not answer: whatever waits for it fails, now and from now on.
    /// What was under way may have happened, as after a crash.
    fn hurry(&self);
}

// === impl Batch ===

impl Batch {
    /// Whether those who follow have to read the meta table again.
    #[must_use]
    pub fn is_news(&self) -> bool {
        self.meta.iter().any(|change| !change.key.starts_with(WRITERS_META))
    }
}

/// Where a shared journal stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Of the last claim; 0 before the first.
    pub epoch: Epoch,
    pub revision: Revision,
    /// The last batch whose changes of the meta table are [news](Batch::is_news).
    pub meta: Option<BatchId>,
    /// No change above this revision was ever forgotten.
    pub forgotten: Revision,
}

/// A process that serves the journal's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: u64,
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    /// Of the claim by which it writes; 0 if it follows.
    pub epoch: Epoch,
    pub beat: u64,
}
