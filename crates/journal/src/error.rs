//! How a journal fails.

use std::{
    io,
    path::{Path, PathBuf},
};

use mvcc::Revision;

use crate::Epoch;

/// Why a journal could not be opened, read or kept in order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{step} {}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is in use by another process", path.display())]
    Locked { path: PathBuf },
    #[error("{} holds no journal", path.display())]
    NoJournal { path: PathBuf },
    #[error("{} has format {found}, this program reads up to {supported}", path.display())]
    NewerFormat { path: PathBuf, found: u32, supported: u32 },
    #[error("{} is damaged at byte {offset}: {what}", path.display())]
    Corrupt { path: PathBuf, offset: u64, what: String },
    #[error("revisions {first} to {last} are missing in {}", path.display())]
    Missing { path: PathBuf, first: Revision, last: Revision },
    /// Nothing is known about what a failed write left on the medium, so none may follow it.
    #[error("{} takes no more writes, because an earlier one failed", path.display())]
    Stopped { path: PathBuf },
    /// What the shared engine holds cannot be what this journal wrote.
    #[error("the journal's tables are damaged")]
    Damaged {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody who follows a shared journal was away for so long that what it needs is gone.
    #[error("revision {revision} was forgotten before it was read")]
    Forgotten { revision: Revision },
    /// The shared engine behind the journal could not be reached or refused the call.
    #[error("the journal's engine is unavailable")]
    Unavailable {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a write did not happen, or may not have happened.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    #[error("epoch {} was taken over by epoch {}", held.0, current.0)]
    Fenced { held: Epoch, current: Epoch },
    #[error("revision {found} does not follow {durable}")]
    OutOfOrder { durable: Revision, found: Revision },
    #[error("an image can only be loaded into an empty journal, this one is at revision {durable}")]
    NotEmpty { durable: Revision },
    /// The caller gathered more than a journal can make durable at once. Nothing was written.
    #[error("a batch of {bytes} bytes is above the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the outcome of the write is unknown")]
    Unknown {
        #[source]
        source: Error,
    },
    #[error("the journal can no longer be written")]
    Failed {
        #[source]
        source: Error,
    },
}

/// Says what was being done to which file when the system refused.
pub(crate) trait At<T> {
    fn at(self, step: &'static str, path: &Path) -> Result<T, Error>;
}

// === impl Error ===

impl Error {
    /// Whether the medium, or what of it the journal may take, is full.
    #[must_use]
    pub fn is_medium_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

// === impl At ===

impl<T> At<T> for io::Result<T> {
    fn at(self, step: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { step, path: path.to_owned(), source })
    }
}
