//! Keeps Kubernetes nodes' labels across the node leaving and re-entering the cluster.

pub mod core;
