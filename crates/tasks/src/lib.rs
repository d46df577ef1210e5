//! Runs a command somewhere on the cluster: every node accepts, steals and runs tasks, and answers
//! for all others.
//!
//! [`wire`] has the messages that are kept in the store and spoken over the API, and the stubs of the
//! service. [`core`] decides: keys, records, transitions, stealing, fencing. It is pure; what it
//! decided is carried out by those who call it.

pub mod core;
mod generated;

pub use generated::wire;
