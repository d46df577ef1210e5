//! Which groups grow, by how much, and for which pods; and to every pod and group that is refused, why.
//!
//! 1. Pods that wait are put onto Ready nodes, then onto nodes that are still to come.
//! 2. For each group that may grow, the rest is packed onto new nodes of the group.
//! 3. The expanders choose one of the groups; its increase is shared with groups like it.
//!
//! The first two can take long, so they are done in steps: `ScaleUp::advance` until it says that
//! there is no more, or `ScaleUp::cut` for who has waited long enough for one group.

mod candidates;
mod choose;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use fit::expand::Offer;
use fit::{Cluster, NodeId, Packed, Packing, Plan};
use jiff::Timestamp;
use registry::{Facts, GroupId, Registry};

use super::config::Config;
use super::limits::Totals;
use super::memory::Memory;
use super::pending::{Pending, Waiting};
use super::snapshot::Snapshot;
use super::template::Templates;
use super::world::World;

pub(super) use verdict::summary;
pub use verdict::{GroupVerdict, Increase, PodVerdict, ScaleUpPlan, Unusable};

use candidates::Candidate;

/// Everything a scale-up is planned from.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a, 'b> {
    pub(super) now: Timestamp,
    pub(super) seed: u64,
    pub(super) config: &'a Config,
    pub(super) world: &'a World,
    pub(super) facts: &'a Facts,
    pub(super) registry: &'b Registry,
    pub(super) memory: &'b Memory,
    pub(super) templates: &'b Templates,
    /// Groups that this iteration has changed, or failed to.
    pub(super) touched: &'b BTreeSet<GroupId>,
}

/// A plan in the making.
#[derive(Debug)]
pub(super) struct ScaleUp<'a> {
    config: &'a Config,
    seed: u64,
    totals: Totals,
    candidates: BTreeMap<GroupId, Candidate>,
    unusable: BTreeMap<GroupId, Unusable>,
    waiting: Vec<Waiting<'a>>,
    /// Nodes that are to come, with their groups.
    placeholders: BTreeMap<NodeId, GroupId>,
    pods: BTreeMap<super::world::PodKey, PodVerdict>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Pods onto nodes that are there, or will be.
    Filling(Box<Packing>),
    Estimating(Box<Estimating>),
}

/// Pods onto new nodes, group by group.
#[derive(Debug)]
struct Estimating {
    /// With all pods that found a node.
    filled: Cluster,
    /// By their places among those who waited.
    seated: Vec<(usize, NodeId)>,
    left: Vec<usize>,
    current: Option<(GroupId, Packing)>,
    /// The next last.
    queue: Vec<GroupId>,
    estimates: BTreeMap<GroupId, Estimate>,
}

/// What new nodes of a group would do.
#[derive(Debug)]
struct Estimate {
    offer: Offer,
    /// Pods that the new nodes would take.
    taken: BTreeSet<usize>,
    refused: BTreeMap<usize, String>,
}

/// A plan, and the cluster with all pods that need none.
pub(super) struct Planned<'a> {
    pub(super) plan: Option<ScaleUpPlan>,
    pub(super) groups: BTreeMap<GroupId, GroupVerdict>,
    pub(super) pods: BTreeMap<super::world::PodKey, PodVerdict>,
    pub(super) filled: Cluster,
    pub(super) seated: Vec<(Waiting<'a>, NodeId)>,
    pub(super) totals: Totals,
}

// === impl ScaleUp ===

impl<'a> ScaleUp<'a> {
    pub(super) fn begin(
        scene: Scene<'a, '_>,
        snapshot: &mut Snapshot<'a>,
        pending: Pending<'a>,
    ) -> Self {
        let mut placeholders = BTreeMap::new();
        for (group, upcoming) in scene.registry.all_upcoming(scene.now) {
            let Some(known) = scene.templates.by_group.get(&group) else { continue };
            for _ in 0..upcoming.count {
                let node = snapshot.cluster.add_from(&known.template);
                placeholders.insert(node, group.clone());
            }
        }
        let totals = candidates::totals(scene);
        let (candidates, unusable) = candidates::sort(scene, &totals);
        let classes: Vec<_> = pending.waiting.iter().map(|pod| pod.class).collect();
        let ready = snapshot.ready.values().copied();
        let plan = Plan {
            pods: &classes,
            nodes: ready.chain(placeholders.keys().copied()).collect(),
            template: None,
            new_nodes_max: 0,
        };
        let packing = Packing::new(snapshot.cluster.fork(), &plan);
        Self {
            config: scene.config,
            seed: scene.seed,
            totals,
            candidates,
            unusable,
            waiting: pending.waiting,
            placeholders,
            pods: pending.skipped,
            stage: Stage::Filling(Box::new(packing)),
        }
    }

    /// Does at most so many steps, each a close look at one node for one pod. True if there is no more
    /// to do.
    pub(super) fn advance(&mut self, steps: usize) -> bool {
        match &mut self.stage {
            Stage::Filling(packing) => {
                if packing.advance(steps) {
                    self.end_filling();
                }
                false
            }
            Stage::Estimating(estimating) => {
                let is_done =
                    estimating.current.as_mut().is_none_or(|(_, packing)| packing.advance(steps));
                if is_done { self.next_estimate() } else { false }
            }
        }
    }

