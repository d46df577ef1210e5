//! Keeps Kubernetes nodes' labels across the node leaving and re-entering the cluster.

mod access;
pub mod admin;
#[cfg(test)]
mod asked;
pub mod core;
pub mod kubernetes;
pub mod lifecycle;
pub mod manifests;
mod metrics;
pub mod options;
mod processor;
pub mod service;
mod surroundings;
mod watcher;
