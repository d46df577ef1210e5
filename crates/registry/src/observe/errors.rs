//! Instances that the provider could not create. Each is told once, takes one from the request, and
//! its group is left alone for a while.

use std::collections::BTreeMap;

use super::Round;
use crate::class::Class;
use crate::id::{GroupId, InstanceId};
use crate::notice::{CODES_NAMED_MAX, EventReason, FailureCode, some_of};
use crate::request::lower;
use crate::state::count;

/// New errors of one group, by code: the message of one, and whose they are.
type Errors = BTreeMap<String, (String, Vec<InstanceId>)>;

// === impl Round ===

impl Round<'_> {
    pub(super) fn count_errors(&mut self) {
        self.forget_errors();
        for (group, errors) in self.new_errors() {
            self.tell_errors(&group, &errors);
            for (code, (message, instances)) in errors {
                let delta = count(instances.iter());
                self.shrink_requests(&group, delta, instances);
                self.fail(&group, FailureCode::Creation(code), message, delta);
            }
        }
    }

    /// What is no longer listed need not be remembered: ids do not come back.
    fn forget_errors(&mut self) {
        for (group, memory) in &mut self.state.groups {
            if let Some(sizes) = self.sifted.sizes(group) {
                memory.counted.retain(|instance| sizes.lists(instance));
            }
        }
    }

    fn new_errors(&self) -> BTreeMap<GroupId, Errors> {
        let mut new: BTreeMap<GroupId, Errors> = BTreeMap::new();
        for (id, instance) in &self.state.instances {
            let is_failed = instance.class == Class::CreateFailed;
            let memory = self.state.groups.get(&instance.group);
            let is_counted = memory.is_some_and(|memory| memory.counted.contains(id));
            if let Some(error) = &instance.error
                && is_failed
                && !is_counted
                && self.sifted.sizes(&instance.group).is_some()
            {
                let errors = new.entry(instance.group.clone()).or_default();
                let same = errors.entry(error.code.clone());
                same.or_insert_with(|| (error.message.clone(), Vec::new())).1.push(id.clone());
            }
        }
        new
    }

    fn tell_errors(&mut self, group: &GroupId, errors: &Errors) {
        let nodes: usize = errors.values().map(|(_, instances)| instances.len()).sum();
        let codes = some_of(errors.keys().map(String::as_str), errors.len(), CODES_NAMED_MAX);
        let message = format!("Failed adding {nodes} nodes to group {group} due to {codes}");
        self.notices.tell(EventReason::ScaleUpFailed, message);
    }

    /// Takes the nodes that will not come from the own request, then from the adopted one.
    fn shrink_requests(&mut self, group: &GroupId, delta: u32, instances: Vec<InstanceId>) {
        let Some(memory) = self.state.groups.get_mut(group) else { return };
        memory.counted.extend(instances);
        let own = memory.own.as_ref().map_or(0, |own| own.increase.min(delta));
        lower(&mut memory.own, own);
        lower(&mut memory.adopted, delta - own);
    }
}
