//! The API server as this service knows it: ConfigMaps as documents of the core, nodes as their metadata,
//! and refusals told apart by what to do about them. Never decides and never repeats a request.
//!
//! | module | owns |
//! |---|---|
//! | `error` | what an answer means |
//! | `store` | the ConfigMaps of one namespace |
//! | `leases` | locks, as what is left behind of them |
//! | `nodes` | nodes: read, listed, watched, patched |
//! | `listing`, `changes` | all objects at one moment, and what happens to them after it |
//! | `convert` | objects as `k8s-openapi` has them, and as the core has them |

mod changes;
mod convert;
mod error;
mod leases;
mod listing;
mod nodes;
mod store;
#[cfg(test)]
mod tests;

use std::time::Duration;

use kube::Client;

pub(crate) use self::convert::{document, header, live_node};
pub use self::{
    changes::{Change, Changes},
    convert::Unreadable,
    error::{Error, Kind, Verb},
    leases::Leases,
    listing::Listing,
    nodes::Nodes,
    store::{Guard, Store},
};
use crate::options::Namespaces;

/// How long an answer may take. Longer than the API server's own limits on reads of our size, and
/// shorter than a person's patience with a process that hangs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What the service reads and writes.
#[derive(Clone)]
pub struct Objects {
    pub nodes: Nodes,
    pub transactions: Store,
    /// One per node being worked on.
    pub locks: Leases,
    pub records: Store,
    pub checkpoints: Store,
}

// === impl Objects ===

impl Objects {
    #[must_use]
    pub fn new(client: &Client, namespaces: &Namespaces) -> Self {
        Self {
            nodes: Nodes::new(client.clone()),
            transactions: Store::new(client.clone(), &namespaces.transactions),
            locks: Leases::new(client.clone(), &namespaces.transactions),
            records: Store::new(client.clone(), &namespaces.metadata),
            checkpoints: Store::new(client.clone(), &namespaces.checkpoints),
        }
    }
}

/// Waits for an answer, not for ever.
async fn answer<T>(
    verb: Verb,
    object: &str,
    sent: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST_TIMEOUT, sent).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(Error::refused(verb, object, source)),
        Err(_elapsed) => Err(Error::timed_out(verb, object)),
    }
}
