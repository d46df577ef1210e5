//! The shell of the store: an etcd v3 server over a journal.
//!
//! ```text
//! http ──► services ──commands──► sequencer ──batches──► journal
//!              ▲                      │                     │ durable
//!              └── published state ◄──┴── watch, leases, auth ◄┘
//! ```
//!
//! A write goes through the `sequencer`, which gives it its revision and answers when it is
//! durable. A read takes the newest `published` state and waits for nobody. `watch` is a cursor
//! over the journal. The store never keeps state on a disk itself: that is the journal's.

mod alarm;
pub(crate) mod auth;
mod auto_compaction;
mod context;
mod error;
mod expiry;
mod hash;
mod housekeeping;
pub mod http;
pub mod import;
mod lease;
mod lifecycle;
mod load;
mod meta;
mod metrics;
mod options;
mod probes;
mod published;
mod quota;
mod replica;
mod sequencer;
mod service;
mod services;
pub mod snapshot;
mod values;
mod watch;
mod wholeness;
mod writing;

pub(crate) use error::Error;
pub use housekeeping::HousekeepingError;
pub use lifecycle::StopError;
pub use load::LoadError;
pub use meta::{Error as MetaError, check as check_meta};
pub use options::{
    Address, Admitted, AuthToken, AutoCompaction, HttpAccess, JwtOptions, Limits, Listener,
    Options, PeerTls, Tls, TlsVersions,
};
pub use replica::{PeerTlsError, ReplicaError};
pub use sequencer::CommitError;
pub use service::{Service, StartError};
