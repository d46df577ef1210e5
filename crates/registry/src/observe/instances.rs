//! Every instance without Node gets its class. What a stale group had last stays as it was.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Round;
use crate::class::Class;
use crate::classify::instance_class;
use crate::config::Times;
use crate::facts::{Instance, InstanceState};
use crate::id::{GroupId, InstanceId};
use crate::sift::Sizes;
use crate::state::{InstanceMemory, count};
use crate::time::later;
use crate::view::InstanceView;

// === impl Round ===

impl Round<'_> {
    pub(super) fn see_instances(&mut self) {
        let mut seen = self.remembered();
        for (group, reading) in &self.sifted.groups {
            let Ok(sizes) = &reading.sizes else { continue };
            let unregistered = sizes
                .instances
                .iter()
                .filter(|instance| !self.sifted.is_registered(&instance.id))
                .map(|instance| self.meet(group, instance, &reading.profile.times));
            seen.extend(unregistered);
            if let Some(view) = self.view.groups.get_mut(group) {
                view.listed = listed(sizes);
            }
        }
        for (id, memory) in &seen {
            let view = self.instance_view(memory);
            self.view.count_instance(&view);
            self.view.instances.insert(id.clone(), view);
        }
        self.state.instances = seen;
    }

    /// The instances of stale groups, but for those that have registered since.
    fn remembered(&self) -> BTreeMap<InstanceId, InstanceMemory> {
        let is_stale = |group| self.sifted.groups.get(group).is_some_and(|it| it.sizes.is_err());
        let known = self.state.instances.iter();
        known
            .filter(|(id, memory)| is_stale(&memory.group) && !self.sifted.is_registered(id))
            .map(|(id, memory)| (id.clone(), memory.clone()))
            .collect()
    }

    fn meet(
        &self,
        group: &GroupId,
        instance: &Instance,
        times: &Times,
    ) -> (InstanceId, InstanceMemory) {
        let known = self.state.instances.get(&instance.id).filter(|known| known.group == *group);
        let mut memory = InstanceMemory {
            group: group.clone(),
            first_listed: known.map_or(self.now, |known| known.first_listed),
            class: Class::Unregistered,
            since: self.now,
            state: instance.state,
            error: instance.error.clone(),
        };
        let is_handed_over = self.state.open_deletion(instance.id.as_str()).is_some();
        memory.class = instance_class(&memory, is_handed_over, times, self.now);
        memory.since = match known.filter(|known| known.class == memory.class) {
            Some(known) => known.since,
            None => since(&memory, times, self.now),
        };
        (instance.id.clone(), memory)
    }

    fn instance_view(&self, memory: &InstanceMemory) -> InstanceView {
        let reading = self.sifted.groups.get(&memory.group);
        let provision =
            reading.map_or(self.config.times, |reading| reading.profile.times).provision;
        let deadline = later(memory.first_listed, provision);
        InstanceView {
            group: memory.group.clone(),
            class: memory.class,
            since: memory.since,
            first_listed: memory.first_listed,
            deadline: (memory.class == Class::Unregistered).then_some(deadline),
            error: memory.error.as_ref().map(|error| error.code.clone()),
        }
    }
}

/// Since when it has a class that it did not have before.
fn since(memory: &InstanceMemory, times: &Times, now: Timestamp) -> Timestamp {
    match memory.class {
        Class::Unregistered => memory.first_listed,
        Class::LongUnregistered => later(memory.first_listed, times.provision),
        _ => now,
    }
}

/// How many machines there are that a lower target could take.
fn listed(sizes: &Sizes<'_>) -> u32 {
    let is_staying = |it: &&&Instance| it.state != Some(InstanceState::Deleting);
    count(sizes.instances.iter().filter(is_staying))
}
