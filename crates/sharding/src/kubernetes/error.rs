//! What an answer means. The API server has many codes; here each becomes the one thing to do about
//! it.

use std::fmt;

use kubekit::failure::Failure;

use super::Unreadable;

/// A request that did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {verb} {about}")]
    Failed {
        verb: Verb,
        /// What it was about, with its namespace.
        about: String,
        #[source]
        source: Failure,
    },
    #[error("cannot {verb} {about}: no answer in time")]
    TimedOut { verb: Verb, about: String },
    #[error("the answer to {verb} {about} makes no sense")]
    Unreadable {
        verb: Verb,
        about: String,
        #[source]
        source: Unreadable,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It was written since it was seen, or exists: read again, decide anew.
    Conflict,
    /// There is no such object; or no such resource.
    Gone,
    /// This account may not, or an admission policy refuses it: waiting may help, repeating does not.
    Forbidden,
    /// What was asked for can never be.
    Invalid,
    /// The server has too much to do: ask for less.
    Busy,
    /// History does not reach back that far: list again.
    Expired,
    /// Failure or silence. It may have been done: read again before anything else.
    Unknown,
}

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Discover,
    Read,
    List,
    Watch,
    Create,
    Patch,
    Delete,
}

// === impl Error ===

impl Error {
    pub(crate) fn refused(verb: Verb, about: &str, source: kube::Error) -> Self {
        Self::Failed { verb, about: about.to_owned(), source: Failure::from(source) }
    }

    #[must_use]
    pub fn meaning(&self) -> Meaning {
        let Self::Failed { source, .. } = self else { return Meaning::Unknown };
        match source.refusal().map(|status| status.code) {
            Some(409) => Meaning::Conflict,
            Some(404) => Meaning::Gone,
            Some(401 | 403) => Meaning::Forbidden,
            Some(400 | 413 | 422) => Meaning::Invalid,
            Some(429) => Meaning::Busy,
            Some(410) => Meaning::Expired,
            _ => Meaning::Unknown,
        }
    }

    #[must_use]
    pub fn verb(&self) -> Verb {
        match self {
            Self::Failed { verb, .. }
            | Self::TimedOut { verb, .. }
            | Self::Unreadable { verb, .. } => *verb,
        }
    }
}

// === impl Verb ===

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discover => "discover",
            Self::Read => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}
