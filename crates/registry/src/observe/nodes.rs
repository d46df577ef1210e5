//! Every Node gets its class, and what is not ordinary is remembered.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Round;
use crate::class::Class;
use crate::classify::{Sight, drain_began};
use crate::facts::InstanceState;
use crate::id::GroupId;
use crate::names;
use crate::readiness::Readiness;
use crate::sift::Placed;
use crate::state::{FLAP_MEMORY, FLAPS_MAX, HISTORY_MAX, NodeMemory, Presence, YOUNG};
use crate::time::later;
use crate::view::{Leave, NodeView};

// === impl Round ===

impl Round<'_> {
    pub(super) fn see_nodes(&mut self) {
        let nodes = std::mem::take(&mut self.sifted.nodes);
        let (mut views, mut odd) = (Vec::with_capacity(nodes.len()), BTreeMap::new());
        for placed in nodes {
            let name = &placed.node.name;
            let (view, memory) = self.see(&placed);
            if placed.is_counted {
                self.view.count_node(name, &view, self.config.unready_scope);
            }
            odd.extend(memory.map(|memory| (name.clone(), memory)));
            views.push((name.clone(), view));
        }
        self.state.nodes = odd;
        self.view.nodes = views.into_iter().collect();
        let nodes = &self.view.nodes;
        self.state.unneeded.retain(|name, _| nodes.contains_key(name));
    }

    /// What a node is, and what to remember of it: nothing if it is ordinary.
    fn see(&self, placed: &Placed<'_>) -> (NodeView, Option<NodeMemory>) {
        let node = placed.node;
        let memory =
            self.state.nodes.get(&node.name).filter(|memory| memory.created == node.created);
        let reading = placed.group.and_then(|group| self.sifted.groups.get(group));
        let sight = Sight {
            node,
            created: placed.created,
            readiness: Readiness::of(node, &self.config.startup_taints),
            presence: self.presence(placed, memory),
            deletion: placed.machine().and_then(|id| self.state.open_deletion(id)),
            memory,
            times: reading.map_or(&self.config.times, |reading| &reading.profile.times),
            now: self.now,
        };
        let memory = self.remember(placed, &sight);
        let odd = (!self.is_ordinary(placed, &memory)).then(|| memory.clone());
        (view(placed, sight, memory), odd)
    }

    fn presence(&self, placed: &Placed<'_>, memory: Option<&NodeMemory>) -> Presence {
        let Some(group) = placed.group else { return Presence::Unknown };
        if let Some(instance) = placed.instance {
            let is_deleting = instance.state == Some(InstanceState::Deleting);
            return if is_deleting { Presence::Deleting } else { Presence::Listed };
        }
        let was_listed = || self.was_ordinary(placed) && self.was_listed(group);
        let before = match memory {
            Some(memory) => memory.presence,
            None if was_listed() => Presence::Listed,
            None => Presence::Unknown,
        };
        let is_stale = self.sifted.sizes(group).is_none();
        if is_stale || before == Presence::Unknown { before } else { Presence::Absent }
    }

    fn was_listed(&self, group: &GroupId) -> bool {
        self.state.groups.get(group).is_some_and(|memory| memory.was_listed)
    }

    /// Whether the last observation saw a node of which nothing is remembered.
    fn was_ordinary(&self, placed: &Placed<'_>) -> bool {
        let seen_at = later(placed.created, YOUNG);
        self.state.observed_at.is_some_and(|last| seen_at <= last)
    }

    fn is_ordinary(&self, placed: &Placed<'_>, memory: &NodeMemory) -> bool {
        memory.class == Class::Ready
            && memory.flaps.is_empty()
            && (placed.group.is_none() || memory.presence == Presence::Listed)
            && later(placed.created, YOUNG) <= self.now
    }

    fn remember(&self, placed: &Placed<'_>, sight: &Sight<'_>) -> NodeMemory {
        let (class, memory) = (sight.class(), sight.memory);
        let before = match memory {
            Some(memory) => Some(memory.class),
            None => self.was_ordinary(placed).then_some(Class::Ready),
        };
        let mut flaps = memory.map_or_else(Vec::new, |memory| memory.flaps.clone());
        if before == Some(Class::Ready) && is_flap(class) {
            flaps.push(self.now);
        }
        flaps.retain(|at| self.now < later(*at, FLAP_MEMORY));
        keep_newest(&mut flaps, FLAPS_MAX);
        NodeMemory {
            created: placed.node.created,
            group: placed.group.cloned(),
            instance: placed.machine().map(Into::into),
            class,
            since: sight.since(class),
            was_ready: sight.was_ready(),
            presence: sight.presence,
            history: history(memory, class),
            flaps,
        }
    }
}

fn view(placed: &Placed<'_>, sight: Sight<'_>, memory: NodeMemory) -> NodeView {
    let node = placed.node;
    let disabled = node.annotations.get(names::SCALE_DOWN_DISABLED);
    NodeView {
        group: memory.group,
        instance: memory.instance,
        zone: node.labels.get(names::ZONE).cloned(),
        class: memory.class,
        since: memory.since,
        created: placed.created,
        was_ready: memory.was_ready,
        unready_since: sight.unready_since(memory.since),
        removal: Leave {
            is_tainted: node.taint(names::TO_BE_DELETED).is_some(),
            drained_since: drain_began(node).map(|began| began.min(sight.now)),
            deadline: sight.deletion.map(|deletion| deletion.deadline),
            is_deleting: sight.presence == Presence::Deleting,
        },
        is_running: sight.presence == Presence::Listed,
        has_twin: placed.has_twin,
        is_removal_forbidden: disabled.is_some_and(|value| value == "true"),
        history: memory.history,
        flaps: memory.flaps.len(),
        times: *sight.times,
        readiness: sight.readiness,
    }
}

/// The classes before this one.
fn history(memory: Option<&NodeMemory>, class: Class) -> Vec<(Class, Timestamp)> {
    let Some(memory) = memory else { return Vec::new() };
    let mut history = memory.history.clone();
    if memory.class != class {
        history.push((memory.class, memory.since));
    }
    keep_newest(&mut history, HISTORY_MAX);
    history
}

fn is_flap(class: Class) -> bool {
    matches!(class, Class::Starting | Class::BrokenStart | Class::Unready)
}

fn keep_newest<T>(items: &mut Vec<T>, max: usize) {
    items.drain(..items.len().saturating_sub(max));
}
