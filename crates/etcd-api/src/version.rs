//! The version of etcd whose API is spoken. Clients parse these strings to decide what they may
//! ask for, so they name etcd's version, never ours.

/// What `Status` and `/version` report for the server.
pub const SERVER: &str = "3.7.1";

/// What `/version` reports for the cluster: the minor version all members agree on.
pub const CLUSTER: &str = "3.7.0";

/// What `Status` reports for the layout of the kept data.
pub const STORAGE: &str = "3.7.0";
