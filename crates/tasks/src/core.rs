//! What decides: pure functions and plain data. No I/O, no clock, no chance; times and ids come in
//! as arguments.
//!
//! Read in this order: [`id`], [`keys`], [`spec`], [`status`], [`record`] (the data); [`txn`] and
//! [`transition`] (how it changes, one transaction each); [`fsck`] (what must hold of it); [`cache`]
//! (what a node knows of it); [`rank`], [`steal`], [`admission`], [`starvation`], [`explain`] (who
//! takes a task); [`lease`], [`sweep`], [`drain`], [`gc`], [`retry`] (what happens when nodes come,
//! go and fail); [`agent`] (a node as a whole: what it is told in, what it does out).

pub mod admission;
pub mod agent;
pub mod amounts;
pub mod cache;
pub mod drain;
pub mod explain;
pub mod fsck;
pub mod gc;
pub mod id;
pub mod keys;
pub mod lease;
pub mod node;
pub mod rank;
pub mod record;
pub mod retry;
pub mod spec;
pub mod starvation;
pub mod status;
pub mod steal;
pub mod sweep;
pub mod time;
pub mod transition;
pub mod txn;
