//! Pods onto other nodes, many nodes one after the other. Where a pod of a class found its place, the
//! search for the next one begins; what no node took is not looked for again.

use std::collections::{BTreeMap, BTreeSet};

use fit::{ClassId, Cluster, NodeId};

use super::super::world::{PodKey, World};
use super::reason::{Against, Reason};
use super::{Mover, placeable};

/// A pod as it takes room now, if it does, and as it would have to be placed.
pub(super) type Move = (Option<ClassId>, ClassId);

#[derive(Debug)]
pub(super) struct Relocator {
    cluster: Cluster,
    /// Where pods may go, in the order they are tried.
    destinations: Vec<NodeId>,
    closed: BTreeSet<NodeId>,
    /// By class: where the last one went.
    cursors: BTreeMap<ClassId, usize>,
    /// By class: all nodes but these were tried in vain, and since then they only got fuller.
    hopeless: BTreeMap<ClassId, BTreeSet<NodeId>>,
}

/// No node takes it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// By its place in the list.
    Pod(usize),
    /// What cannot be told.
    Unclear { pod: String, why: String },
}

// === impl Relocator ===

impl Relocator {
    pub(super) fn new(cluster: Cluster, destinations: Vec<NodeId>) -> Self {
        Self {
            cluster,
            destinations,
            closed: BTreeSet::new(),
            cursors: BTreeMap::new(),
            hopeless: BTreeMap::new(),
        }
    }

    /// No pod goes there any more.
    pub(super) fn close(&mut self, node: NodeId) {
        self.closed.insert(node);
    }

    pub(super) fn classes(
        &mut self,
        world: &World,
        movers: &[Mover<'_>],
    ) -> Result<Vec<Move>, NoPlace> {
        let class = |mover: &Mover<'_>| {
            let placed = placeable(&mut self.cluster, world, mover.pod);
            placed.map(|class| (mover.class, class)).map_err(|why| {
                let pod = PodKey::of(mover.pod).to_string();
                NoPlace::Unclear { pod, why }
            })
        };
        movers.iter().map(class).collect()
    }

    /// Moves all pods of a node elsewhere and closes it, or leaves everything as it was.
    pub(super) fn relocate(&mut self, node: NodeId, pods: &[Move]) -> Result<Vec<NodeId>, NoPlace> {
        for class in pods.iter().filter_map(|(now, _)| *now) {
            self.cluster.remove(class, node);
        }
        let mut places = Vec::with_capacity(pods.len());
        for (at, (_, class)) in pods.iter().enumerate() {
            let Some(place) = self.find(*class, node, places.is_empty()) else {
                self.undo(node, pods, &places);
                return Err(NoPlace::Pod(at));
            };
            self.cluster.place(*class, place);
            places.push(place);
        }
        self.close(node);
        Ok(places)
    }

    fn undo(&mut self, node: NodeId, pods: &[Move], places: &[NodeId]) {
        for ((_, class), place) in pods.iter().zip(places) {
            self.cluster.remove(*class, *place);
        }
        for class in pods.iter().filter_map(|(now, _)| *now) {
            self.cluster.place(class, node);
        }
    }

    /// A node for one pod, which comes from `from`. If nothing was moved in vain so far
    /// (`is_undisturbed`), a search that ends without one is remembered.
    fn find(&mut self, class: ClassId, from: NodeId, is_undisturbed: bool) -> Option<NodeId> {
        if let Some(untried) = self.hopeless.get(&class) {
            let untried: Vec<_> = untried.iter().copied().collect();
            return untried.into_iter().find(|node| self.takes(class, *node, from));
        }
        let count = self.destinations.len();
        let start = self.cursors.get(&class).copied().unwrap_or(0);
        for at in (start..count).chain(0..start) {
            let node = self.destinations[at];
            if self.takes(class, node, from) {
                self.cursors.insert(class, at);
                return Some(node);
            }
        }
        if is_undisturbed {
            self.hopeless.insert(class, BTreeSet::from([from]));
        }
        None
    }

    fn takes(&mut self, class: ClassId, node: NodeId, from: NodeId) -> bool {
        node != from && !self.closed.contains(&node) && self.cluster.fits(class, node)
    }
}

// === impl NoPlace ===

impl NoPlace {
    pub(super) fn against(self, name: impl Fn(usize) -> String) -> Against {
        let detail = match self {
            Self::Pod(at) => format!("no node takes {}", name(at)),
            Self::Unclear { pod, why } => format!("{pod}: {why}"),
        };
        Against::new(Reason::NoPlaceToMovePods, &detail)
    }
}
