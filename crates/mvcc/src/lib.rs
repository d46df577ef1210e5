//! The keyspace of an etcd-compatible store: revisions, index, transactions, history, compaction
//! and hash.
//!
//! A core: synchronous, without I/O, clock or randomness. It decides; others keep and send. The
//! [`Keyspace`] is the state with all writes that were given a revision, durable or not. A
//! [`View`] is that state at one moment, immutable and cheap, for readers. Key-values themselves
//! are not here: the index knows where each change lies ([`Position`]), and reads it back through
//! [`Values`].
//!
//! ```
//! use etcd_api::etcdserverpb::{PutRequest, RangeRequest};
//! use mvcc::{Keyspace, Position, ReadError, Record, Values};
//!
//! /// Keeps every record in memory; a store keeps them in a journal.
//! #[derive(Default)]
//! struct Memory(Vec<Record>);
//!
//! impl Values for Memory {
//!     fn read(&self, at: Position) -> Result<etcd_api::mvccpb::KeyValue, ReadError> {
//!         let record = self.0.iter().find(|record| record.revision == at.revision);
//!         Ok(record.ok_or("not kept")?.changes[at.sub as usize].kv.clone())
//!     }
//! }
//!
//! let mut keyspace = Keyspace::new();
//! let mut memory = Memory::default();
//! let put = PutRequest { key: "a".into(), value: "1".into(), ..Default::default() };
//! let outcome = keyspace.put(&put, &memory)?;
//! memory.0.extend(outcome.written.map(|written| written.record));
//!
//! let range = RangeRequest { key: "a".into(), ..Default::default() };
//! let answer = keyspace.view().range(&range, &memory)?;
//! assert_eq!(answer.kvs[0].mod_revision(), 2);
//! # Ok::<(), mvcc::Error>(())
//! ```

pub mod check;
mod compare;
mod draft;
mod entry;
mod error;
mod hash;
mod key;
mod keyspace;
mod lease;
mod range;
mod record;
mod revision;
#[cfg(feature = "story")]
pub mod story;
mod trail;
mod tree;
mod txn;
mod view;

pub use draft::{Outcome, Revoked, Written};
pub use error::{Error, ReadError};
pub use hash::HistoryHash;
pub use key::KeyRange;
pub use keyspace::{Keyspace, Sweep};
pub use lease::{Lease, LeaseId, Leases};
pub use record::{CHANGE_OVERHEAD_BYTES, Change, Record};
pub use revision::{Position, Revision};
pub use txn::is_read_only;
pub use view::{Values, View};
