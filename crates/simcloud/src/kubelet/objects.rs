//! Nodes, Leases and pods as the API server has them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Pod, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use registry::{ConditionStatus, NodeName};
use serde_json::{Value, json};

use crate::core::kubelet::{PodName, SeenNode, SeenPod};
use crate::core::{Health, Node as CloudNode, Template};
use crate::scenario;

const READY: &str = "Ready";

/// The taint that admission gives to every new Node.
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

const HOSTNAME: &str = "kubernetes.io/hostname";

/// As kubelets have it.
const LEASE_SECONDS: i32 = 40;

/// What is never wrong with a simulated machine, by condition.
const NEVER_WRONG: [&str; 4] =
    ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];

pub(super) fn seen_node(node: &Node) -> Option<(NodeName, SeenNode)> {
    let name = NodeName(node.metadata.name.clone()?);
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == READY);
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let seen = SeenNode {
        ready: ready.map(|ready| read_status(&ready.status)),
        has_not_ready_taint: taints.into_iter().flatten().any(|taint| taint.key == NOT_READY_TAINT),
    };
    Some((name, seen))
}

pub(super) fn seen_pod(pod: &Pod) -> Option<SeenPod> {
    let node = pod.spec.as_ref()?.node_name.clone().filter(|node| !node.is_empty())?;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    Some(SeenPod {
        pod: PodName {
            namespace: pod.metadata.namespace.clone()?,
            name: pod.metadata.name.clone()?,
        },
        node: NodeName(node),
        is_pending: phase.is_none_or(|phase| phase == "Pending"),
        is_terminating: pod.metadata.deletion_timestamp.is_some(),
    })
}

/// A Node as its kubelet registers it.
pub(super) fn node(node: &CloudNode, template: &Template, now: Timestamp) -> Node {
    let mut labels = template.labels();
    labels.insert(HOSTNAME.to_owned(), node.name.0.clone());
    let metadata = ObjectMeta {
        name: Some(node.name.0.clone()),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    let spec = NodeSpec {
        provider_id: Some(node.provider_id.clone()).filter(|id| !id.is_empty()),
        taints: Some(template.group.taints.iter().map(taint).collect()),
        ..NodeSpec::default()
    };
    Node { metadata, spec: Some(spec), status: Some(status(node, template, now)) }
}

fn taint(taint: &scenario::Taint) -> Taint {
    let scenario::Taint { key, value, effect } = taint.clone();
    Taint { key, value: Some(value), effect, ..Taint::default() }
}

fn status(node: &CloudNode, template: &Template, now: Timestamp) -> NodeStatus {
    let quantities: BTreeMap<String, Quantity> = template
        .group
        .capacity
        .iter()
        .map(|(name, text)| (name.clone(), Quantity(text.clone())))
        .collect();
    let address = NodeAddress { type_: "Hostname".to_owned(), address: node.name.0.clone() };
    NodeStatus {
        allocatable: Some(quantities.clone()),
        capacity: Some(quantities),
        addresses: Some(vec![address]),
        conditions: Some(conditions(node, now)),
        node_info: Some(NodeSystemInfo {
            kubelet_version: concat!("v0.0.0-simcloud-", env!("CARGO_PKG_VERSION")).to_owned(),
            operating_system: "linux".to_owned(),
            ..NodeSystemInfo::default()
        }),
        ..NodeStatus::default()
    }
}

fn conditions(node: &CloudNode, now: Timestamp) -> Vec<NodeCondition> {
    let ready = match node.health {
        Health::Ready => ConditionStatus::True,
        Health::NotReady | Health::Silent => ConditionStatus::False,
    };
    let mut conditions = vec![condition(READY, ready, node.since, now)];
    let sound = |kind: &&str| condition(kind, ConditionStatus::False, node.created, now);
    conditions.extend(NEVER_WRONG.iter().map(sound));
    conditions
}

fn condition(
    kind: &str,
    status: ConditionStatus,
    since: Timestamp,
    now: Timestamp,
) -> NodeCondition {
    NodeCondition {
        type_: kind.to_owned(),
        status: written_status(status).to_owned(),
        last_transition_time: Some(Time(since)),
        last_heartbeat_time: Some(Time(now)),
        reason: Some("Simulated".to_owned()),
        message: None,
    }
}

/// A patch of condition Ready.
pub(super) fn report(ready: ConditionStatus, since: Timestamp, now: Timestamp) -> Value {
    json!({ "status": { "conditions": [condition(READY, ready, since, now)] } })
}

/// A patch of the spec, refused if the Node has changed since it was read.
pub(super) fn without_not_ready_taint(read: &Node) -> Value {
    let taints = read.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let others = taints.into_iter().flatten().filter(|taint| taint.key != NOT_READY_TAINT);
    json!({
        "metadata": { "resourceVersion": read.metadata.resource_version },
        "spec": { "taints": others.collect::<Vec<_>>() },
    })
}

pub(super) fn lease(node: &NodeName, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(node.0.clone()), ..ObjectMeta::default() };
    let spec = LeaseSpec {
        holder_identity: Some(node.0.clone()),
        lease_duration_seconds: Some(LEASE_SECONDS),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    };
    Lease { metadata, spec: Some(spec) }
}

/// A patch of a pod's status.
pub(super) fn running(now: Timestamp) -> Value {
    let kinds = ["Initialized", "ContainersReady", READY];
    let condition =
        |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": Time(now) });
    json!({ "status": {
        "phase": "Running",
        "startTime": Time(now),
        "conditions": kinds.map(condition),
    } })
}

fn read_status(text: &str) -> ConditionStatus {
    match text {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

fn written_status(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_node_is_seen_by_its_condition_and_its_taint() {
        let node = read(json!({
            "metadata": { "name": "a-0" },
            "spec": { "taints": [{ "key": NOT_READY_TAINT, "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": READY, "status": "Unknown" }] },
        }));
        let ready = Some(ConditionStatus::Unknown);
        let expected = SeenNode { ready, has_not_ready_taint: true };
        assert_eq!(seen_node(&node), Some(("a-0".into(), expected)));
        let bare = seen_node(&read(json!({ "metadata": { "name": "a-0" } }))).unwrap().1;
        assert_eq!(bare, SeenNode { ready: None, has_not_ready_taint: false });
    }

    #[test]
    fn lifting_the_taint_keeps_the_others_and_refuses_to_overwrite() {
        let node = read(json!({
            "metadata": { "name": "a-0", "resourceVersion": "7" },
            "spec": { "taints": [
                { "key": "k", "effect": "NoSchedule" },
                { "key": NOT_READY_TAINT, "effect": "NoSchedule" },
                { "key": NOT_READY_TAINT, "effect": "NoExecute" },
            ] },
        }));
        let expected = json!({
            "metadata": { "resourceVersion": "7" },
            "spec": { "taints": [{ "key": "k", "effect": "NoSchedule" }] },
        });
        assert_eq!(without_not_ready_taint(&node), expected);
    }

    #[test]
    fn a_pod_that_is_bound_to_nothing_is_nobodys() {
        let pod = |spec: Value, phase: &str| {
            let metadata = json!({ "name": "p", "namespace": "n" });
            let pod = json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } });
            seen_pod(&serde_json::from_value(pod).unwrap())
        };
        let bound = || json!({ "nodeName": "a-0", "containers": [] });
        assert!(pod(bound(), "Pending").unwrap().is_pending);
        assert!(!pod(bound(), "Running").unwrap().is_pending);
        assert_eq!(pod(json!({ "containers": [] }), "Pending"), None);
    }
}
