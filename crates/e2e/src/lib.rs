//! Tests against real peers: processes, the checkers that judge what was seen, and the differential
//! driver that sends the same requests to two stores.
//!
//! | module | what it is for |
//! |---|---|
//! | [`scene`] | one test's world: runtime, scratch folder, programs; skipped if one is missing |
//! | [`process`], [`store`], [`kube`] | starting, killing and restarting real programs |
//! | [`ignite`] | a cluster of Ignite nodes |
//! | [`replica`] | one process of a Kubernetes service |
//! | [`labels`] | a cluster with the labels service on it |
//! | [`sharding`] | a cluster with sharders and instances on it, and witnesses of what they do |
//! | [`skew`] | wall clocks that differ between processes |
//! | [`tasks`] | task nodes, their networks, and work that keeps a record of itself |
//! | [`wait`] | the only place that lets time pass |
//! | [`client`], [`http`] | speaking to what was started |
//! | [`load`] | concurrent clients that survive crashes and record what they saw |
//! | [`check`] | pure judges of recorded histories |
//! | [`differential`] | random requests to two stores, answers compared |
//! | [`stories`] | what the keyspace answers in its stories, asked of whole stores |
//!
//! Nothing here is part of the product, and nothing here knows how the store works inside: it is
//! judged by its API alone, so that every suite can run on etcd as well.

pub mod assets;
pub mod check;
pub mod client;
pub mod differential;
pub mod http;
pub mod ignite;
pub mod kube;
pub mod labels;
pub mod load;
pub mod ports;
pub mod process;
pub mod replica;
pub mod report;
pub mod scene;
pub mod sharding;
pub mod skew;
pub mod store;
pub mod stories;
pub mod tasks;
pub mod wait;
