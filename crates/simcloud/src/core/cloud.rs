//! The state of the cloud, and how it moves on with time.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use registry::{GroupId, NodeName};

use super::after;
use super::create::{create, create_ready};
use super::due;
use super::health;
use super::instance::Instance;
use super::ledger::{Ledger, Place};
use super::node::{Machine, Node};
use crate::scenario::{self, Generation, Kind, Scenario};

/// How many changes of a target are remembered, for those who are shown it late.
const TARGETS_MAX: usize = 256;

/// See [`super`].
#[derive(Clone, Debug)]
pub struct Cloud {
    pub(super) scenario: Scenario,
    pub(super) now: Timestamp,
    pub(super) ledger: Ledger,
    pub(super) groups: BTreeMap<GroupId, GroupState>,
    pub(super) nodes: BTreeMap<NodeName, Node>,
}

#[derive(Clone, Debug)]
pub(super) struct GroupState {
    pub(super) plan: scenario::Group,
    pub(super) target: u32,
    /// When it became what, oldest first; never empty.
    targets: VecDeque<(Timestamp, u32)>,
    /// Machines that were lost and are not replaced.
    lost: u32,
    /// Machines there have ever been.
    pub(super) issued: u64,
    /// By number.
    pub(super) instances: BTreeMap<u64, Instance>,
}

// === impl Cloud ===

impl Cloud {
    /// The cloud as it is at `started`: every group has the machines it is meant to have, and all of
    /// them are Ready.
    #[must_use]
    pub fn new(scenario: Scenario, started: Timestamp) -> Self {
        let ledger = Ledger::new(scenario.seed, started, &scenario.faults);
        let groups = scenario.groups.iter();
        let groups = groups.map(|plan| (plan.id.clone(), GroupState::new(plan, started)));
        let mut cloud = Self {
            groups: groups.collect(),
            nodes: BTreeMap::new(),
            now: started,
            ledger,
            scenario,
        };
        for group in cloud.groups.values_mut() {
            for _ in 0..group.target {
                let node = create_ready(group, &cloud.ledger, started);
                cloud.nodes.insert(node.name.clone(), node);
            }
        }
        cloud
    }

    /// Moves on to `now`, past all that happens until then; back never.
    pub fn step(&mut self, now: Timestamp) {
        while let Some(at) = due::next(self, now) {
            self.move_to(at);
        }
        self.move_to(now);
    }

    fn move_to(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.lose_machines();
        self.end_deletions();
        self.fulfil();
        self.forget_orphans();
        health::tend(self);
    }

    /// All that registered and still stand.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    #[must_use]
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Whether a machine of this cloud ever had the name.
    #[must_use]
    pub fn has_issued(&self, name: &str) -> bool {
        let Some((group, number)) = name.rsplit_once('-') else { return false };
        let issued = self.groups.get(group).map_or(0, |group| group.issued);
        number.parse::<u64>().is_ok_and(|number| number < issued)
    }

    /// Which generation of the protocol is answered in.
    pub fn generation(&mut self, now: Timestamp) -> Generation {
        self.step(now);
        let anywhere = Place { group: None, zone: None };
        let is_legacy = |kind: &Kind| matches!(kind, Kind::LegacyReplies).then_some(());
        match self.ledger.find(self.now, anywhere, is_legacy) {
            Some(()) => Generation::Legacy,
            None => self.scenario.generation,
        }
    }

    /// Whether who connects now is shown a certificate that nobody trusts.
    pub fn shows_wrong_certificate(&mut self, now: Timestamp) -> bool {
        self.step(now);
        let anywhere = Place { group: None, zone: None };
        let is_wrong = |kind: &Kind| matches!(kind, Kind::WrongCertificate).then_some(());
        self.ledger.find(self.now, anywhere, is_wrong).is_some()
    }

    /// Creates what targets ask for and stockouts allow.
    pub(super) fn fulfil(&mut self) {
        let is_stockout = |kind: &Kind| matches!(kind, Kind::Stockout).then_some(());
        for group in self.groups.values_mut() {
            while group.lacks() {
                let place = group.next_place();
                if self.ledger.find(self.now, place, is_stockout).is_some() {
                    break;
                }
                create(group, &mut self.ledger, self.now);
            }
        }
    }

