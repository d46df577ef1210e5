//! What can come of a request to the store. The one place that reads gRPC's codes.

use std::{error::Error as _, time::Duration};

use etcd_api::ApiError;
use tonic::{Code, Response, Status};

use super::REQUEST_TIMEOUT;
use crate::core::record::RecordError;
use crate::core::transition::SettleError;
use crate::core::txn::AnswerError;

/// Why a request has no good answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write may have been carried out, or may be yet.
    #[error("the store did not answer")]
    Unknown(#[source] Silence),
    /// Nothing was written.
    #[error("the store refused the request: {}", in_words(.0))]
    Refused(Status),
    /// What was asked for lies before what the store remembers.
    #[error("the store has forgotten that revision")]
    Compacted,
    #[error("the answer does not fit the request")]
    Answer(#[source] AnswerError),
    #[error("the answer settles nothing")]
    Settle(#[source] SettleError),
    #[error("the task cannot be read")]
    Record(#[source] RecordError),
}

/// How an answer failed to come.
#[derive(Debug, thiserror::Error)]
pub enum Silence {
    #[error("no answer came in time")]
    TimedOut,
    #[error("the connection broke, or the store was between two leaders: {}", in_words(.0))]
    Broken(Status),
}

/// What a status means to people: its message and what was at the bottom of it. Its own words are
/// those of a debugger.
fn in_words(status: &Status) -> String {
    let causes = std::iter::successors(status.source(), |cause| (*cause).source());
    match causes.last().map(ToString::to_string) {
        Some(cause) if cause != status.message() => format!("{}: {cause}", status.message()),
        _ => status.message().to_owned(),
    }
}

// === impl Error ===

impl Error {
    /// Whether asking again could help: nobody answered, or not with a decision.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    pub(super) fn new(status: Status) -> Self {
        if status.message() == ApiError::Compacted.message() {
            return Self::Compacted;
        }
        match status.code() {
            // Said before anything is done.
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => Self::Refused(status),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Self::Unknown(Silence::Broken(status)),
        }
    }
}

/// Waits for an answer as long as a request may take.
pub(super) async fn answered<T>(
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Error> {
    within(REQUEST_TIMEOUT, call).await.map(Response::into_inner)
}

/// Waits for an answer for some time.
pub(super) async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Error> {
    match tokio::time::timeout(patience, call).await {
        Ok(answer) => answer.map_err(Error::new),
        Err(_elapsed) => Err(Error::Unknown(Silence::TimedOut)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_told_by_its_message_and_its_first_cause() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(refused));
        assert_eq!(in_words(&Status::unavailable("not now")), "not now");
        assert_eq!(in_words(&status), "connection refused");
    }
}
