//! Kubernetes' names for what the registry reads of a Node: conditions, taints, labels, annotations.

pub const READY: &str = "Ready";
pub const SUSPENDED: &str = "Suspended";

/// Conditions that make a node unready while they are True.
pub const PRESSING: [&str; 2] = ["DiskPressure", "NetworkUnavailable"];

/// Taints that Kubernetes puts on nodes that are not ready.
pub const UNREADY_TAINTS: [&str; 3] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
];

/// Taints of nodes that are still being set up.
pub const STARTUP_TAINT_PREFIXES: [&str; 2] = [
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
];

/// Its value is the Unix time at which the drain began.
pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

pub const ZONE: &str = "topology.kubernetes.io/zone";

pub const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
