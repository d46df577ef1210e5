//! Why the store refuses a request, and which entry of etcd's catalogue says so.

use etcd_api::ApiError;

use crate::auth;

/// Why a request was refused or not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the request makes no sense")]
    Request(#[source] mvcc::check::RequestError),
    #[error("the keyspace refused")]
    Keyspace(#[source] mvcc::Error),
    #[error("access refused")]
    Auth(#[source] auth::Error),
    /// An answer of the API that no state below the services decides.
    #[error("{0}")]
    Api(#[source] ApiError),
    #[error("the journal failed")]
    Journal(#[source] journal::Error),
    #[error("the journal could not make room")]
    Condense(#[source] journal::AppendError),
    #[error("history could not be read")]
    History(#[source] mvcc::ReadError),
    /// Nobody is known who writes.
    #[error("no member writes")]
    NoWriter,
    /// The writer's role went to another member before the answer was known.
    #[error("the writer's role changed hands")]
    Deposed,
    /// The store is shutting down, or has stopped because its journal failed.
    #[error("the store has stopped")]
    Stopped,
}

// === impl Error ===

impl Error {
    /// How a client hears of it.
    pub(crate) fn api(&self) -> ApiError {
        match self {
            Self::Request(error) => of_request(*error),
            Self::Keyspace(error) => of_keyspace(error),
            Self::Auth(error) => error.api_error(),
            Self::Api(error) => *error,
            Self::Journal(error) => of_journal(error),
            Self::History(error) => of_read(error),
            Self::Condense(_) | Self::Stopped => ApiError::Stopped,
            Self::NoWriter => ApiError::NoLeader,
            Self::Deposed => ApiError::LeaderChanged,
        }
    }
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

fn of_request(error: mvcc::check::RequestError) -> ApiError {
    use mvcc::check::RequestError;
    match error {
        RequestError::EmptyKey => ApiError::EmptyKey,
        RequestError::InvalidSort => ApiError::InvalidSortOption,
        RequestError::ValueProvided => ApiError::ValueProvided,
        RequestError::LeaseProvided => ApiError::LeaseProvided,
        RequestError::TooManyOps => ApiError::TooManyOps,
        RequestError::DuplicateKey => ApiError::DuplicateKey,
        RequestError::EmptyOp => ApiError::KeyNotFound,
    }
}

fn of_keyspace(error: &mvcc::Error) -> ApiError {
    match error {
        mvcc::Error::FutureRevision { .. } => ApiError::FutureRevision,
        mvcc::Error::Compacted { .. } => ApiError::Compacted,
        mvcc::Error::KeyNotFound => ApiError::KeyNotFound,
        mvcc::Error::LeaseNotFound(_) => ApiError::LeaseNotFound,
        mvcc::Error::LeaseExists(_) => ApiError::LeaseExists,
        mvcc::Error::TooLarge { .. } => ApiError::RequestTooLarge,
        mvcc::Error::Read { source, .. } => of_read(source),
    }
}

fn of_read(error: &mvcc::ReadError) -> ApiError {
    error.downcast_ref().map_or(ApiError::Corrupt, of_journal)
}

/// What a shared journal cannot tell now it may tell later, or another member may. A system that
/// refuses says nothing about the data: only what was read and is wrong is damage.
fn of_journal(error: &journal::Error) -> ApiError {
    match error {
        _ if is_passing(error) => ApiError::Timeout,
        _ if error.is_medium_full() => ApiError::NoSpace,
        journal::Error::Io { .. } => ApiError::Unhealthy,
        journal::Error::Stopped { .. } => ApiError::Stopped,
        _ => ApiError::Corrupt,
    }
}

pub(crate) fn is_passing(error: &journal::Error) -> bool {
    matches!(error, journal::Error::Unavailable { .. } | journal::Error::Forgotten { .. })
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;

    fn check(kind: ErrorKind, expected: ApiError) {
        let source = io::Error::from(kind);
        let error = journal::Error::Io { step: "cannot write", path: "log".into(), source };
        assert_eq!(Error::Journal(error).api(), expected);
    }

    /// An operator who asked a full disk for room with `etcdctl defrag` was told that the cluster is
    /// corrupt.
    #[test]
    fn a_full_disk_is_called_corrupt() {
        check(ErrorKind::StorageFull, ApiError::NoSpace);
        check(ErrorKind::QuotaExceeded, ApiError::NoSpace);
        check(ErrorKind::PermissionDenied, ApiError::Unhealthy);
        let what = String::new();
        let damage = journal::Error::Corrupt { path: "log".into(), offset: 0, what };
        assert_eq!(Error::Journal(damage).api(), ApiError::Corrupt);
    }
}
