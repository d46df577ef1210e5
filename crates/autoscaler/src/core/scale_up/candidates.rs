//! Which groups may grow, by how much, and why others may not.

use std::collections::BTreeMap;

use registry::{Class, GroupId};

use super::super::limits::{Totals, UNLIMITED};
use super::super::template::GroupTemplate;
use super::Scene;
use super::verdict::Unusable;

/// A group that may grow.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) template: GroupTemplate,
    pub(super) target: u32,
    pub(super) max: u32,
    /// How many nodes it may get, with the groups like it.
    pub(super) room: u32,
    /// What keeps the room from being larger, in words.
    pub(super) bound: &'static str,
    /// Groups that are as good.
    pub(super) similar: Vec<GroupId>,
}

/// Sums over all nodes that are there or will soon be.
pub(super) fn totals(scene: Scene<'_, '_>) -> Totals {
    let limits = &scene.config.limits;
    let mut totals = Totals::default();
    for (name, node) in &scene.world.nodes {
        let view = scene.registry.node(name);
        if view.is_none_or(|view| view.class != Class::Gone) {
            totals.add(node, 1, limits);
        }
    }
    for (group, upcoming) in scene.registry.all_upcoming(scene.now) {
        let registered = u32::try_from(upcoming.nodes.len()).unwrap_or(u32::MAX);
        let unregistered = upcoming.count.saturating_sub(registered);
        if let Some(known) = scene.templates.by_group.get(&group) {
            totals.add(&known.node, unregistered, limits);
        }
    }
    totals
}

/// Groups that may grow, and why others may not.
pub(super) fn sort(
    scene: Scene<'_, '_>,
    totals: &Totals,
) -> (BTreeMap<GroupId, Candidate>, BTreeMap<GroupId, Unusable>) {
    let (mut candidates, mut unusable) = (BTreeMap::new(), BTreeMap::new());
    for group in scene.registry.groups() {
        match candidate(scene, group, totals) {
            Ok(candidate) => _ = candidates.insert(group.clone(), candidate),
            Err(reason) => _ = unusable.insert(group.clone(), reason),
        }
    }
    if scene.config.scale_up.balances_similar_groups {
        pair(&mut candidates);
    }
    for candidate in candidates.values_mut() {
        candidate.cap(scene, totals);
    }
    (candidates, unusable)
}

fn candidate(
    scene: Scene<'_, '_>,
    group: &GroupId,
    totals: &Totals,
) -> Result<Candidate, Unusable> {
    let refusals = scene.registry.scale_up_refusals(group, scene.now);
    if !refusals.is_empty() {
        return Err(Unusable::Registry(refusals));
    }
    if let Some(until) = scene.memory.retry(group, scene.now) {
        return Err(Unusable::Retrying { until });
    }
    if scene.touched.contains(group) {
        return Err(Unusable::Touched);
    }
    if scene.world.is_zero_or_max(group) {
        return Err(Unusable::ZeroOrMax);
    }
    let target = scene.registry.terms(group, scene.now).map(|terms| terms.target);
    let listed = scene.facts.groups.iter().flatten().find(|listed| listed.id == *group);
    let max = listed.and_then(|listed| u32::try_from(listed.max).ok());
    let (Some(target), Some(max)) = (target, max) else {
        return Err(Unusable::Registry(vec![registry::Refusal::SizesUnknown]));
    };
    if target >= max {
        return Err(Unusable::MaxSize { max });
    }
    if totals.room_for_nodes(&scene.config.limits) == 0 {
        return Err(Unusable::NodesTotal);
    }
    let Some(template) = scene.templates.by_group.get(group) else {
        let unreadable = scene.templates.unreadable.get(group).cloned();
        return Err(Unusable::NoTemplate(unreadable));
    };
    let room = totals.room_for(&template.node, &scene.config.limits);
    if room.nodes == 0 {
        return Err(Unusable::ResourceLimit(room.short_of));
    }
    Ok(Candidate {
        template: template.clone(),
        target,
        max,
        room: max - target,
        bound: "max node group size reached",
        similar: Vec::new(),
    })
}

/// Finds who is like whom.
fn pair(candidates: &mut BTreeMap<GroupId, Candidate>) {
    let profiles: Vec<_> = candidates
        .iter()
        .map(|(group, each)| (group.clone(), each.template.profile.clone(), each.room))
        .collect();
    for (group, candidate) in candidates {
        for (other, profile, room) in &profiles {
            if other != group && candidate.template.profile.is_similar_to(profile) {
                candidate.similar.push(other.clone());
                candidate.room = candidate.room.saturating_add(*room);
            }
        }
    }
}

// === impl Candidate ===

impl Candidate {
    /// Takes in what holds for the whole cluster.
    fn cap(&mut self, scene: Scene<'_, '_>, totals: &Totals) {
        let limits = &scene.config.limits;
        let caps = [
            (scene.config.scale_up.nodes_per_scale_up_max, "max nodes per scale-up reached"),
            (totals.room_for_nodes(limits), NODES_TOTAL),
            (
                totals.room_for(&self.template.node, limits).nodes,
                "max cluster resource limit reached",
            ),
        ];
        for (cap, words) in caps {
            if cap != UNLIMITED && cap < self.room {
                (self.room, self.bound) = (cap, words);
            }
        }
    }
}

/// Upstream's words.
pub(super) const NODES_TOTAL: &str = "max total nodes in cluster reached";
