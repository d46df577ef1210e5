//! Spreads the objects of a Kubernetes controller over many instances, with leases, minimal moves
//! and no object worked on by two.
//!
//! [`core`] decides: membership, partitions, handover, fencing. It is pure; what it decided is
//! carried out by [`sharder`], against the API server as [`kubernetes`] knows it. [`instance`] is the
//! library for sharded controllers. [`manifests`] has what a cluster needs for it.

mod clock;

pub mod admin;
pub mod core;
pub mod instance;
pub mod kubernetes;
pub mod manifests;
pub mod sharder;
