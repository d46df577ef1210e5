//! Whose time has come, and who of them goes now.

use std::collections::{BTreeMap, BTreeSet};

use fit::{Budgets, Cluster, NodeId};
use jiff::Timestamp;
use registry::{Class, Facts, GroupId, Next, NodeName, Removal};

use super::super::config::Config;
use super::super::limits::Totals;
use super::super::memory::Memory;
use super::super::world::PodKey;
use super::reason::{Against, Cooldown, Order, Reason};
use super::relocate::Relocator;
use super::{Candidate, Found, Scene, budgets, reserve};

/// Removals in the making.
pub(in super::super) struct Chooser<'a, 'b> {
    pub(in super::super) scene: Scene<'a, 'b>,
    pub(in super::super) facts: &'a Facts,
    pub(in super::super) touched: &'b BTreeSet<GroupId>,
    pub(in super::super) totals: Totals,
}

/// Who goes, and why the others stay.
#[derive(Debug, Default)]
pub(in super::super) struct Choice {
    pub(in super::super) orders: Vec<Order>,
    pub(in super::super) kept: BTreeMap<NodeName, Against>,
    pub(in super::super) cooldown: Option<Cooldown>,
}

/// What is left of everything that is limited.
struct Left {
    removals: usize,
    drains: usize,
    groups: BTreeMap<GroupId, u32>,
    totals: Totals,
    budgets: Budgets,
    relocator: Relocator,
    /// Nodes that pods of others would go to.
    hosts: BTreeSet<NodeId>,
}

// === impl Chooser ===

impl Chooser<'_, '_> {
    /// `filled` is as it was before any removal was thought through.
    pub(in super::super) fn choose(
        self,
        found: &Found<'_>,
        filled: Cluster,
        destinations: Vec<NodeId>,
    ) -> Choice {
        let cooldown = cooldown(self.scene.memory, self.scene.now, self.scene.config);
        let mut choice = Choice { cooldown, ..Choice::default() };
        let due: BTreeMap<NodeName, Removal> = self
            .scene
            .registry
            .removable(self.scene.now)
            .into_iter()
            .map(|removal| (removal.node.clone(), removal))
            .collect();
        let mut left = self.left(filled, destinations);
        for candidate in in_order(found) {
            let verdict = match due.get(&candidate.name) {
                None => Err(Some(self.not_due(&candidate.name))),
                Some(_) if choice.cooldown.is_some() => Err(None),
                Some(removal) => self.try_one(candidate, removal, &mut left),
            };
            match verdict {
                Ok(order) => choice.orders.push(order),
                Err(Some(against)) => _ = choice.kept.insert(candidate.name.clone(), against),
                Err(None) => {}
            }
        }
        choice
    }

    fn left(&self, filled: Cluster, destinations: Vec<NodeId>) -> Left {
        let limits = &self.scene.config.scale_down;
        let drains = &self.scene.memory.drains;
        Left {
            removals: limits.parallelism_max.saturating_sub(drains.len()),
            drains: limits.drain_parallelism_max.saturating_sub(drains.with_pods()),
            groups: BTreeMap::new(),
            totals: self.totals.clone(),
            budgets: budgets(self.scene),
            relocator: Relocator::new(filled, destinations),
            hosts: BTreeSet::new(),
        }
    }

    /// Why a node that may go does not go yet.
    fn not_due(&self, name: &NodeName) -> Against {
        let Scene { registry, now, .. } = self.scene;
        let view = registry.node(name);
        let is_unready = view.is_some_and(|view| view.class.is_unready());
        let zone = view.and_then(|view| registry.zone_health(view.zone.as_ref()?));
        let too_soon =
            if is_unready { Reason::NotUnreadyLongEnough } else { Reason::NotUnneededLongEnough };
        match registry.prospect(name) {
            Some((Some(at), Next::Removed)) if now < at => {
                let is_held = registry.removals_held_until(now) == Some(at);
                let words = if is_held { "nothing is removed before" } else { "goes at" };
                Against::new(too_soon, &format!("{words} {}", super::super::account::clock(at)))
            }
            Some((_, Next::Kept(why))) if zone.is_some_and(|zone| zone.is_disrupted()) => {
                Against::new(Reason::ZoneDisrupted, why)
            }
            Some((_, Next::Kept(why))) => Against::new(Reason::UnexpectedError, why),
            // Due, and held all the same.
            _ => Against::new(too_soon, "its group misses nodes"),
        }
    }

