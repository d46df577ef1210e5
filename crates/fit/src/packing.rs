//! Pods onto nodes, largest first, each onto the first node that takes it: nodes that are there or
//! will soon be, then new ones. How many new nodes it takes is the estimate.
//!
//! The work is done in steps, so that whoever waits for it can watch a clock that this module does not
//! know of.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::amounts::Amounts;
use crate::class::ClassId;
use crate::cluster::{Cluster, Template};
use crate::explain::Refusal;
use crate::node::NodeId;

/// What is to be packed.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Pods are known by their place in this list.
    pub pods: &'a [ClassId],
    /// Nodes to fill first, in this order.
    pub nodes: Vec<NodeId>,
    /// What new nodes are made of; without it there are none.
    pub template: Option<&'a Template>,
    pub new_nodes_max: usize,
}

/// Packing under way.
#[derive(Debug)]
pub struct Packing {
    bins: Bins,
    template: Option<Template>,
    new_nodes_max: usize,
    /// Pods by class, the largest last.
    batches: Vec<Batch>,
    turn: Turn,
    packed: Packed,
}

/// How far it came, or what came of it.
#[derive(Debug)]
pub struct Packed {
    /// The cluster with all pods that were placed and the new nodes.
    pub cluster: Cluster,
    /// Each by its place in the plan.
    pub placed: Vec<(usize, NodeId)>,
    pub left: Vec<Left>,
    /// Each has at least one of the pods.
    pub new_nodes: Vec<NodeId>,
}

/// Pods of one class that found no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub pods: Vec<usize>,
    pub reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There may be no new nodes, and the others do not take it.
    NoRoom,
    /// As many new nodes were made as may be.
    NodesMax,
    /// Not even an empty new node takes it.
    Refused(Refusal),
}

#[derive(Debug)]
struct Batch {
    class: ClassId,
    /// The next one last.
    pods: Vec<usize>,
}

/// Where the search for a place of the next pod stands.
#[derive(Debug, Default)]
struct Turn {
    /// The next bin to look at.
    bin: usize,
    /// Every bin before it is closed.
    first_open: usize,
    /// Bins that will never again take a pod of this batch: here pods only come, none goes.
    is_closed: Vec<bool>,
}

/// The nodes that are filled, with what is left of the two resources that most often run out. They are
/// skimmed far more often than looked at.
#[derive(Debug, Default)]
struct Bins {
    nodes: Vec<NodeId>,
    cpu_millis: Vec<i64>,
    memory: Vec<i64>,
}

// === impl Packing ===

impl Packing {
    #[must_use]
    pub fn new(cluster: Cluster, plan: &Plan<'_>) -> Self {
        let mut bins = Bins::default();
        for node in &plan.nodes {
            bins.push(&cluster, *node);
        }
        Self {
            batches: batches(&cluster, plan),
            bins,
            template: plan.template.cloned(),
            new_nodes_max: plan.new_nodes_max,
            turn: Turn::default(),
            packed: Packed { cluster, placed: Vec::new(), left: Vec::new(), new_nodes: Vec::new() },
        }
    }

