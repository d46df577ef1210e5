//! What the sharder tells of a Ring. The table in it is its memory: who has which slot.

use serde_json::{Value, json};

use super::{choice, count, spec, text};

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": count("Of which spec this tells."),
            "instances": count("How many instances have a Lease."),
            "ready": count("How many of them are ready."),
            "members": {
                "type": "array",
                "description": "Each instance.",
                "items": member(),
            },
            "table": table(),
            "moving": count("How many objects are on their way from one instance to another."),
            "imbalance": {
                "type": "number",
                "description": "Objects of the fullest instance compared with the mean, by weight.",
            },
            "resources": {
                "type": "array",
                "description": "Kinds whose objects may have the ring's labels, as the spec has them.",
                "items": spec::resource(),
            },
            "conditions": conditions(),
        },
    })
}

fn member() -> Value {
    json!({
        "type": "object",
        "required": ["id", "state"],
        "properties": {
            "id": text("Its id, which is the name of its Lease."),
            "namespace": text("Where its Lease is."),
            "state": text("What the sharder thinks of it."),
            "weight": count("How much it takes, compared with the others."),
            "slots": count("How many slots it has."),
            "objects": count("How many objects it has, as last counted."),
            "since": {
                "type": "string",
                "format": "date-time",
                "description": "When it came into this state.",
            },
        },
    })
}

fn table() -> Value {
    let instance = json!({
        "type": "object",
        "required": ["id", "weight"],
        "properties": {"id": text("Its id."), "weight": count("What it takes.")},
    });
    json!({
        "type": "object",
        "description": "Who has which slot.",
        "required": ["epoch", "instances", "slots"],
        "properties": {
            "epoch": count("One more with each change."),
            "instances": {"type": "array", "items": instance},
            "slots": {
                "type": "array",
                "description": "For each slot the number of its instance in the list; -1 for nobody.",
                "items": {"type": "integer", "format": "int32"},
            },
        },
    })
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "Ready, Balanced, Fenced and Degraded.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": text("What is told."),
                "status": choice("Whether it holds.", &["True", "False", "Unknown"]),
                "reason": text("Why, in one word."),
                "message": text("Why, for people."),
                "observedGeneration": count("Of which spec."),
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
            },
        },
    })
}
