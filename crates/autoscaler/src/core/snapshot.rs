//! The cluster as a thought experiment: all nodes that will stay, with the pods on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fit::drain::is_finished;
use fit::{ClassId, Cluster, NodeId};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use registry::{Class, NodeName, Registry};

use super::config::Config;
use super::world::{World, bound_to, is_expendable};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Snapshot<'a> {
    pub(super) cluster: Cluster,
    pub(super) hosts: BTreeMap<NodeName, NodeId>,
    /// Nodes that take pods, by name.
    pub(super) ready: BTreeMap<NodeName, NodeId>,
    /// Pods by node, those that take no room included.
    pub(super) occupants: BTreeMap<&'a str, Vec<Occupant<'a>>>,
    /// Nodes of which something cannot be read, and what.
    pub(super) unclear: BTreeMap<NodeName, String>,
}

/// A pod on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupant<'a> {
    pub(super) pod: &'a Arc<Pod>,
    /// `None`: it takes no room.
    pub(super) class: Option<ClassId>,
}

// === impl Snapshot ===

impl<'a> Snapshot<'a> {
    /// Nodes on their way out are left out, as are those registered ones of which `placeholders`
    /// stand in. Expendable and finished pods take no room.
    pub(super) fn new(
        world: &'a World,
        registry: &Registry,
        placeholders: &BTreeSet<NodeName>,
        config: &Config,
    ) -> Self {
        let mut snapshot = Self {
            cluster: Cluster::new(&world.namespaces),
            hosts: BTreeMap::new(),
            ready: BTreeMap::new(),
            occupants: BTreeMap::new(),
            unclear: BTreeMap::new(),
        };
        for (name, node) in &world.nodes {
            let class = registry.node(name).map(|view| view.class);
            if matches!(class, Some(Class::Leaving | Class::Gone)) || placeholders.contains(name) {
                continue;
            }
            match snapshot.cluster.add_node(node) {
                Ok(id) => snapshot.add_host(name, id, class),
                Err(error) => _ = snapshot.unclear.insert(name.clone(), error.to_string()),
            }
        }
        for pod in world.sorted_pods() {
            if let Some(node) = bound_to(pod) {
                snapshot.seat(pod, node, config);
            }
        }
        snapshot.ready.retain(|name, _| !snapshot.unclear.contains_key(name));
        snapshot
    }

    fn add_host(&mut self, name: &NodeName, id: NodeId, class: Option<Class>) {
        self.hosts.insert(name.clone(), id);
        if class == Some(Class::Ready) {
            self.ready.insert(name.clone(), id);
        }
    }

    fn seat(&mut self, pod: &'a Arc<Pod>, node: &'a str, config: &Config) {
        let takes_room =
            !is_finished(pod) && !is_expendable(pod, config.expendable_priority_cutoff);
        let host = self.hosts.get(node).copied().filter(|_| takes_room);
        let class = host.and_then(|host| match self.cluster.compile_bound(pod) {
            Ok(class) => {
                self.cluster.place(class, host);
                Some(class)
            }
            Err(error) => {
                self.unclear.insert(node.into(), error.to_string());
                None
            }
        });
        self.occupants.entry(node).or_default().push(Occupant { pod, class });
    }
}

/// Registered nodes that will soon be Ready: placeholders stand in for them.
pub(super) fn starting(registry: &Registry, now: Timestamp) -> BTreeSet<NodeName> {
    registry.all_upcoming(now).into_values().flat_map(|upcoming| upcoming.nodes).collect()
}
