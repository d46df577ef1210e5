//! What a crash, or another one before us, left half done: nodes that bear the taint of a removal that
//! nobody carries on.

use registry::{Class, Registry};

use super::super::action::Lift;
use super::super::names::CORDONED;
use super::super::world::{World, node_annotation};
use super::Drains;

/// Nodes of known groups that are to be ordinary ones again. A machine that was handed over, or that
/// its provider deletes, goes on to go.
pub(in super::super) fn leftovers(
    world: &World,
    registry: &Registry,
    drains: &Drains,
) -> Vec<Lift> {
    let tainted = registry.nodes().filter(|(name, view)| {
        view.class == Class::Leaving
            && view.removal.is_tainted
            && !view.removal.is_handed_over()
            && view.group.is_some()
            && view.is_running
            && !drains.has(name)
    });
    let lift = |(name, _): (&registry::NodeName, _)| {
        let node = world.nodes.get(name)?;
        Some(Lift {
            node: name.clone(),
            uncordons: node_annotation(node, CORDONED).is_some(),
            why: "nobody removes it".to_owned(),
        })
    };
    tainted.filter_map(lift).collect()
}
