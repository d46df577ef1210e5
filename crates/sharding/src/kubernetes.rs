//! The API server as the parties of a ring know it: Rings, Leases and metadata as types of the core,
//! and refusals told apart by what to do about them. Never decides and never repeats a request.
//!
//! | module | owns |
//! |---|---|
//! | `error` | what an answer means |
//! | `ring` | the Ring as it is stored: spec, status, finalizer |
//! | `leases` | the Leases of one ring, in whatever namespaces they are |
//! | `namespaces` | their names and labels |
//! | `discovery` | which resource is which kind |
//! | `objects` | the objects of one kind: read, listed in pages, watched, labelled |
//! | `stored` | what is read of an object's metadata |
//! | `convert` | what is stored, as the core has it, and the patches that change it |
//! | `changes` | what happens to objects after a list |

mod changes;
mod convert;
mod discovery;
mod error;
mod leases;
mod namespaces;
mod objects;
mod ring;
mod stored;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use changes::{Change, Changes};
pub use convert::{Unreadable, label_patch, lease, lease_patch, new_lease, object};
pub use discovery::{Served, discover};
pub use error::{Error, Meaning, Verb};
pub use leases::Leases;
pub use namespaces::Namespaces;
pub use objects::{Objects, Page};
pub use ring::{FINALIZER, MemberStatus, Ring, RingStatus, Rings};
pub use stored::{Known, Metadata};

/// What a page has at most: metadata is about 740 bytes an object.
pub const PAGE: u32 = 500;

/// How long a list or a read may take. Writes are given their time by whoever sends them, because
/// what is safe depends on the Leases.
pub const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// A request, by what it is to do and to what.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) verb: Verb,
    pub(crate) about: &'a str,
    pub(crate) timeout: Duration,
}

// === impl Request ===

impl<'a> Request<'a> {
    pub(crate) fn read(verb: Verb, about: &'a str) -> Self {
        Self { verb, about, timeout: READ_TIMEOUT }
    }

    /// Waits for an answer, not for ever.
    pub(crate) async fn answer<T>(
        self,
        sent: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let Self { verb, about, timeout } = self;
        match tokio::time::timeout(timeout, sent).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(Error::refused(verb, about, source)),
            Err(_elapsed) => Err(Error::TimedOut { verb, about: about.to_owned() }),
        }
    }

    pub(crate) fn unreadable(self, source: Unreadable) -> Error {
        let Self { verb, about, .. } = self;
        Error::Unreadable { verb, about: about.to_owned(), source }
    }
}

/// Nothing where there is no such object.
pub(crate) fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.meaning() == Meaning::Gone => Ok(None),
        Err(error) => Err(error),
    }
}
