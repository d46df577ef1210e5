//! Measures the store and the journal against etcd and against ceilings that show what the wire and
//! the disk would allow, and the services on a real API server.
//!
//! | module | what it owns |
//! |---|---|
//! | [`store`] | the rows of the store's table, the load, the servers under it, the report |
//! | [`autoscaler`] | one iteration of the planners on a large cluster, without a cluster |
//! | [`ceiling`] | the two servers that answer without being a store |
//! | [`fit`] | placing pods, without a cluster |
//! | [`journal`] | what orders and keeps revisions, without the store above it |
//! | [`labels`] | nodes that leave and return, and how soon their labels are back |
//! | [`replicas`] | several stores over one journal, beside a cluster of etcd |
//! | [`sharding`] | objects that change hands between instances, and what that costs |
//! | [`tasks`] | tasks on several nodes, containers beside runc's, and lost nodes |
//!
//! Nothing here prints or reads arguments: the binary does.

pub mod autoscaler;
pub mod ceiling;
pub mod fit;
mod grpc;
mod http;
pub mod journal;
pub mod labels;
mod machine;
mod process;
pub mod replicas;
mod shape;
pub mod sharding;
pub mod store;
mod table;
pub mod tasks;

pub use machine::Machine;