    /// `Err(None)`: it goes later, since others go now.
    fn try_one(
        &self,
        candidate: &Candidate<'_>,
        removal: &Removal,
        left: &mut Left,
    ) -> Result<Order, Option<Against>> {
        let Scene { world, memory, now, config, .. } = self.scene;
        let no = |reason, detail: &str| Some(Against::new(reason, detail));
        if self.touched.contains(&removal.group) {
            return Err(no(Reason::UnexpectedError, "its group's size changed in this iteration"));
        }
        if memory.retry(&removal.group, now).is_some() {
            return Err(no(Reason::UnexpectedError, "its group's provider refused a change"));
        }
        let Some(instance) = removal.instance.clone() else {
            return Err(no(Reason::UnexpectedError, "its machine is not known"));
        };
        let (floor, room) = self.room_in(&removal.group, left);
        if room == 0 {
            return Err(no(Reason::NodeGroupMinSizeReached, &format!("min {floor}")));
        }
        let node = world.nodes.get(&candidate.name);
        let missed = node.map(|node| left.totals.missed_without(node, &config.limits));
        if let Some(missed) = missed.filter(|missed| !missed.is_empty()) {
            return Err(no(Reason::MinimalResourceLimitExceeded, &missed.join(", ")));
        }
        let is_empty = candidate.movers.is_empty();
        if left.removals == 0 || (!is_empty && left.drains == 0) {
            return Err(None);
        }
        self.make_room(candidate, left)?;
        left.removals -= 1;
        left.drains -= usize::from(!is_empty);
        left.groups.insert(removal.group.clone(), room - 1);
        node.into_iter().for_each(|node| left.totals.take(node));
        Ok(Order {
            node: candidate.name.clone(),
            group: removal.group.clone(),
            instance,
            reason: removal.reason,
            is_empty,
            floor,
        })
    }

    /// The group's minimum, and how many of its nodes may still go.
    fn room_in(&self, group: &GroupId, left: &Left) -> (u32, u32) {
        let listed = self.facts.groups.iter().flatten().find(|listed| listed.id == *group);
        let floor = listed.and_then(|listed| u32::try_from(listed.min).ok()).unwrap_or(u32::MAX);
        let target = self.scene.registry.terms(group, self.scene.now).map_or(0, |it| it.target);
        let leaving = self.scene.memory.drains.in_group(group);
        let fresh = target.saturating_sub(floor).saturating_sub(leaving);
        (floor, left.groups.get(group).copied().unwrap_or(fresh))
    }

    /// Finds a place for the pods of a node among those that stay.
    fn make_room(&self, candidate: &Candidate<'_>, left: &mut Left) -> Result<(), Option<Against>> {
        reserve(&mut left.budgets, &candidate.movers).map_err(Some)?;
        let view = self.scene.registry.node(&candidate.name);
        let Some(host) = candidate.host.filter(|_| view.is_some_and(|it| it.class == Class::Ready))
        else {
            return Ok(());
        };
        if left.hosts.contains(&host) {
            return Err(None);
        }
        let no_place = |error: super::relocate::NoPlace| {
            let name = |at: usize| PodKey::of(candidate.movers[at].pod).to_string();
            Some(error.against(name))
        };
        let classes =
            left.relocator.classes(self.scene.world, &candidate.movers).map_err(no_place)?;
        let places = left.relocator.relocate(host, &classes).map_err(no_place)?;
        left.hosts.extend(places);
        Ok(())
    }
}

/// Empty nodes first: nobody notices when they go. Then broken ones.
fn in_order<'a, 'b>(found: &'b Found<'a>) -> Vec<&'b Candidate<'a>> {
    let mut candidates: Vec<_> = found.unready.values().chain(found.unneeded.values()).collect();
    candidates.sort_by_key(|candidate| !candidate.movers.is_empty());
    candidates
}

/// Why no node goes now, if one of the delays is not over.
fn cooldown(memory: &Memory, now: Timestamp, config: &Config) -> Option<Cooldown> {
    let delays = &config.scale_down;
    let until = |since: Option<Timestamp>, delay| {
        let until = since?.saturating_add::<std::time::Duration>(delay).unwrap_or(Timestamp::MAX);
        (now < until).then_some(until)
    };
    let times = memory.times;
    let add = until(times.added, delays.delay_after_add).map(|until| Cooldown::AfterAdd { until });
    let delete = until(times.deleted, delays.delay_after_delete);
    let failure = until(times.failed, delays.delay_after_failure);
    add.or(delete.map(|until| Cooldown::AfterDelete { until }))
        .or(failure.map(|until| Cooldown::AfterFailure { until }))
}
