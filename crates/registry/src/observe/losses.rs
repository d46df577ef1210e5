//! Machines that vanish before their nodes were Ready, and not by us. Somebody repairs the group by
//! deleting what fails, and will go on to: asking for more would only feed it.

use std::collections::BTreeMap;

use super::Round;
use crate::id::{GroupId, InstanceId};
use crate::notice::FailureCode;
use crate::state::{NodeMemory, Presence};

// === impl Round ===

impl Round<'_> {
    pub(super) fn find_losses(&mut self) {
        let mut lost: BTreeMap<GroupId, u32> = BTreeMap::new();
        let instances = self.state.instances.iter().map(|(id, memory)| (&memory.group, id));
        let nodes = self.state.nodes.values().filter_map(unready_machine);
        for (group, _) in instances.chain(nodes).filter(|(group, id)| self.is_lost(group, id)) {
            *lost.entry(group.clone()).or_default() += 1;
        }
        for (group, delta) in lost {
            let message = format!("{delta} instances of {group} vanished before they were Ready");
            self.fail(&group, FailureCode::LostBeforeReady, message, delta);
        }
    }

    fn is_lost(&self, group: &GroupId, instance: &InstanceId) -> bool {
        let sizes = self.sifted.sizes(group);
        let is_listed = sizes.is_none_or(|sizes| sizes.lists(instance));
        let is_ours = self.state.deletions.contains_key(instance);
        let memory = self.state.groups.get(group);
        let is_counted = memory.is_some_and(|memory| memory.counted.contains(instance));
        !is_listed && !is_ours && !is_counted
    }
}

/// The machine of a node that was not Ready yet.
fn unready_machine(node: &NodeMemory) -> Option<(&GroupId, &InstanceId)> {
    let is_there = matches!(node.presence, Presence::Listed | Presence::Deleting);
    let machine = node.group.as_ref().zip(node.instance.as_ref());
    machine.filter(|_| is_there && !node.was_ready)
}
