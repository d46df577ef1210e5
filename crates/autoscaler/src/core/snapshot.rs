//! The cluster as a thought experiment: all nodes that will stay, with the pods on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fit::drain::is_finished;
use fit::{ClassId, Cluster, NodeId};
use jiff::Timestamp;
use registry::{Class, NodeName, Registry};

use super::config::Config;
use super::drain::Drains;
use super::kept::KeptPod;
use super::world::{World, bound_to, is_daemon, is_expendable, is_mirror, is_terminating};
use super::world::{names_of, sorted};

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
    pub(super) pod: &'a Arc<KeptPod>,
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
        for (node, mut pods) in by_node(world) {
            pods.sort_by(|one, other| names_of(one).cmp(&names_of(other)));
            for pod in pods {
                snapshot.seat(pod, node, config);
            }
        }
        snapshot.ready.retain(|name, _| !snapshot.unclear.contains_key(name));
        snapshot
    }

    /// Pods that we are moving away from a node take the room that they were promised, on the first
    /// node that has it.
    pub(super) fn expect(&mut self, world: &'a World, drains: &Drains, config: &Config) {
        let is_moving = |pod: &&'a Arc<KeptPod>| {
            let is_leaving = bound_to(pod).is_some_and(|node| drains.has_pods_to_go(node));
            let takes_room = !is_expendable(pod, config.expendable_priority_cutoff);
            is_leaving
                && takes_room
                && !is_terminating(pod)
                && !is_finished(&pod.kind)
                && !is_daemon(pod)
                && !is_mirror(pod)
        };
        for pod in sorted(world.pods.iter().filter(is_moving)) {
            let Ok(class) = self.cluster.compile(&pod.kind, &world.volumes) else { continue };
            let mut places = self.ready.iter();
            let place = places.find(|(_, host)| self.cluster.fits(class, **host));
            let Some((name, host)) = place else { continue };
            self.cluster.place(class, *host);
            if let Some((name, _)) = world.nodes.get_key_value(name) {
                let occupant = Occupant { pod, class: Some(class) };
                self.occupants.entry(name.as_str()).or_default().push(occupant);
            }
        }
    }

    fn add_host(&mut self, name: &NodeName, id: NodeId, class: Option<Class>) {
        self.hosts.insert(name.clone(), id);
        if class == Some(Class::Ready) {
            self.ready.insert(name.clone(), id);
        }
    }

    fn seat(&mut self, pod: &'a Arc<KeptPod>, node: &'a str, config: &Config) {
        let takes_room =
            !is_finished(&pod.kind) && !is_expendable(pod, config.expendable_priority_cutoff);
        let host = self.hosts.get(node).copied().filter(|_| takes_room);
        let class = host.and_then(|host| match self.cluster.compile_bound(&pod.kind) {
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

/// Pods by the node they are on, in the order they were listed.
fn by_node(world: &World) -> BTreeMap<&str, Vec<&Arc<KeptPod>>> {
    let mut by_node: BTreeMap<&str, Vec<&Arc<KeptPod>>> = BTreeMap::new();
    for pod in &world.pods {
        if let Some(node) = bound_to(pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    by_node
}

/// Registered nodes that will soon be Ready: placeholders stand in for them.
pub(super) fn starting(registry: &Registry, now: Timestamp) -> BTreeSet<NodeName> {
    registry.all_upcoming(now).into_values().flat_map(|upcoming| upcoming.nodes).collect()
}
