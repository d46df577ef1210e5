//! Why a call has no good answer, and which refusal that is to the one who called.

use std::error::Error as _;

use super::refusal::{Kind, Refusal};
use crate::core::id::{IdError, TaskId};
use crate::core::transition::{CancelRefused, SubmitError};
use crate::store::{self, CancelError, FsckError, GcError, Silence, SubmitFailed};

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: Field },
    #[error("a certificate of this cluster is needed")]
    NoCertificate,
    #[error("there is no task {0}")]
    NoTask(TaskId),
    #[error("task {id} has no attempt {attempt}")]
    NoAttempt { id: TaskId, attempt: u32 },
    #[error("there is no node {0:?}")]
    NoNode(String),
    #[error("{max} tasks are queued, and no more are taken")]
    QueueFull { max: usize },
    #[error("{max} {what} are served at once, and no more")]
    Busy { what: &'static str, max: usize },
    #[error("more than {max} changes were not read: list again, and watch from there")]
    TooSlow { max: usize },
    #[error("the node does not know all tasks yet")]
    NotReady,
    #[error("the node stops")]
    Stopping,
    #[error("the store did not answer for so long that the node lost its lease")]
    CutOff,
    #[error("node {name} does not answer at {address}")]
    PeerAway { name: String, address: String },
    #[error("the log of attempt {attempt} of task {id} is on node {owner}, which does not answer")]
    OwnerAway { id: TaskId, attempt: u32, owner: String },
    #[error("the log of attempt {attempt} of task {id} is gone")]
    LogGone { id: TaskId, attempt: u32 },
    #[error("the log cannot be read")]
    ReadLog(#[source] sandbox::log::Error),
    #[error("the store does not answer")]
    Store(#[source] store::Error),
    #[error("the task is not known to be stored")]
    Submit(#[source] SubmitFailed),
    #[error("the task is not known to be canceled")]
    Cancel(#[source] CancelError),
    #[error("the store cannot be checked")]
    Fsck(#[source] FsckError),
    #[error("old tasks cannot be removed")]
    Gc(#[source] GcError),
    /// What another node refused is passed on as it is.
    #[error(transparent)]
    Passed(#[from] Refusal),
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Field {
    #[error("{0}")]
    Id(IdError),
    #[error("must be given")]
    Missing,
    #[error("{count} nodes are called {name:?}; name one by its id")]
    Ambiguous { name: String, count: usize },
    #[error("{0} is unknown")]
    Unknown(i32),
    #[error("{0:?} is not the beginning of an id, of 8 characters or more")]
    NotAPrefix(String),
    #[error("{0:?} was not given out by a list")]
    NotAToken(String),
    #[error("has {count} entries; at most {max} are allowed")]
    TooMany { count: usize, max: usize },
    #[error("is {value}; at most {max} is allowed")]
    TooLarge { value: u64, max: u64 },
    #[error("cannot be given together with from_offset")]
    NotWithOffset,
    #[error("{0} is not a time")]
    NotATime(i64),
}

// === impl Error ===

impl Error {
    pub(super) fn field(field: &'static str, problem: Field) -> Self {
        Self::Field { field, problem }
    }

    pub(super) fn id(field: &'static str, source: IdError) -> Self {
        Self::Field { field, problem: Field::Id(source) }
    }

    pub(super) fn too_many(field: &'static str, count: usize, max: usize) -> Result<(), Self> {
        if count > max {
            return Err(Self::field(field, Field::TooMany { count, max }));
        }
        Ok(())
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Field { .. } => Kind::InvalidArgument,
            Self::NoCertificate => Kind::Unauthenticated,
            Self::NoTask(_) | Self::NoAttempt { .. } | Self::NoNode(_) => Kind::NotFound,
            Self::QueueFull { .. } | Self::Busy { .. } | Self::TooSlow { .. } => {
                Kind::ResourceExhausted
            }
            Self::NotReady
            | Self::Stopping
            | Self::CutOff
            | Self::PeerAway { .. }
            | Self::OwnerAway { .. } => Kind::Unavailable,
            Self::LogGone { .. } => Kind::DataLoss,
            Self::ReadLog(_) => Kind::Internal,
            Self::Store(error) => of_read(error),
            Self::Submit(error) => of_submit(error),
            Self::Cancel(error) => of_cancel(error),
            Self::Fsck(FsckError::Tasks(error) | FsckError::Nodes(error)) => of_read(error),
            Self::Fsck(FsckError::Repair { source, .. }) => of_write(source),
            Self::Gc(GcError::Statuses(error) | GcError::Tasks(error)) => of_read(error),
            Self::Gc(GcError::Delete { source, .. }) => of_write(source),
            Self::Passed(refusal) => refusal.kind,
        }
    }

    /// What is wrong with a spec is said without more ado; everything else with its causes.
    fn message(&self) -> String {
        if let Self::Submit(SubmitFailed::Refused(SubmitError::Spec(error))) = self {
            return error.to_string();
        }
        let mut message = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        message
    }
}

impl From<Error> for Refusal {
    /// Faults of ours are logged here, since nobody else looks at them.
    fn from(error: Error) -> Self {
        let (kind, message) = (error.kind(), error.message());
        if kind == Kind::Internal {
            tracing::error!(error = message, "a call failed");
        }
        Self { kind, message }
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        Refusal::from(error).into()
    }
}

fn of_submit(error: &SubmitFailed) -> Kind {
    match error {
        SubmitFailed::Refused(SubmitError::Spec(_) | SubmitError::TooLarge { .. }) => {
            Kind::InvalidArgument
        }
        SubmitFailed::Refused(SubmitError::OtherSpec { .. }) => Kind::AlreadyExists,
        SubmitFailed::Gone(_) => Kind::Aborted,
        SubmitFailed::Store(error) => of_write(error),
        SubmitFailed::Batch(error) => of_write(error),
    }
}

fn of_cancel(error: &CancelError) -> Kind {
    match error {
        CancelError::NotFound(_) => Kind::NotFound,
        CancelError::Refused(CancelRefused::Ended { .. } | CancelRefused::Transition(_)) => {
            Kind::FailedPrecondition
        }
        CancelError::LostRaces { .. } => Kind::Aborted,
        CancelError::Store(error) => of_write(error),
    }
}

/// Of a write that was not answered in time nobody knows whether it was done.
fn of_write(error: &store::Error) -> Kind {
    match error {
        store::Error::Unknown(Silence::TimedOut) => Kind::DeadlineExceeded,
        other => of_read(other),
    }
}

fn of_read(error: &store::Error) -> Kind {
    match error {
        store::Error::Unknown(_) | store::Error::Refused(_) => Kind::Unavailable,
        store::Error::Compacted => Kind::OutOfRange,
        store::Error::Answer(_) | store::Error::Settle(_) | store::Error::Record(_) => {
            Kind::Internal
        }
    }
}
