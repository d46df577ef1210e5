//! Clusters in few words: nodes with the pods on them, and one pod that looks for a place.

use std::collections::BTreeMap;
use std::fmt::Write;

use fit::{ClassId, Cluster, CompileError, NodeId, Volumes};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct World {
    #[serde(default)]
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    nodes: Vec<NodeWords>,
    #[serde(default)]
    claims: Vec<core::PersistentVolumeClaim>,
    #[serde(default)]
    volumes: Vec<core::PersistentVolume>,
    #[serde(default)]
    limited: Vec<String>,
    pod: PodWords,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeWords {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    taints: Vec<core::Taint>,
    #[serde(default)]
    unschedulable: bool,
    #[serde(default)]
    allocatable: BTreeMap<String, Quantity>,
    #[serde(default)]
    pods: Vec<PodWords>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodWords {
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    deleting: bool,
    /// Of its only container, if the specification has none.
    #[serde(default)]
    requests: BTreeMap<String, Quantity>,
    #[serde(default)]
    ports: Vec<core::ContainerPort>,
    #[serde(default)]
    spec: core::PodSpec,
    #[serde(default)]
    status: Option<core::PodStatus>,
}

// === impl NodeWords ===

impl NodeWords {
    /// Four cores, 8 GiB and ten pods, unless it says otherwise.
    pub(crate) fn node(&self) -> core::Node {
        let mut allocatable = BTreeMap::from(
            [("cpu", "4"), ("memory", "8Gi"), ("pods", "10")]
                .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))),
        );
        allocatable.extend(self.allocatable.clone());
        core::Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(core::NodeSpec {
                taints: Some(self.taints.clone()),
                unschedulable: Some(self.unschedulable),
                ..core::NodeSpec::default()
            }),
            status: Some(core::NodeStatus {
                allocatable: Some(allocatable.clone()),
                capacity: Some(allocatable),
                ..core::NodeStatus::default()
            }),
        }
    }
}

// === impl PodWords ===

impl PodWords {
    pub(crate) fn pod(&self) -> core::Pod {
        let mut spec = self.spec.clone();
        if spec.containers.is_empty() {
            spec.containers.push(core::Container {
                name: "main".to_owned(),
                ports: Some(self.ports.clone()),
                resources: Some(core::ResourceRequirements {
                    requests: Some(self.requests.clone()),
                    ..core::ResourceRequirements::default()
                }),
                ..core::Container::default()
            });
        }
        let deleted = "2026-03-01T08:00:00Z".parse().unwrap();
        core::Pod {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone().unwrap_or_else(|| "default".to_owned())),
                labels: Some(self.labels.clone()),
                deletion_timestamp: self.deleting.then_some(Time(deleted)),
                ..ObjectMeta::default()
            },
            spec: Some(spec),
            status: self.status.clone(),
        }
    }
}

pub(crate) fn pod(words: &str) -> core::Pod {
    serde_saphyr::from_str::<PodWords>(words).unwrap().pod()
}

pub(crate) fn node(words: &str) -> core::Node {
    serde_saphyr::from_str::<NodeWords>(words).unwrap().node()
}

/// A cluster with nothing but the namespace `default`.
pub(crate) fn empty_cluster() -> Cluster {
    Cluster::new(&[("default".to_owned(), BTreeMap::new())].into())
}

/// The class of a pod that looks for a place.
pub(crate) fn compile(cluster: &mut Cluster, words: &str) -> ClassId {
    cluster.compile(&pod(words), &Volumes::default()).unwrap()
}

/// One line for each node: whether the pod fits, or why it does not.
pub(crate) fn answer(world: &str) -> String {
    let world: World = serde_saphyr::from_str(world).unwrap();
    let mut namespaces = world.namespaces;
    namespaces.entry("default".to_owned()).or_default();
    let mut cluster = Cluster::new(&namespaces);
    let nodes: Vec<_> =
        world.nodes.iter().map(|node| (&node.name, add(&mut cluster, node))).collect();
    let mut volumes = Volumes::default();
    world.claims.iter().for_each(|claim| volumes.add_claim(claim));
    world.volumes.iter().for_each(|volume| volumes.add_volume(volume));
    world.limited.iter().for_each(|driver| volumes.limit_driver(driver));
    let class = match cluster.compile(&world.pod.pod(), &volumes) {
        Ok(class) => class,
        Err(error @ CompileError::Unsupported(_)) => return format!("{error}\n"),
        Err(error) => panic!("{error}"),
    };
    let mut lines = String::new();
    for (name, node) in nodes {
        let refusal = cluster.explain(class, node);
        let words = refusal.map_or_else(|| "fits".to_owned(), |refusal| refusal.to_string());
        writeln!(lines, "{name}: {words}").unwrap();
    }
    lines
}

/// Adds a node with its pods.
pub(crate) fn add(cluster: &mut Cluster, words: &NodeWords) -> NodeId {
    let node = cluster.add_node(&words.node()).unwrap();
    for pod in &words.pods {
        let class = cluster.compile_bound(&pod.pod()).unwrap();
        cluster.place(class, node);
    }
    node
}

/// Compares the answer with what is expected, line by line.
pub(crate) fn check(world: &str, expected: &[&str]) {
    let answer = answer(world);
    assert_eq!(answer.lines().collect::<Vec<_>>(), expected, "{world}");
}
