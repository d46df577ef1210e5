//! The shell over a real store, in one process and over real connections: what it does when answers
//! are lost, when the store is cut off, and when a node starts again on what it left.

pub(crate) mod computer;
pub(crate) mod etcd;
mod faults;
mod node;
mod proxy;
mod store;
mod unknown;
pub(crate) mod waiting;
