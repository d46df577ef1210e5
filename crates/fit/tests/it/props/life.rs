//! A small cluster and what happens in it, drawn from few kinds of nodes and pods so that they meet.

use std::collections::BTreeMap;

use fit::{ClassId, Cluster, NodeId, Refusal, Volumes};
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};

use crate::scene::{node, pod};

#[derive(Clone, Debug)]
pub(super) enum Event {
    AddNode(&'static str),
    RemoveNode(usize),
    /// A pod on a node, both by number.
    Place(usize, usize),
    Remove(usize, usize),
}

const NODES: [&str; 5] = [
    "{name: a, labels: {zone: z1, kubernetes.io/hostname: a}}",
    "{name: b, labels: {zone: z1, kubernetes.io/hostname: b, disk: ssd}, allocatable: {cpu: 2}}",
    "{name: c, labels: {zone: z2, kubernetes.io/hostname: c}, taints: [{key: k, effect: NoSchedule}]}",
    "{name: d, labels: {zone: z3, kubernetes.io/hostname: d, disk: ssd}}",
    "{name: e, labels: {kubernetes.io/hostname: e}}",
];

const PODS: [&str; 9] = [
    "{labels: {app: x}, requests: {cpu: 1}}",
    "{labels: {app: y}, namespace: other, ports: [{hostPort: 80}]}",
    "{labels: {app: x}, deleting: true}",
    "{labels: {app: x}, spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]}}",
    "{labels: {app: x}, spec: {nodeSelector: {disk: ssd}, topologySpreadConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: zone, nodeTaintsPolicy: Honor, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}, {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]}}",
    "{labels: {app: y}, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}}}",
    "{labels: {app: y}, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaceSelector: {}, labelSelector: {matchLabels: {app: y}}}]}}}}",
    "{labels: {app: x}, spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}}}",
    "{labels: {app: z}, spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaces: [other], labelSelector: {matchLabels: {app: y}}}]}}}}",
];

/// A cluster and a plain record of what is in it.
#[derive(Clone)]
pub(super) struct Life {
    pub(super) cluster: Cluster,
    classes: Vec<ClassId>,
    /// Nodes in the order they came, with their words and pods.
    pub(super) nodes: Vec<(NodeId, &'static str, Vec<usize>)>,
}

/// Whether pods elsewhere may make it fit.
pub(super) fn depends_on_company(pod: usize) -> bool {
    let words = PODS[pod % PODS.len()];
    words.contains("topologySpread") || words.contains("podAffinity")
}

fn pods() -> Vec<Pod> {
    PODS.iter().map(|words| pod(words)).collect()
}

fn compile_all(cluster: &mut Cluster) -> Vec<ClassId> {
    pods().iter().map(|pod| cluster.compile(pod, &Volumes::default()).unwrap()).collect()
}

fn empty() -> Cluster {
    let names = ["default", "other"].map(|name| (name.to_owned(), BTreeMap::new()));
    Cluster::new(&names.into())
}

pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        2 => select(&NODES[..]).prop_map(Event::AddNode),
        1 => any::<usize>().prop_map(Event::RemoveNode),
        6 => (any::<usize>(), any::<usize>()).prop_map(|(pod, node)| Event::Place(pod, node)),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(pod, node)| Event::Remove(pod, node)),
    ];
    vec(event, 1..60)
}

// === impl Life ===

impl Life {
    /// All classes are known before anything happens, so that every counter follows what does.
    pub(super) fn new() -> Self {
        let mut cluster = empty();
        let classes = compile_all(&mut cluster);
        Self { cluster, classes, nodes: Vec::new() }
    }

    /// The same nodes and pods in a cluster of its own, made in one go. Pods come before the classes
    /// that ask about them, so that every counter is counted through.
    pub(super) fn rebuilt(&self) -> Self {
        let mut cluster = empty();
        let mut nodes = Vec::new();
        for (_, words, pods) in &self.nodes {
            let id = cluster.add_node(&node(words)).unwrap();
            for pod in pods {
                let class = cluster.compile_bound(&self::pod(PODS[*pod])).unwrap();
                cluster.place(class, id);
            }
            nodes.push((id, *words, pods.clone()));
        }
        let classes = compile_all(&mut cluster);
        Self { cluster, classes, nodes }
    }

    pub(super) fn class(&self, pod: usize) -> ClassId {
        self.classes[pod % self.classes.len()]
    }

    pub(super) fn happen(&mut self, event: &Event) {
        let count = self.nodes.len();
        match event {
            Event::AddNode(words) => {
                let id = self.cluster.add_node(&node(words)).unwrap();
                self.nodes.push((id, words, Vec::new()));
            }
            _ if count == 0 => {}
            Event::RemoveNode(at) => {
                let (id, ..) = self.nodes.remove(at % count);
                self.cluster.remove_node(id);
            }
            Event::Place(pod, at) => {
                let class = self.class(*pod);
                let (id, _, pods) = &mut self.nodes[at % count];
                self.cluster.place(class, *id);
                pods.push(pod % PODS.len());
            }
            Event::Remove(pod, at) => {
                let (id, _, pods) = &mut self.nodes[at % count];
                if !pods.is_empty() {
                    let pod = pods.remove(pod % pods.len());
                    self.cluster.remove(self.classes[pod], *id);
                }
            }
        }
    }

    /// What each pod is told on each node.
    pub(super) fn answers(&mut self) -> Vec<Option<Refusal>> {
        let nodes = self.nodes.iter().map(|(id, ..)| *id);
        let pairs: Vec<_> =
            nodes.flat_map(|node| self.classes.iter().map(move |class| (*class, node))).collect();
        pairs.into_iter().map(|(class, node)| self.cluster.explain(class, node)).collect()
    }
}
