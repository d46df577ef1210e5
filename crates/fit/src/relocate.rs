//! Can the pods of a node run elsewhere?

use crate::class::ClassId;
use crate::cluster::Cluster;
use crate::node::NodeId;

/// A pod that would have to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mover {
    /// As it runs now.
    pub bound: ClassId,
    /// As it would have to be placed.
    pub class: ClassId,
}

/// `NoPlaceToMovePods`: by its place in the list, the first pod that no node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace(pub usize);

// === impl Cluster ===

impl Cluster {
    /// Moves pods of a node to the first of the others that take them, and says which; if one finds no
    /// place, everything is as before.
    ///
    /// # Panics
    ///
    /// If a node or a pod is not there.
    pub fn relocate(
        &mut self,
        node: NodeId,
        movers: &[Mover],
        others: &[NodeId],
    ) -> Result<Vec<NodeId>, NoPlace> {
        for mover in movers {
            self.remove(mover.bound, node);
        }
        let mut places = Vec::with_capacity(movers.len());
        for (at, mover) in movers.iter().enumerate() {
            let mut others = others.iter().filter(|other| **other != node);
            let Some(place) = others.find(|other| self.fits(mover.class, **other)) else {
                self.undo(node, movers, &places);
                return Err(NoPlace(at));
            };
            self.place(mover.class, *place);
            places.push(*place);
        }
        Ok(places)
    }

    fn undo(&mut self, node: NodeId, movers: &[Mover], places: &[NodeId]) {
        for (mover, place) in movers.iter().zip(places) {
            self.remove(mover.class, *place);
        }
        for mover in movers {
            self.place(mover.bound, node);
        }
    }
}
