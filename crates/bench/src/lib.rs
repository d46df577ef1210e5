//! Measures the store and the journal: against etcd, and against ceilings that show what the wire
//! and the disk would allow.
//!
//! | module | what it owns |
//! |---|---|
//! | [`store`] | the rows of the store's table, the load, the servers under it, the report |
//! | [`ceiling`] | the two servers that answer without being a store |
//! | [`journal`] | what orders and keeps revisions, without the store above it |
//!
//! Nothing here prints or reads arguments: the binary does.

pub mod ceiling;
mod grpc;
pub mod journal;
mod machine;
mod process;
mod shape;
pub mod store;
mod table;

pub use machine::Machine;