    /// Does at most so many steps, each of which looks closely at one node for one pod. True if there
    /// is no more to do.
    pub fn advance(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(batch) = self.batches.last() else { return true };
            self.step(batch.class);
        }
        self.batches.is_empty()
    }

    /// What came of it; what no step was left for is not among it.
    #[must_use]
    pub fn finish(self) -> Packed {
        self.packed
    }

    fn step(&mut self, class: ClassId) {
        match self.next_bin(class) {
            Some(bin) => self.try_bin(class, bin),
            None => self.try_new_node(class),
        }
    }

    /// The next node that is worth a close look.
    fn next_bin(&mut self, class: ClassId) -> Option<usize> {
        let requests = &self.packed.cluster.class(class).requests;
        let turn = &mut self.turn;
        turn.is_closed.resize(self.bins.nodes.len(), false);
        while turn.is_closed.get(turn.first_open) == Some(&true) {
            turn.first_open += 1;
        }
        turn.bin = turn.bin.max(turn.first_open);
        let (cpu, memory) = (wanted(requests.cpu_millis), wanted(requests.memory));
        for bin in turn.bin..self.bins.nodes.len() {
            if self.bins.cpu_millis[bin] < cpu || self.bins.memory[bin] < memory {
                turn.is_closed[bin] = true;
            } else if !turn.is_closed[bin] {
                turn.bin = bin + 1;
                return Some(bin);
            }
        }
        None
    }

    fn try_bin(&mut self, class: ClassId, bin: usize) {
        match self.packed.cluster.check(class, self.bins.nodes[bin]) {
            Ok(()) => self.place(class, bin),
            Err(obstacle) => self.turn.is_closed[bin] = !obstacle.may_pass(),
        }
    }

    fn try_new_node(&mut self, class: ClassId) {
        let Some(template) = &self.template else { return self.give_up(Reason::NoRoom) };
        if self.packed.new_nodes.len() >= self.new_nodes_max {
            return self.give_up(Reason::NodesMax);
        }
        let cluster = &mut self.packed.cluster;
        let node = cluster.add_from(template);
        if let Some(refusal) = cluster.explain(class, node) {
            cluster.remove_node(node);
            return self.give_up(Reason::Refused(refusal));
        }
        self.packed.new_nodes.push(node);
        self.bins.push(&self.packed.cluster, node);
        self.turn.is_closed.push(false);
        self.place(class, self.bins.nodes.len() - 1);
    }

    /// The next pod of the class goes into the bin.
    fn place(&mut self, class: ClassId, bin: usize) {
        let node = self.bins.nodes[bin];
        self.packed.cluster.place(class, node);
        self.bins.refresh(&self.packed.cluster, bin);
        let batch = self.batches.last_mut().expect("there is a batch as long as there are steps");
        let pod = batch.pods.pop().expect("a batch has pods");
        self.packed.placed.push((pod, node));
        self.turn.bin = 0;
        if batch.pods.is_empty() {
            self.end_batch();
        }
    }

    /// No pod of the class is placed any more: what one could not do, its like cannot.
    fn give_up(&mut self, reason: Reason) {
        if let Some(mut batch) = self.end_batch() {
            batch.pods.reverse();
            self.packed.left.push(Left { pods: batch.pods, reason });
        }
    }

    fn end_batch(&mut self) -> Option<Batch> {
        self.turn = Turn { is_closed: std::mem::take(&mut self.turn.is_closed), ..Turn::default() };
        self.turn.is_closed.clear();
        self.batches.pop()
    }
}

/// Zero is asked of nobody, and may be overdrawn already.
fn wanted(amount: i64) -> i64 {
    if amount > 0 { amount } else { i64::MIN }
}

fn batches(cluster: &Cluster, plan: &Plan<'_>) -> Vec<Batch> {
    let mut by_class: BTreeMap<ClassId, Vec<usize>> = BTreeMap::new();
    for (pod, class) in plan.pods.iter().enumerate().rev() {
        by_class.entry(*class).or_default().push(pod);
    }
    let yardstick = Yardstick::new(cluster, plan);
    let mut batches: Vec<_> =
        by_class.into_iter().map(|(class, pods)| Batch { class, pods }).collect();
    batches.sort_by_cached_key(|batch| {
        (yardstick.size(cluster, batch.class), Reverse(batch.pods.last().copied()))
    });
    batches
}

/// What the sizes of pods are measured by.
struct Yardstick {
    cpu_millis: i64,
    memory: i64,
}

// === impl Yardstick ===

impl Yardstick {
    /// A new node, or the largest of those that are there.
    fn new(cluster: &Cluster, plan: &Plan<'_>) -> Self {
        let machines: Vec<_> = match plan.template {
            Some(template) => vec![template.machine()],
            None => plan.nodes.iter().map(|node| &cluster.host(*node).machine).collect(),
        };
        let most = |amount: fn(&Amounts) -> i64| {
            machines.iter().map(|machine| amount(&machine.allocatable)).max().unwrap_or(1).max(1)
        };
        Self { cpu_millis: most(|all| all.cpu_millis), memory: most(|all| all.memory) }
    }

    /// The share of the cpu plus the share of the memory, in billionths.
    fn size(&self, cluster: &Cluster, class: ClassId) -> i128 {
        let requests = &cluster.class(class).requests;
        let share = |amount: i64, of: i64| i128::from(amount) * 1_000_000_000 / i128::from(of);
        share(requests.cpu_millis, self.cpu_millis) + share(requests.memory, self.memory)
    }
}

// === impl Bins ===

impl Bins {
    fn push(&mut self, cluster: &Cluster, node: NodeId) {
        self.nodes.push(node);
        self.cpu_millis.push(0);
        self.memory.push(0);
        self.refresh(cluster, self.nodes.len() - 1);
    }

    fn refresh(&mut self, cluster: &Cluster, bin: usize) {
        let host = cluster.host(self.nodes[bin]);
        let allocatable = &host.machine.allocatable;
        self.cpu_millis[bin] = allocatable.cpu_millis.saturating_sub(host.used.cpu_millis);
        self.memory[bin] = allocatable.memory.saturating_sub(host.used.memory);
    }
}
