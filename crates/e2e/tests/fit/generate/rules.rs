//! The rules that pods bear: tolerations, node affinity, pod affinity, spreading.

use chance::Chance;
use serde_json::{Value, json};

use super::node_name;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

pub(super) fn tolerations(chance: &mut Chance) -> Vec<Value> {
    let all = [
        json!({"key": "dedicated", "operator": "Equal", "value": "db"}),
        json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}),
        json!({"key": "dedicated", "operator": "Exists"}),
        json!({"key": "load", "operator": "Lt", "value": "6", "effect": "NoSchedule"}),
        json!({"key": "load", "operator": "Gt", "value": "5", "effect": "NoSchedule"}),
        json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
    ];
    (0..chance.below(3)).map(|_| chance.pick(&all).clone()).collect()
}

pub(super) fn node_terms(chance: &mut Chance, seed: u64) -> Vec<Value> {
    (0..=chance.below(2)).map(|_| node_term(chance, seed)).collect()
}

fn node_term(chance: &mut Chance, seed: u64) -> Value {
    let all = [
        json!({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}),
        json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}),
        json!({"key": "disk", "operator": "Exists"}),
        json!({"key": "disk", "operator": "DoesNotExist"}),
        json!({"key": "generation", "operator": "Gt", "values": ["1"]}),
        json!({"key": "generation", "operator": "Lt", "values": ["3"]}),
        json!({"key": ZONE, "operator": "In", "values": ["z1", "z2"]}),
    ];
    let expressions: Vec<_> = (0..=chance.below(2)).map(|_| chance.pick(&all).clone()).collect();
    let mut term = json!({"matchExpressions": expressions});
    if chance.once_in(4) {
        let name = node_name(seed, chance.below(4));
        let operator = chance.pick(&["In", "NotIn"]);
        term["matchFields"] =
            json!([{"key": "metadata.name", "operator": operator, "values": [name]}]);
    }
    term
}

/// Terms of affinity or anti-affinity; with keys, namespaces and selectors of every kind.
pub(super) fn pod_terms(chance: &mut Chance) -> Value {
    (0..=chance.below(3) / 2).map(|_| pod_term(chance)).collect()
}

fn pod_term(chance: &mut Chance) -> Value {
    let mut term = json!({"topologyKey": chance.pick(&[ZONE, HOSTNAME, "disk"])});
    if !chance.once_in(12) {
        term["labelSelector"] = selector(chance);
        if chance.once_in(5) {
            let keys = chance.pick(&["matchLabelKeys", "mismatchLabelKeys"]);
            term[*keys] = json!(["rev"]);
        }
    }
    match chance.below(6) {
        0 => term["namespaces"] = json!(["south"]),
        1 => term["namespaceSelector"] = json!({}),
        2 => {
            let namespaces = json!({"key": "team", "operator": "In", "values": ["north"]});
            term["namespaceSelector"] = json!({"matchExpressions": [namespaces]});
        }
        _ => {}
    }
    term
}

fn selector(chance: &mut Chance) -> Value {
    let all = [
        json!({"matchLabels": {"app": "x"}}),
        json!({"matchLabels": {"app": "y"}}),
        json!({"matchLabels": {"app": "x", "tier": "front"}}),
        json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "z"]}]}),
        json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}, {"key": "tier", "operator": "Exists"}]}),
        json!({}),
    ];
    chance.pick(&all).clone()
}

/// One constraint for a key, so that no two say the same.
pub(super) fn spread(chance: &mut Chance) -> Vec<Value> {
    let mut keys = vec![ZONE, HOSTNAME, "disk"];
    (0..=chance.below(2))
        .map(|_| {
            let key = keys.swap_remove(chance.below(keys.len()));
            constraint(chance, key)
        })
        .collect()
}

fn constraint(chance: &mut Chance, key: &str) -> Value {
    let mut constraint = json!({
        "maxSkew": 1 + chance.below(2),
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
    });
    if !chance.once_in(10) {
        constraint["labelSelector"] = selector(chance);
        if chance.once_in(4) {
            constraint["matchLabelKeys"] = json!(["rev"]);
        }
    }
    if chance.once_in(4) {
        constraint["minDomains"] = json!(1 + chance.below(4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if chance.once_in(3) {
            constraint[policy] = json!(chance.pick(&["Honor", "Ignore"]));
        }
    }
    constraint
}
