//! Why the keyspace refuses.

use crate::{LeaseId, Position, Revision};

/// Why an operation could not be carried out. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("revision {wanted} is above the current revision {current}")]
    FutureRevision { wanted: Revision, current: Revision },
    #[error("revision {wanted} is below the compacted revision {compacted}")]
    Compacted { wanted: Revision, compacted: Revision },
    /// A put that keeps the old value or lease found no old value.
    #[error("the key does not exist")]
    KeyNotFound,
    #[error("lease {0} does not exist")]
    LeaseNotFound(LeaseId),
    #[error("lease {0} exists already")]
    LeaseExists(LeaseId),
    /// More than the journal takes as one record.
    #[error("a record of {bytes} bytes is above the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the change at {position} could not be read back")]
    Read {
        position: Position,
        #[source]
        source: ReadError,
    },
}

/// Why a change could not be read back by its position.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;
