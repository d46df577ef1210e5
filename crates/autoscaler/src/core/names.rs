//! Kubernetes' and upstream's names for what the planners read and have written, beside those of the
//! registry.

pub use registry::names::{SCALE_DOWN_DISABLED, TO_BE_DELETED, ZONE};

/// A node that may soon be removed; its value is the Unix time since when.
pub const DELETION_CANDIDATE: &str = "DeletionCandidateOfClusterAutoscaler";

/// On nodes that we cordoned, so that whoever lifts the taint knows whether to uncordon.
pub const CORDONED: &str = "autoscaler.windlass.dev/cordoned";

/// On pods: an own delay before they bring a node.
pub const POD_DELAY: &str = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay";

/// On pods of DaemonSets: whether they are evicted before their node goes.
pub const DAEMON_EVICTION: &str = "cluster-autoscaler.kubernetes.io/enable-ds-eviction";

/// On pods: as if a DaemonSet had made them.
pub const DAEMON_POD: &str = "cluster-autoscaler.kubernetes.io/daemonset-pod";

pub const HOSTNAME: &str = "kubernetes.io/hostname";

pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// Of upstream's annotations.
const UPSTREAM_PREFIX: &str = "cluster-autoscaler.kubernetes.io/";

pub const STATUS_TAINT_PREFIX: &str = "status-taint.cluster-autoscaler.kubernetes.io/";

/// Taints that Kubernetes itself puts on nodes for how they fare. New nodes bear none of them.
pub const CONDITION_TAINTS: [&str; 9] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
];

/// What the DaemonSet controller lets every pod it makes tolerate.
pub const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Whether an annotation of a pod is one that somebody here goes by.
pub(super) fn is_on_pods(annotation: &str) -> bool {
    annotation == MIRROR || annotation.starts_with(UPSTREAM_PREFIX)
}
