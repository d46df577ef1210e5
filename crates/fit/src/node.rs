//! A node: the machine, which does not change, and what runs on it, which does.

use k8s_openapi::api::core::v1::Node;

use crate::amounts::{self, Amounts, PODS};
use crate::class::{Class, ClassId};
use crate::labels::Labels;
use crate::placement::is_zoned;
use crate::ports::HostPort;
use crate::quantity;
use crate::taints::Taint;
use crate::words::{Symbol, Words};

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

/// A node of a [`Cluster`](crate::Cluster). Of a node that changes a new one is made, so what is known
/// of a number stays true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// What a Node object says, as far as it decides which pods fit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Machine {
    pub(crate) name: Symbol,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) is_cordoned: bool,
    pub(crate) is_zoned: bool,
    pub(crate) allocatable: Amounts,
    pub(crate) pods_max: i64,
}

/// A machine and its pods.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) machine: Machine,
    pub(crate) used: Amounts,
    pub(crate) pods: i64,
    /// How many pods there are of each class, by class.
    pub(crate) classes: Vec<(ClassId, u32)>,
    /// Ports in use, each with the number of pods that have it.
    pub(crate) ports: Vec<(HostPort, u32)>,
}

// === impl NodeId ===

impl NodeId {
    pub(crate) fn slot(self) -> usize {
        self.0 as usize
    }
}

// === impl Machine ===

impl Machine {
    pub(crate) fn new(words: &mut Words, node: &Node) -> Result<Self, quantity::Error> {
        let spec = node.spec.as_ref();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let allocatable = amounts::parse(allocatable)?;
        let labels = Labels::new(words, node.metadata.labels.as_ref());
        Ok(Self {
            name: words.intern(node.metadata.name.as_deref().unwrap_or_default()),
            taints: Taint::hard(words, spec.and_then(|spec| spec.taints.as_ref())),
            is_cordoned: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
            is_zoned: is_zoned(words, &labels),
            labels,
            pods_max: allocatable.get(PODS).map_or(0, |quantity| quantity.units()),
            allocatable: Amounts::new(words, &allocatable),
        })
    }

    /// Another of the same kind, with a name that nobody has written.
    pub(crate) fn like(&self, name: Symbol, hostname_key: Symbol) -> Self {
        let mut labels = self.labels.clone();
        labels.replace(hostname_key, name);
        Self { name, labels, ..self.clone() }
    }
}

// === impl Host ===

impl Host {
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, used: Amounts::default(), pods: 0, classes: Vec::new(), ports: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: ClassId, class: &Class) {
        self.used.add(&class.requests);
        self.pods += 1;
        count_up(&mut self.classes, id);
        for port in &class.ports {
            count_up(&mut self.ports, *port);
        }
    }

    pub(crate) fn remove(&mut self, id: ClassId, class: &Class) {
        self.used.subtract(&class.requests);
        self.pods -= 1;
        count_down(&mut self.classes, id);
        for port in &class.ports {
            count_down(&mut self.ports, *port);
        }
    }

    pub(crate) fn has(&self, id: ClassId) -> bool {
        self.classes.binary_search_by_key(&id, |(id, _)| *id).is_ok()
    }
}

fn count_up<T: Ord + Copy>(counts: &mut Vec<(T, u32)>, what: T) {
    match counts.binary_search_by_key(&what, |(what, _)| *what) {
        Ok(at) => counts[at].1 += 1,
        Err(at) => counts.insert(at, (what, 1)),
    }
}

fn count_down<T: Ord + Copy>(counts: &mut Vec<(T, u32)>, what: T) {
    let at = counts.binary_search_by_key(&what, |(what, _)| *what);
    let at = at.unwrap_or_else(|_| panic!("only what is here is removed"));
    counts[at].1 -= 1;
    if counts[at].1 == 0 {
        counts.remove(at);
    }
}
