//! What an answer means. The API server's codes mean different things for different objects; here
//! each becomes the one thing to do about it.

use std::fmt;

use kube::core::Status;
use kubekit::failure::Failure;

use super::Unreadable;

/// A request that did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {object}: {kind}")]
pub struct Error {
    pub verb: Verb,
    /// What it was about, with its namespace.
    pub object: String,
    pub kind: Kind,
    #[source]
    cause: Cause,
}

/// What happened, for whoever reads the log.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error(transparent)]
    Failed(Failure),
    #[error("no answer in time")]
    TimedOut,
    #[error("the answer makes no sense")]
    Unreadable(#[source] Unreadable),
}

/// Why, by what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has changed since it was read: read again, decide anew.
    Conflict,
    /// It was to be created and exists.
    AlreadyExists,
    /// Its name belongs to another incarnation now: read again, decide anew.
    OtherIncarnation,
    /// What was asked for can never be: do not repeat it.
    Invalid,
    /// It does not exist.
    NotFound,
    /// The namespace does not exist: keep everything, wait.
    NamespaceMissing,
    /// The service may not do this: keep everything, wait.
    Forbidden,
    /// History does not reach back that far: list again.
    Expired,
    /// The answer is none that this service understands: do nothing.
    Unreadable,
    /// Overload, failure, silence. It may have been done: read again before anything else.
    Unknown,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Read,
    List,
    Watch,
    Create,
    Replace,
    Patch,
    Delete,
}

// === impl Error ===

impl Error {
    pub(super) fn refused(verb: Verb, object: &str, source: kube::Error) -> Self {
        let failure = Failure::from(source);
        let kind = Kind::of_failure(&failure);
        Self { verb, object: object.to_owned(), kind, cause: Cause::Failed(failure) }
    }

    pub(super) fn timed_out(verb: Verb, object: &str) -> Self {
        Self { verb, object: object.to_owned(), kind: Kind::Unknown, cause: Cause::TimedOut }
    }

    pub(super) fn unreadable(verb: Verb, object: &str, source: Unreadable) -> Self {
        let cause = Cause::Unreadable(source);
        Self { verb, object: object.to_owned(), kind: Kind::Unreadable, cause }
    }
}

// === impl Kind ===

impl Kind {
    pub(crate) fn of_failure(failure: &Failure) -> Self {
        failure.refusal().map_or(Self::Unknown, Self::of)
    }

    fn of(status: &Status) -> Self {
        match status.code {
            409 if status.is_already_exists() => Self::AlreadyExists,
            409 => Self::Conflict,
            // A uid in a patch is compared as if it were to be changed, so another incarnation is
            // reported as an attempt to change what cannot be changed.
            422 if names_field(status, "metadata.uid") => Self::OtherIncarnation,
            400 | 413 | 422 => Self::Invalid,
            404 if is_about(status, "namespaces") => Self::NamespaceMissing,
            404 => Self::NotFound,
            401 | 403 => Self::Forbidden,
            410 => Self::Expired,
            _ => Self::Unknown,
        }
    }
}

fn names_field(status: &Status, field: &str) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == field)
}

fn is_about(status: &Status, kind: &str) -> bool {
    status.details.as_ref().is_some_and(|details| details.kind == kind)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "it has changed meanwhile",
            Self::AlreadyExists => "it exists",
            Self::OtherIncarnation => "another incarnation bears its name",
            Self::Invalid => "the API server finds it invalid",
            Self::NotFound => "it does not exist",
            Self::NamespaceMissing => "its namespace does not exist",
            Self::Forbidden => "this account may not",
            Self::Expired => "history does not reach back that far",
            Self::Unreadable => "the answer cannot be understood",
            Self::Unknown => "the outcome is unknown",
        })
    }
}

// === impl Verb ===

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Replace => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}
