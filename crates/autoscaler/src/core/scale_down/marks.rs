//! The taint that asks the scheduler to prefer other nodes than those that may soon go.

use std::collections::BTreeSet;

use registry::{Class, NodeName};

use super::super::action::Action;
use super::super::names::DELETION_CANDIDATE;
use super::super::world::node_taint;
use super::Scene;

/// What is to be written, at most so much as one iteration may: first where the mark is wrong, since
/// that keeps pods away.
pub(in super::super) fn marks(
    scene: Scene<'_, '_>,
    candidates: &BTreeSet<NodeName>,
) -> Vec<Action> {
    // Those on their way out bear a mark that says more.
    let is_ours = |name: &NodeName| {
        let view = scene.registry.node(name);
        let stays = |class| !matches!(class, Class::Leaving | Class::Gone);
        view.is_some_and(|view| view.group.is_some() && stays(view.class))
    };
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for (name, node) in scene.world.nodes.iter().filter(|(name, _)| is_ours(name)) {
        let is_marked = node_taint(node, DELETION_CANDIDATE).is_some();
        match (candidates.contains(name), is_marked) {
            (false, true) => wrong.push(Action::Unmark { node: name.clone() }),
            (true, false) => {
                let value = scene.now.as_second();
                missing.push(Action::Mark { node: name.clone(), value });
            }
            _ => {}
        }
    }
    wrong.extend(missing);
    wrong.truncate(scene.config.scale_down.soft_taints_max);
    wrong
}
