//! The core from outside: every transition on a store with etcd's semantics, what must hold of it,
//! and the regressions.

mod agent;
mod api;
mod cache;
mod explain;
mod fsck;
mod live;
mod races;
mod regressions;
mod scene;
mod sim;
mod stealing;
mod store;
mod transitions;
