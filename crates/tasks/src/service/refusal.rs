//! What is refused to a client, and how gRPC says it. Both sides of the API read and write it here,
//! and nobody else names gRPC's codes.

use tonic::{Code, Status};

/// A refused call: what kind of trouble it is, and words for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: Kind,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field is wrong; the message names it.
    InvalidArgument,
    /// There is no such task, attempt or node.
    NotFound,
    /// The idempotency key belongs to another spec.
    AlreadyExists,
    /// The task has ended.
    FailedPrecondition,
    /// Others were faster, time and again.
    Aborted,
    /// The history that was asked for is compacted.
    OutOfRange,
    /// A bound is reached, or a reader was too slow.
    ResourceExhausted,
    /// The log is gone.
    DataLoss,
    /// The store, or the node that has the log, does not answer. Asking again may help.
    Unavailable,
    /// Whether it was done is not known.
    DeadlineExceeded,
    /// No valid certificate.
    Unauthenticated,
    /// The caller went away.
    Cancelled,
    /// A fault of ours.
    Internal,
}

const CODES: [(Kind, Code); 13] = [
    (Kind::InvalidArgument, Code::InvalidArgument),
    (Kind::NotFound, Code::NotFound),
    (Kind::AlreadyExists, Code::AlreadyExists),
    (Kind::FailedPrecondition, Code::FailedPrecondition),
    (Kind::Aborted, Code::Aborted),
    (Kind::OutOfRange, Code::OutOfRange),
    (Kind::ResourceExhausted, Code::ResourceExhausted),
    (Kind::DataLoss, Code::DataLoss),
    (Kind::Unavailable, Code::Unavailable),
    (Kind::DeadlineExceeded, Code::DeadlineExceeded),
    (Kind::Unauthenticated, Code::Unauthenticated),
    (Kind::Cancelled, Code::Cancelled),
    (Kind::Internal, Code::Internal),
];

// === impl Refusal ===

impl Refusal {
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind.code(), refusal.message)
    }
}

impl From<Status> for Refusal {
    /// A broken connection comes as an unknown status with a cause in transport; both are the same
    /// to who asks: nobody knows whether it was heard.
    fn from(status: Status) -> Self {
        let is_transport = std::error::Error::source(&status).is_some();
        let kind = match status.code() {
            Code::Unknown if is_transport => Kind::Unavailable,
            code => Kind::of(code),
        };
        Self::new(kind, status.message())
    }
}

// === impl Kind ===

impl Kind {
    /// As it stands in the result of one item of a batch.
    #[must_use]
    pub fn number(self) -> i32 {
        self.code().into()
    }

    /// The kind of a number that stands in such a result.
    #[must_use]
    pub fn of_number(number: i32) -> Self {
        Self::of(Code::from(number))
    }

    fn code(self) -> Code {
        let known = CODES.iter().find(|(kind, _)| *kind == self);
        known.map(|(_, code)| *code).expect("every kind is in the table")
    }

    /// Codes that this API never sends are faults.
    fn of(code: Code) -> Self {
        let known = CODES.iter().find(|(_, each)| *each == code);
        known.map_or(Self::Internal, |(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_the_wire() {
        for (kind, code) in CODES {
            let status = Status::from(Refusal::new(kind, "words"));
            assert_eq!(status.code(), code);
            assert_eq!(Refusal::from(status), Refusal::new(kind, "words"));
            assert_eq!(Kind::of_number(kind.number()), kind);
        }
        assert_eq!(Refusal::from(Status::unimplemented("")).kind, Kind::Internal);
    }
}
