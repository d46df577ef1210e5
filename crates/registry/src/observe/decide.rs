//! What to do now. At most one change of size per group: whoever removes instances does not also
//! lower the target, which would be done on a number that is no longer true.

use super::Round;
use super::sizes::overdue;
use crate::class::Class;
use crate::decision::{Decision, REMOVALS_PER_GROUP_MAX, RemovalReason};
use crate::id::{GroupId, InstanceId, NodeName};
use crate::time::later;
use crate::view::{InstanceView, NodeView};

// === impl Round ===

impl Round<'_> {
    pub(super) fn decide(&self) -> Vec<Decision> {
        let halt = self.view.cluster.halt(self.config);
        let is_halted = halt.is_some();
        let mut decisions: Vec<Decision> = halt.into_iter().map(Decision::Halt).collect();
        for group in self.good_groups() {
            let removals = self.removals(&group, is_halted);
            if removals.is_empty() && !is_halted {
                decisions.extend(self.reduction(&group));
            }
            decisions.extend(removals);
        }
        let overdue = self.view.nodes.iter().filter(|(_, node)| self.is_removal_overdue(node));
        let lift = |(name, _): (&NodeName, _)| Decision::LiftTaint { node: name.clone() };
        decisions.extend(overdue.map(lift));
        decisions
    }

    /// Oldest first; what could not be created before what did not register.
    fn removals(&self, group: &GroupId, is_halted: bool) -> Vec<Decision> {
        if !self.may_remove_instances(is_halted) {
            return Vec::new();
        }
        let useless = self.view.instances.iter().filter(|(_, instance)| instance.group == *group);
        let mut useless: Vec<_> = useless
            .filter_map(|(id, instance)| Some((reason(instance)?, instance.first_listed, id)))
            .collect();
        useless.sort_unstable();
        useless.truncate(self.removable_max(group));
        let remove = |(reason, _, id): (RemovalReason, _, &InstanceId)| Decision::RemoveInstance {
            group: group.clone(),
            instance: id.clone(),
            reason,
        };
        useless.into_iter().map(remove).collect()
    }

    fn may_remove_instances(&self, is_halted: bool) -> bool {
        let is_held = self.state.removals_from.is_some_and(|from| self.now < from);
        // Without any Node every instance looks unregistered; more likely the listing is wrong.
        let knows_nodes = !self.view.nodes.is_empty();
        let is_allowed = !is_halted || self.config.removes_unregistered_when_unhealthy;
        is_allowed && knows_nodes && !is_held
    }

    /// Each removal lowers the target by one.
    fn removable_max(&self, group: &GroupId) -> usize {
        let min = self.state.groups.get(group).map_or(0, |memory| memory.profile.min);
        let target = self.view.groups.get(group).and_then(|view| view.target).unwrap_or(0);
        let room = usize::try_from(target.saturating_sub(min)).unwrap_or(usize::MAX);
        let is_bound = !self.config.removes_unregistered_below_min;
        if is_bound { room.min(REMOVALS_PER_GROUP_MAX) } else { REMOVALS_PER_GROUP_MAX }
    }

    /// Gives up what is missing, and takes no machine that is listed.
    fn reduction(&self, group: &GroupId) -> Option<Decision> {
        let (memory, view) = (self.state.groups.get(group)?, self.view.groups.get(group)?);
        let terms = self.terms(group)?;
        let reverted = memory.revert.min(terms.missing());
        let delta = reverted.max(overdue(memory, &terms, self.now));
        let delta = delta.min(terms.target.saturating_sub(view.listed));
        (delta > 0).then(|| Decision::ReduceTarget { group: group.clone(), delta })
    }

    /// Whether a node was to be removed, was not in time, and runs.
    fn is_removal_overdue(&self, node: &NodeView) -> bool {
        let began = node.removal.drained_since.unwrap_or(node.since);
        let is_slow = self.now >= later(began, self.config.drain_timeout);
        let deletion = node.instance.as_ref().and_then(|id| self.state.deletions.get(id));
        let is_given_up = deletion.is_some_and(|deletion| deletion.is_overdue);
        let group = node.group.as_ref();
        let is_known = group.is_some_and(|group| self.sifted.sizes(group).is_some());
        is_known
            && node.class == Class::Leaving
            && node.removal.is_tainted
            && node.is_running
            && !node.removal.is_handed_over()
            && (is_slow || is_given_up)
    }
}

fn reason(instance: &InstanceView) -> Option<RemovalReason> {
    match instance.class {
        Class::CreateFailed => Some(RemovalReason::CreateFailed),
        Class::LongUnregistered => Some(RemovalReason::LongUnregistered),
        _ => None,
    }
}
