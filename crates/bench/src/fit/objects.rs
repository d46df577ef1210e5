//! Nodes and pods as the API would give them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, Node, NodeStatus, Pod, PodAffinityTerm, PodAntiAffinity, PodSpec,
    ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// As many pods as memory allows, so that it is not their number that decides.
const PODS_MAX: &str = "1000";

fn words<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

fn resources<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, Quantity> {
    pairs.map(|(name, amount)| (name.to_owned(), Quantity(amount))).into()
}

pub(crate) fn node(name: &str, cores: u64, bytes: u64) -> Node {
    let allocatable = resources([
        ("cpu", cores.to_string()),
        ("memory", bytes.to_string()),
        ("pods", PODS_MAX.to_owned()),
    ]);
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(words([(HOSTNAME, name.to_owned())])),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus { allocatable: Some(allocatable), ..NodeStatus::default() }),
        ..Node::default()
    }
}

pub(crate) fn pod(app: &str, cpu_millis: u64, bytes: u64) -> Pod {
    let requests = resources([("cpu", format!("{cpu_millis}m")), ("memory", bytes.to_string())]);
    let container = Container {
        name: "main".to_owned(),
        resources: Some(ResourceRequirements {
            requests: Some(requests),
            ..ResourceRequirements::default()
        }),
        ..Container::default()
    };
    Pod {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            labels: Some(words([("app", app.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        ..Pod::default()
    }
}

/// A pod that shares its node with none of its kind.
pub(crate) fn keeping_away(app: &str) -> Pod {
    let mut pod = pod(app, 100, 1 << 20);
    let term = PodAffinityTerm {
        topology_key: HOSTNAME.to_owned(),
        label_selector: Some(LabelSelector {
            match_labels: Some(words([("app", app.to_owned())])),
            ..LabelSelector::default()
        }),
        ..PodAffinityTerm::default()
    };
    let anti = PodAntiAffinity {
        required_during_scheduling_ignored_during_execution: Some(vec![term]),
        ..PodAntiAffinity::default()
    };
    let affinity = Affinity { pod_anti_affinity: Some(anti), ..Affinity::default() };
    pod.spec.get_or_insert_default().affinity = Some(affinity);
    pod
}