    /// Goes on with what the group at hand has come to, or with what found a node.
    pub(super) fn cut(&mut self) {
        match &self.stage {
            Stage::Filling(_) => self.end_filling(),
            Stage::Estimating(_) => _ = self.next_estimate(),
        }
    }

    /// The group that is being estimated.
    pub(super) fn at(&self) -> Option<&GroupId> {
        match &self.stage {
            Stage::Filling(_) => None,
            Stage::Estimating(estimating) => estimating.current.as_ref().map(|(group, _)| group),
        }
    }

    fn end_filling(&mut self) {
        let Stage::Filling(packing) = &mut self.stage else { return };
        let nothing = Plan { pods: &[], nodes: Vec::new(), template: None, new_nodes_max: 0 };
        let none = Packing::new(Cluster::new(&BTreeMap::new()), &nothing);
        let Packed { cluster, placed, .. } = std::mem::replace(&mut **packing, none).finish();
        let is_seated: BTreeSet<usize> = placed.iter().map(|(pod, _)| *pod).collect();
        let left: Vec<_> = (0..self.waiting.len()).filter(|at| !is_seated.contains(at)).collect();
        let queue = if left.is_empty() {
            Vec::new()
        } else {
            self.candidates.keys().rev().cloned().collect()
        };
        self.stage = Stage::Estimating(Box::new(Estimating {
            filled: cluster,
            seated: placed,
            left,
            current: None,
            queue,
            estimates: BTreeMap::new(),
        }));
        self.next_estimate();
    }

    /// Ends the estimate at hand and begins the next. True if there is none.
    fn next_estimate(&mut self) -> bool {
        let Stage::Estimating(estimating) = &mut self.stage else { return true };
        if let Some((group, packing)) = estimating.current.take()
            && let Some(candidate) = self.candidates.get(&group)
        {
            let estimate = Estimate::new(&group, candidate, packing.finish(), &estimating.left);
            estimating.estimates.insert(group, estimate);
        }
        let Some(group) = estimating.queue.pop() else { return true };
        let Some(candidate) = self.candidates.get(&group) else { return false };
        let classes: Vec<_> = estimating.left.iter().map(|at| self.waiting[*at].class).collect();
        let plan = Plan {
            pods: &classes,
            nodes: Vec::new(),
            template: Some(&candidate.template.template),
            new_nodes_max: usize::try_from(candidate.room).unwrap_or(usize::MAX),
        };
        let packing = Packing::new(estimating.filled.fork(), &plan);
        estimating.current = Some((group, packing));
        false
    }

    /// What it comes to.
    pub(super) fn finish(mut self) -> Planned<'a> {
        while matches!(self.stage, Stage::Filling(_)) {
            self.cut();
        }
        let Stage::Estimating(estimating) = self.stage else {
            unreachable!("filling ends with the first estimate")
        };
        let Estimating { filled, seated, left, estimates, .. } = *estimating;
        let offers = estimates.values().map(|estimate| estimate.offer.clone());
        let offers = offers.filter(|offer| offer.pods > 0).collect();
        let chosen = choose::choose(offers, &self.candidates, &estimates, (self.config, self.seed));
        let told = verdict::Told {
            waiting: &self.waiting,
            left: &left,
            estimates: &estimates,
            unusable: &self.unusable,
            candidates: &self.candidates,
            plan: chosen.as_ref(),
        };
        let groups = told.groups();
        let mut pods = told.pods();
        pods.append(&mut self.pods);
        let plan = chosen.clone().map(|chosen| told.plan(chosen));
        for (at, node) in &seated {
            let verdict = match self.placeholders.get(node) {
                Some(group) => PodVerdict::FitsUpcoming { group: group.clone() },
                None => PodVerdict::FitsNode,
            };
            pods.insert(self.waiting[*at].key.clone(), verdict);
        }
        let waiting = &self.waiting;
        let seated = seated.into_iter().map(|(at, node)| (waiting[at].clone(), node)).collect();
        Planned { plan, groups, pods, filled, seated, totals: self.totals }
    }
}

// === impl Estimate ===

impl Estimate {
    fn new(group: &GroupId, candidate: &Candidate, packed: Packed, left: &[usize]) -> Self {
        let offer = Offer::new(group.as_str(), &candidate.template.template, &packed);
        let taken = packed.placed.iter().map(|(pod, _)| left[*pod]).collect();
        let mut refused = BTreeMap::new();
        for each in &packed.left {
            let words = match &each.reason {
                fit::Reason::Refused(refusal) => refusal.to_string(),
                fit::Reason::NodesMax | fit::Reason::NoRoom => candidate.bound.to_owned(),
            };
            refused.extend(each.pods.iter().map(|pod| (left[*pod], words.clone())));
        }
        Self { offer, taken, refused }
    }
}
