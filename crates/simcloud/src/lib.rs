//! A provider that simulates a cloud, its kubelets and their faults, for demos and tests. No machine is
//! started anywhere.
//!
//! | module | owns |
//! |---|---|
//! | [`scenario`] | what the cloud is and what goes wrong in it, as a file says it |
//! | [`core`] | the cloud as a state machine stepped with time |
//! | [`handle`] | one cloud and its clock, shared; also a provider within the process |
//! | [`server`] | the cloud behind the external gRPC protocol, in either generation |
//! | [`kubelet`] | its Nodes, Leases and pods on a real API server |
//! | [`service`] | one process of these |

pub mod core;
pub mod handle;
pub mod kubelet;
pub mod lifecycle;
pub mod scenario;
pub mod server;
pub mod service;
