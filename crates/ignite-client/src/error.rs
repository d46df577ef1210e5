//! How a call fails.

use std::{fmt, io, sync::Arc, time::Duration};

use uuid::Uuid;

use crate::{ColumnType, DecodeError};

/// Why a call failed. What matters to a caller who must not do a thing twice: only
/// [`Unknown`](Self::Unknown), [`Lost`](Self::Lost) and [`Silent`](Self::Silent) leave open whether
/// the server did what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no address of an Ignite node was given")]
    NoAddress,
    #[error("cannot connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("{address} did not answer within {} ms", waited.as_millis())]
    Silent { address: String, waited: Duration },
    /// It took the connection and said nothing: what waits for the end of a line, as HTTP does, cannot
    /// be told from a node that stands still.
    #[error(
        "{address} did not greet within {} ms; is it a port for Ignite's clients?",
        waited.as_millis()
    )]
    NoGreeting { address: String, waited: Duration },
    #[error("{address} does not speak the protocol of Ignite's clients")]
    NotIgnite { address: String },
    /// Wrong password, wrong version, and the like.
    #[error("{address} refused the connection")]
    Refused {
        address: String,
        #[source]
        source: ServerError,
    },
    #[error("none of {addresses} could be used")]
    NoneUsable {
        addresses: String,
        /// The refusal, if any of them refused; else the last failure.
        #[source]
        source: Box<Error>,
    },
    #[error("the connection to {address} was lost")]
    Lost {
        address: String,
        #[source]
        source: Arc<io::Error>,
    },
    #[error("the server refused")]
    Server(#[source] ServerError),
    #[error("whether the transaction was committed is unknown")]
    Unknown(#[source] Box<Error>),
    #[error("a message of {bytes} bytes is above the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("the answer of the server cannot be read")]
    Malformed(#[source] DecodeError),
    #[error("there is no table {name}")]
    NoTable { name: String },
    #[error("table {table} has no column {column}")]
    NoColumn { table: String, column: String },
    #[error("column {column} of table {table} takes {expected:?}, not {found:?}")]
    WrongType { table: String, column: String, expected: ColumnType, found: ColumnType },
    #[error("a row has no value for {column}, which is part of the key of table {table}")]
    NoKey { table: String, column: String },
}

/// What a server says when it does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct ServerError {
    pub code: ErrorCode,
    /// Finds the error in the server's log.
    pub trace_id: Uuid,
    /// The class of the exception.
    pub class: String,
    pub message: String,
    /// The version of the schema to use instead, where that was wrong.
    pub(crate) schema_expected: Option<i32>,
}

/// A code of Ignite's catalogue of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    pub group: u16,
    pub number: u16,
}

/// Groups by their number, counted from 1.
const GROUPS: [&str; 24] = [
    "CMN",
    "TBL",
    "CLIENT",
    "SQL",
    "META",
    "IDX",
    "TX",
    "REP",
    "STORAGE",
    "DISTRZONES",
    "NETWORK",
    "NODECFG",
    "CODEDEPLOY",
    "GC",
    "AUTHENTICATION",
    "COMPUTE",
    "CATALOG",
    "PLACEMENTDRIVER",
    "WORKERS",
    "RECOVERY",
    "EMBEDDED",
    "MARSHALLING",
    "REST",
    "COMMONCFG",
];

// === impl Error ===

impl Error {
    /// What the server said, if this is about what it said.
    #[must_use]
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(source) | Self::Refused { source, .. } => Some(source),
            Self::NoneUsable { source, .. } | Self::Unknown(source) => source.server(),
            _ => None,
        }
    }

    /// Whether the transaction lost a lock to another one and can be tried again from its start.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        let conflicts = [ErrorCode::LOCK_DENIED, ErrorCode::LOCK_TIMEOUT];
        self.server().is_some_and(|error| conflicts.contains(&error.code))
    }

    /// Whether user and password were refused.
    #[must_use]
    pub fn is_wrong_credentials(&self) -> bool {
        self.server().is_some_and(|error| error.code.group == ErrorCode::GROUP_AUTHENTICATION)
    }
}

impl From<DecodeError> for Error {
    fn from(source: DecodeError) -> Self {
        Self::Malformed(source)
    }
}

// === impl ErrorCode ===

impl ErrorCode {
    const GROUP_AUTHENTICATION: u16 = 15;
    /// A lock is held by an older transaction.
    pub const LOCK_DENIED: Self = Self { group: 7, number: 4 };
    /// A lock was waited for in vain.
    pub const LOCK_TIMEOUT: Self = Self { group: 7, number: 5 };
    pub(crate) const SCHEMA_VERSION_MISMATCH: Self = Self { group: 2, number: 5 };
}

impl From<i32> for ErrorCode {
    fn from(code: i32) -> Self {
        let code = code.cast_unsigned();
        Self { group: (code >> 16) as u16, number: (code & 0xffff) as u16 }
    }
}

impl fmt::Display for ErrorCode {
    /// As Ignite writes it, for instance `IGN-TX-4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = usize::from(self.group).checked_sub(1).and_then(|index| GROUPS.get(index));
        match known {
            Some(name) => write!(f, "IGN-{name}-{}", self.number),
            None => write!(f, "IGN-{}-{}", self.group, self.number),
        }
    }
}
