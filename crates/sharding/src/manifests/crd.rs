//! The definition of Rings: what the API server fills in, shows and refuses.

mod spec;
mod status;

use serde_json::{Value, json};

use super::selector;

/// A name ends the keys of labels and is part of other objects' names.
const NAME_RULE: &str = "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63";
const NAME_MESSAGE: &str =
    "the name of a Ring is an RFC 1123 label: at most 63 of a-z, 0-9 and -, no - at either end";

#[must_use]
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rings.windlass.dev", "labels": selector()},
        "spec": {
            "group": "windlass.dev",
            "scope": "Cluster",
            "names": {"kind": "Ring", "listKind": "RingList", "plural": "rings", "singular": "ring"},
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(),
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "A set of objects that is spread over the instances of one controller.",
        "required": ["spec"],
        "properties": {"spec": spec::schema(), "status": status::schema()},
        "x-kubernetes-validations": [rule(NAME_RULE, NAME_MESSAGE)],
    })
}

fn columns() -> Value {
    let condition = |name: &str| {
        column(name, "string", &format!(".status.conditions[?(@.type==\"{name}\")].status"))
    };
    json!([
        condition("Ready"),
        column("Available", "integer", ".status.ready"),
        column("Instances", "integer", ".status.instances"),
        column("Moving", "integer", ".status.moving"),
        condition("Balanced"),
        column("Age", "date", ".metadata.creationTimestamp"),
    ])
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// What does not satisfy the expression is refused with the message.
fn rule(expression: &str, message: &str) -> Value {
    json!({"rule": expression, "message": message})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str, minimum: u64, maximum: u64) -> Value {
    json!({
        "type": "integer",
        "format": "int64",
        "minimum": minimum,
        "maximum": maximum,
        "description": description,
    })
}

/// A number from 0 that only the sharder writes.
fn count(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "minimum": 0, "description": description})
}

fn choice(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}
