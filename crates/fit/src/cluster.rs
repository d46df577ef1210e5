//! A cluster as a thought experiment: nodes, the classes of pods on them, and the counters that the
//! rules look at. Pods are placed and removed here and nowhere else.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use crate::class::{Class, ClassId, Lexicon, PlacementId};
use crate::labels::Labels;
use crate::node::{HOSTNAME, Host, Machine, NodeId};
use crate::placement::{Mismatch, Placement};
use crate::quantity;
use crate::table::Table;
use crate::topology::{Known, Topology};
use crate::words::Symbol;

const NODE_IS_THERE: &str = "a node's number is used while the node is there";

/// Cheap to clone: a [fork](Cluster::fork) shares everything until it changes it. Classes compiled
/// before a fork are known to both sides; those compiled after are known to one.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) lexicon: Arc<Lexicon>,
    pub(crate) placements: Arc<Table<Placement>>,
    pub(crate) classes: Arc<Table<Class>>,
    /// By node; a node that left stays empty, so that numbers are never used twice.
    pub(crate) hosts: Vec<Option<Arc<Host>>>,
    pub(crate) topology: Topology,
    /// By placement and node: what was found out before.
    verdicts: Vec<Arc<Vec<Verdict>>>,
    hostname: Symbol,
    /// Names made up so far.
    fresh: u32,
}

/// What nodes of a group will be: one of them, without its pods.
#[derive(Clone, Debug)]
pub struct Template {
    machine: Arc<Machine>,
    /// Pods that every such node runs.
    pub(crate) daemons: Vec<ClassId>,
}

/// What is known of a placement and a node.
#[derive(Clone, Copy, Debug, Default)]
enum Verdict {
    #[default]
    Unknown,
    Known(Result<(), Mismatch>),
}

// === impl Cluster ===

impl Cluster {
    /// A cluster without nodes, and all its namespaces with their labels.
    #[must_use]
    pub fn new(namespaces: &BTreeMap<String, BTreeMap<String, String>>) -> Self {
        let mut lexicon = Lexicon::default();
        let hostname = lexicon.words.intern(HOSTNAME);
        for (name, labels) in namespaces {
            let name = lexicon.words.intern(name);
            let labels = Labels::new(&mut lexicon.words, Some(labels));
            lexicon.namespaces.insert(name, labels);
        }
        Self {
            lexicon: Arc::new(lexicon),
            placements: Arc::default(),
            classes: Arc::default(),
            hosts: Vec::new(),
            topology: Topology::default(),
            verdicts: Vec::new(),
            hostname,
            fresh: 0,
        }
    }

    /// The same cluster, to try things on.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    pub fn add_node(&mut self, node: &Node) -> Result<NodeId, quantity::Error> {
        let machine = Machine::new(&mut Arc::make_mut(&mut self.lexicon).words, node)?;
        Ok(self.add_machine(machine))
    }

    /// What nodes like this one will be, each with these pods.
    pub fn template(
        &mut self,
        node: &Node,
        daemons: Vec<ClassId>,
    ) -> Result<Template, quantity::Error> {
        let machine = Machine::new(&mut Arc::make_mut(&mut self.lexicon).words, node)?;
        Ok(Template { machine: Arc::new(machine), daemons })
    }

    /// A node that is not there yet, with the pods that each of its kind runs.
    pub fn add_from(&mut self, template: &Template) -> NodeId {
        let name = Symbol::fresh(self.fresh);
        self.fresh += 1;
        let node = self.add_machine(template.machine.like(name, self.hostname));
        for class in &template.daemons {
            self.place(*class, node);
        }
        node
    }

    fn add_machine(&mut self, machine: Machine) -> NodeId {
        let slot = self.hosts.len();
        let host = Arc::new(Host::new(machine));
        self.hosts.push(Some(Arc::clone(&host)));
        let known = Known {
            lexicon: &self.lexicon,
            classes: &self.classes,
            placements: &self.placements,
            hosts: &self.hosts,
        };
        self.topology.on_node_added(slot, &host, known);
        NodeId(u32::try_from(slot).expect("nodes fit into memory, numbers too"))
    }

    /// Takes a node away with all its pods.
    ///
    /// # Panics
    ///
    /// If it is not there.
    pub fn remove_node(&mut self, node: NodeId) {
        for (class, pods) in self.host(node).classes.clone() {
            for _ in 0..pods {
                self.remove(class, node);
            }
        }
        self.topology.on_node_removed(node.slot());
        self.hosts[node.slot()] = None;
    }

    /// Puts a pod on a node, whether it fits or not.
    ///
    /// # Panics
    ///
    /// If the node is not there.
    pub fn place(&mut self, class: ClassId, node: NodeId) {
        let host = self.hosts[node.slot()].as_mut().expect(NODE_IS_THERE);
        Arc::make_mut(host).add(class, self.classes.get(class.0));
        self.topology.on_placed(class, node.slot());
    }

    /// Takes a pod of this class from a node: the reverse of [`place`](Self::place).
    ///
    /// # Panics
    ///
    /// If the node or the pod is not there.
    pub fn remove(&mut self, class: ClassId, node: NodeId) {
        let host = self.hosts[node.slot()].as_mut().expect(NODE_IS_THERE);
        assert!(host.has(class), "only a pod that is on a node is taken from it");
        Arc::make_mut(host).remove(class, self.classes.get(class.0));
        self.topology.on_removed(class, node.slot());
    }

    /// All nodes, in the order they were added.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let slots = (0..).zip(&self.hosts);
        slots.filter_map(|(slot, host)| host.as_ref().map(|_| NodeId(slot)))
    }

    /// How many pods there are on a node, those of its kind's own included.
    ///
    /// # Panics
    ///
    /// If it is not there.
    #[must_use]
    pub fn pods_on(&self, node: NodeId) -> usize {
        usize::try_from(self.host(node).pods).expect("there are no fewer than none")
    }

    pub(crate) fn host(&self, node: NodeId) -> &Host {
        self.hosts[node.slot()].as_ref().expect(NODE_IS_THERE)
    }

    pub(crate) fn class(&self, class: ClassId) -> &Arc<Class> {
        self.classes.get(class.0)
    }

    pub(crate) fn intern_class(&mut self, class: Class) -> ClassId {
        if let Some(id) = self.classes.find(&class) {
            return ClassId(id);
        }
        let (id, _) = Arc::make_mut(&mut self.classes).intern(class);
        let known = Known {
            lexicon: &self.lexicon,
            classes: &self.classes,
            placements: &self.placements,
            hosts: &self.hosts,
        };
        self.topology.on_class_added(ClassId(id), known);
        ClassId(id)
    }

    /// Whether the node itself is one for the placement. Neither ever changes, so it is worked out
    /// once.
    pub(crate) fn verdict(&mut self, id: PlacementId, node: NodeId) -> Result<(), Mismatch> {
        if self.verdicts.len() <= id.0 as usize {
            self.verdicts.resize(id.0 as usize + 1, Arc::default());
        }
        let verdicts = &self.verdicts[id.0 as usize];
        if let Some(Verdict::Known(verdict)) = verdicts.get(node.slot()) {
            return *verdict;
        }
        let placement = self.placements.get(id.0);
        let verdict = placement.check(&self.host(node).machine, &self.lexicon.words);
        let verdicts = Arc::make_mut(&mut self.verdicts[id.0 as usize]);
        if verdicts.len() <= node.slot() {
            verdicts.resize(node.slot() + 1, Verdict::Unknown);
        }
        verdicts[node.slot()] = Verdict::Known(verdict);
        verdict
    }
}

// === impl Template ===

impl Template {
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }
}