    /// The script's losses, which nobody asked for.
    fn lose_machines(&mut self) {
        let is_loss = |kind: &Kind| matches!(kind, Kind::Vanishes).then_some(());
        for (fault, ()) in self.ledger.active(self.now, is_loss) {
            for group in self.groups.values_mut() {
                let now = self.now;
                let ledger = &mut self.ledger;
                let mut is_lost = |instance: &mut Instance| {
                    instance.is_running(now)
                        && ledger.covers(fault, instance.place())
                        && instance.considered.insert(fault)
                        && ledger.hit(fault)
                };
                let lost = group.instances.extract_if(.., |_, instance| is_lost(instance));
                let lost: Vec<Instance> = lost.map(|(_, instance)| instance).collect();
                group.on_lost(&lost);
                for instance in &lost {
                    bury(instance, &mut self.nodes, &mut self.ledger, now);
                }
            }
        }
    }

    fn end_deletions(&mut self) {
        let now = self.now;
        for group in self.groups.values_mut() {
            let is_over = |instance: &Instance| instance.gone_at.is_some_and(|at| at <= now);
            let gone = group.instances.extract_if(.., |_, instance| is_over(instance));
            let gone: Vec<Instance> = gone.map(|(_, instance)| instance).collect();
            for instance in &gone {
                bury(instance, &mut self.nodes, &mut self.ledger, now);
            }
        }
    }

    fn forget_orphans(&mut self) {
        let now = self.now;
        self.nodes.retain(|_, node| match node.machine {
            Machine::Gone { until: Some(until) } => now < until,
            Machine::Gone { until: None } | Machine::Present => true,
        });
    }
}

/// The Node goes with its machine, unless it is scripted to stay.
fn bury(
    instance: &Instance,
    nodes: &mut BTreeMap<NodeName, Node>,
    ledger: &mut Ledger,
    now: Timestamp,
) {
    let Some(node) = nodes.get_mut(&instance.name) else { return };
    let outlives = |kind: &Kind| match kind {
        Kind::NodeOutlives { by } => Some(*by),
        _ => None,
    };
    match ledger.strike(now, instance.place(), outlives) {
        Some(by) => node.machine = Machine::Gone { until: by.map(|by| after(now, by)) },
        None => {
            nodes.remove(&instance.name);
        }
    }
}

// === impl GroupState ===

impl GroupState {
    fn new(plan: &scenario::Group, started: Timestamp) -> Self {
        Self {
            plan: plan.clone(),
            target: plan.target,
            targets: VecDeque::from([(started, plan.target)]),
            lost: 0,
            issued: 0,
            instances: BTreeMap::new(),
        }
    }

    /// Machines that are there and meant to stay.
    pub(super) fn existing(&self) -> u32 {
        let staying = self.instances.values().filter(|instance| instance.gone_at.is_none());
        u32::try_from(staying.count()).unwrap_or(u32::MAX)
    }

    fn lacks(&self) -> bool {
        self.existing().saturating_add(self.lost) < self.target
    }

    /// Where the next machine would be.
    fn next_place(&self) -> Place<'_> {
        Place { group: Some(&self.plan.id), zone: Some(self.next_zone()) }
    }

    pub(super) fn next_zone(&self) -> &str {
        let zones = u64::try_from(self.plan.zones.len()).expect("a length is no more than 64 bits");
        let index = usize::try_from(self.issued % zones).expect("it is less than a length");
        &self.plan.zones[index]
    }

    fn on_lost(&mut self, lost: &[Instance]) {
        if !self.plan.replaces_lost {
            self.lost += u32::try_from(lost.len()).unwrap_or(u32::MAX);
        }
    }

    pub(super) fn set_target(&mut self, target: u32, now: Timestamp) {
        self.target = target;
        self.lost = self.lost.min(target.saturating_sub(self.existing()));
        if self.targets.len() == TARGETS_MAX {
            self.targets.pop_front();
        }
        self.targets.push_back((now, target));
    }

    /// What the target was then; the oldest that is remembered, if that is longer ago.
    pub(super) fn target_at(&self, then: Timestamp) -> u32 {
        let known = self.targets.iter().rev().find(|(at, _)| *at <= then);
        known.or(self.targets.front()).map_or(self.target, |(_, target)| *target)
    }
}
