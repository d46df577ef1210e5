//! What the autoscaler may do: look everywhere, mark Nodes and evict pods, and write its own Lease and
//! ConfigMaps, those by name.

use serde_json::{Value, json};

use super::{NAME, metadata};
use crate::options::{HOME, LEASE};

const RBAC: &str = "rbac.authorization.k8s.io";
const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";

const LOOK: &[&str] = &["list", "watch"];

/// Everywhere: group, resources, verbs.
const CLUSTER_RIGHTS: &[(&str, &[&str], &[&str])] = &[
    ("", &["nodes"], &["get", "list", "watch", "patch"]),
    (
        "",
        &[
            "pods",
            "namespaces",
            "persistentvolumes",
            "persistentvolumeclaims",
            "replicationcontrollers",
        ],
        LOOK,
    ),
    ("", &["pods/eviction"], &["create"]),
    ("apps", &["daemonsets", "replicasets", "statefulsets"], LOOK),
    ("batch", &["jobs"], LOOK),
    ("policy", &["poddisruptionbudgets"], LOOK),
    ("storage.k8s.io", &["csinodes"], LOOK),
    ("events.k8s.io", &["events"], &["create"]),
];

/// ConfigMaps that it writes.
const OWN_MAPS: [&str; 4] = [
    "cluster-autoscaler-status",
    "windlass-autoscaler-state",
    "cluster-autoscaler-status-dry-run",
    "windlass-autoscaler-state-dry-run",
];

pub(super) fn objects() -> Vec<Value> {
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": HOME}]);
    vec![
        json!({
            "apiVersion": RBAC_V1,
            "kind": "ClusterRole",
            "metadata": metadata(NAME, None),
            "rules": CLUSTER_RIGHTS.iter().map(rule).collect::<Vec<_>>(),
        }),
        json!({
            "apiVersion": RBAC_V1,
            "kind": "ClusterRoleBinding",
            "metadata": metadata(NAME, None),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": subjects,
        }),
        json!({
            "apiVersion": RBAC_V1,
            "kind": "Role",
            "metadata": metadata(NAME, Some(HOME)),
            "rules": own_rules(),
        }),
        json!({
            "apiVersion": RBAC_V1,
            "kind": "RoleBinding",
            "metadata": metadata(NAME, Some(HOME)),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
            "subjects": subjects,
        }),
    ]
}

fn rule((group, resources, verbs): &(&str, &[&str], &[&str])) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// In its own namespace. What is created cannot be named before it is there. The priorities are followed
/// by their name, which a watch cannot be granted by.
fn own_rules() -> Value {
    let write = ["get", "update", "patch"];
    json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "watch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": OWN_MAPS, "verbs": write},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [LEASE],
            "verbs": write,
        },
    ])
}
