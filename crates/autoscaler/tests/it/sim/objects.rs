//! Kubernetes objects of the simulation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, Node, NodeCondition, NodeSpec, NodeStatus, Pod, PodCondition, PodSpec, PodStatus,
    ResourceRequirements, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use registry::ConditionStatus;
use simcloud::core::{Health, Node as CloudNode, Template};

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Pods of one kind, kept at a number.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) name: String,
    pub(crate) replicas: usize,
    pub(crate) cpu: String,
    pub(crate) memory: String,
    /// What else is in the pods' specification.
    pub(crate) spec: PodSpec,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Of its budget, if it has one.
    pub(crate) min_available: Option<usize>,
    pub(crate) made: usize,
}

pub(crate) fn node(node: &CloudNode, template: &Template) -> Node {
    let mut labels = template.labels();
    labels.insert("kubernetes.io/hostname".to_owned(), node.name.0.clone());
    let quantities: BTreeMap<String, Quantity> = template
        .group
        .capacity
        .iter()
        .map(|(name, text)| (name.clone(), Quantity(text.clone())))
        .collect();
    let own = template.group.taints.iter().map(|it| taint(&it.key, &it.value, &it.effect));
    let admission = taint(NOT_READY, "", "NoSchedule");
    Node {
        metadata: ObjectMeta {
            name: Some(node.name.0.clone()),
            labels: Some(labels),
            creation_timestamp: Some(Time(node.created)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(node.provider_id.clone()).filter(|id| !id.is_empty()),
            taints: Some(own.chain([admission]).collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            allocatable: Some(quantities.clone()),
            capacity: Some(quantities),
            conditions: Some(vec![ready(
                if node.health == Health::Ready {
                    ConditionStatus::True
                } else {
                    ConditionStatus::False
                },
                node.since,
            )]),
            ..NodeStatus::default()
        }),
    }
}

pub(crate) fn ready(status: ConditionStatus, since: Timestamp) -> NodeCondition {
    NodeCondition {
        type_: "Ready".to_owned(),
        status: format!("{status:?}"),
        last_transition_time: Some(Time(since)),
        ..NodeCondition::default()
    }
}

pub(crate) fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint {
        key: key.to_owned(),
        value: Some(value.to_owned()),
        effect: effect.to_owned(),
        ..Taint::default()
    }
}

pub(crate) fn taints(node: &mut Node) -> &mut Vec<Taint> {
    node.spec.get_or_insert_default().taints.get_or_insert_default()
}

pub(crate) fn has_taint(node: &Node, key: &str) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().any(|taint| taint.key == key)
}

// === impl Deployment ===

impl Deployment {
    pub(crate) fn new(name: &str, replicas: usize, cpu: &str, memory: &str) -> Self {
        Self {
            name: name.to_owned(),
            replicas,
            cpu: cpu.to_owned(),
            memory: memory.to_owned(),
            spec: PodSpec::default(),
            annotations: BTreeMap::new(),
            min_available: None,
            made: 0,
        }
    }

    /// The next pod.
    pub(crate) fn make(&mut self, now: Timestamp) -> Pod {
        let name = format!("{}-{}", self.name, self.made);
        self.made += 1;
        let requests = [("cpu", &self.cpu), ("memory", &self.memory)]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.clone())));
        let container = Container {
            name: "main".to_owned(),
            resources: Some(ResourceRequirements {
                requests: Some(requests.into()),
                ..ResourceRequirements::default()
            }),
            ..Container::default()
        };
        let owner = OwnerReference {
            kind: "ReplicaSet".to_owned(),
            name: self.name.clone(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        Pod {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some("default".to_owned()),
                labels: Some([("app".to_owned(), self.name.clone())].into()),
                annotations: Some(self.annotations.clone()),
                creation_timestamp: Some(Time(now)),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                containers: vec![container],
                restart_policy: Some("Always".to_owned()),
                ..self.spec.clone()
            }),
            status: Some(PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() }),
        }
    }
}

/// The scheduler found a node, or none.
pub(crate) fn scheduled(pod: &mut Pod, node: Option<&str>, now: Timestamp) {
    pod.spec.get_or_insert_default().node_name = node.map(str::to_owned);
    let condition = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: if node.is_some() { "True" } else { "False" }.to_owned(),
        reason: node.is_none().then(|| "Unschedulable".to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    };
    pod.status.get_or_insert_default().conditions = Some(vec![condition]);
}

pub(crate) fn bound_to(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}
