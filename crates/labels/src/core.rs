//! What decides: pure functions and plain data. No I/O, no clock, no chance, no client.
//!
//! A watcher turns events into [`transaction`]s. A processor reads a node and its [`record`], asks
//! [`decide`] what a transaction means and [`settle`] what is left to do, and carries out the
//! [`command`]s.

pub mod change;
pub mod checkpoint;
pub mod command;
pub mod decide;
pub mod flat;
pub mod keys;
pub mod label;
pub mod ledger;
pub mod names;
pub mod object;
pub mod past;
pub mod policy;
pub mod queue;
pub mod rank;
pub mod reading;
pub mod record;
pub mod resync;
pub mod rv;
pub mod settle;
pub mod snapshot;
pub mod transaction;
pub mod watch;
