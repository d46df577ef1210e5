//! Objects that tests create. Only data.

use serde_json::{Value, json};

/// One object of each kind that is patched and deleted.
#[must_use]
pub fn each_kind(namespace: &str) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": namespace},
            "data": {"colour": "blue"},
        }),
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "leader", "namespace": namespace},
            "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 15},
        }),
        node("n1"),
    ]
}

#[must_use]
pub fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a", "kubernetes.io/hostname": name}},
        "spec": {"podCIDR": "10.1.0.0/24"},
    })
}

#[must_use]
pub fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "ConfigMap", "name": "settings", "namespace": "default"},
        "reason": "Tested",
        "type": "Normal",
    })
}

#[must_use]
pub fn custom_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "winches.e2e.example"},
        "spec": {
            "group": "e2e.example",
            "scope": "Cluster",
            "names": {"kind": "Winch", "plural": "winches", "singular": "winch"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"load": {"type": "integer"}}},
                    },
                }},
            }],
        },
    })
}

#[must_use]
pub fn custom_object(name: &str) -> Value {
    json!({
        "apiVersion": "e2e.example/v1",
        "kind": "Winch",
        "metadata": {"name": name},
        "spec": {"load": 7},
    })
}
