//! The sharder process: elected among its replicas, it runs every ring of the cluster. It reads, lets
//! [`core::sharder`](crate::core::sharder) decide, and carries that out; it never decides itself.
//!
//! | module | owns |
//! |---|---|
//! | [`options`], [`service`], [`lifecycle`] | what a process is told, is made of, and runs |
//! | `feed` and `feeds` | watches without end, and what each of them watches |
//! | `supervisor` | one task for each Ring |
//! | `ring` | the parts of one ring, together |
//! | `upkeep` | what a ring needs before it can work: kinds, rights, fence, finalizer |
//! | `plan` | what of a Ring can be worked on, and what is wrong with it |
//! | `fence` | the admission policy of a ring |
//! | `driver` | the core of one ring, and everything under way for it |
//! | `hand`, `pages` | carrying out commands |
//! | `status`, `conditions` | what the Ring's status says, and when it is written |
//! | `tell`, `metrics` | Events, numbers |

mod conditions;
mod driver;
mod feed;
mod feeds;
mod fence;
mod hand;
pub mod lifecycle;
mod metrics;
pub mod options;
mod pages;
mod plan;
mod ring;
pub mod service;
mod status;
mod supervisor;
mod tell;
mod upkeep;

use kube::Client;
use kubekit::events::Handle as Events;
use kubekit::lease::WallClock;
use tokio::sync::Semaphore;

use self::feed::Watches;
use self::metrics::Metrics;
use crate::kubernetes::Rings;

pub use options::Options;
pub use service::{Service, StartError};

/// Rings that are prepared at once: discovery, rights, fences.
const UPKEEP_WORKERS: usize = 4;
/// Requests about instances' Leases under way at once.
const LEASE_WORKERS: usize = 4;

/// What all rings share.
pub(crate) struct Context {
    client: Client,
    /// For Leases: it repeats nothing.
    lease_client: Client,
    rings: Rings,
    /// The sharder's own namespace.
    home: String,
    metrics: Metrics,
    events: Events,
    watches: Watches,
    clock: WallClock,
    upkeep_workers: Semaphore,
    lease_workers: Semaphore,
}
