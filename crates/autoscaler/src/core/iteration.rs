//! One iteration: from what was read to what is to be done, one action at a time, and why.
//!
//! | step | here |
//! |---|---|
//! | 1 | [`Iteration::begin`] lets the registry observe |
//! | 2 | an unhealthy cluster ends it; removals under way are given up by [`Drains::step`] |
//! | 3 | taints that nobody needs are lifted, instances that did not come to be are deleted |
//! | 4 | targets are lowered; if one was, that is the end |
//! | 5–7 | pods that wait bring nodes |
//! | 8–9 | nodes that nobody needs are marked; those whose time has come begin to go |
//!
//! Whoever runs it calls [`Iteration::next`] until it says that it has [ended](Next::Ended). An
//! [action](Next::Act) is carried out before the next call and answered with [`Iteration::on_effect`].
//! [`Next::Working`] gives the caller time to look at the clock: [`Iteration::cut`] ends the estimate
//! of the group at hand. The removals that begin are in [`Memory::drains`] from then on.
//!
//! [`Drains::step`]: super::drain::Drains::step

mod tell;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fit::{Cluster, NodeId};
use jiff::Timestamp;
use registry::{Decision, Facts, GroupId, Halt, InstanceState, NodeName, Registry};

use super::account::{Account, Ending};
use super::action::{Action, Call, Effect, Machine};
use super::config::Config;
use super::drain::leftovers;
use super::limits::Totals;
use super::memory::{Memory, Unremovable};
use super::pending;
use super::scale_down::{self, Chooser, ScaleDown, marks};
use super::scale_up::{self, Planned, ScaleUp, ScaleUpPlan};
use super::snapshot::{Snapshot, starting};
use super::template::{Templates, samples, templates};
use super::world::World;

/// What one iteration goes by.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub now: Timestamp,
    /// All that is left to chance follows from it.
    pub seed: u64,
    pub facts: &'a Facts,
    pub world: &'a World,
    pub config: &'a Config,
}

/// See the module.
#[derive(Debug)]
pub struct Iteration<'a> {
    inputs: Inputs<'a>,
    account: Account,
    stage: Stage<'a>,
    queue: VecDeque<Action>,
    /// Handed out and not answered.
    current: Option<Action>,
    /// Groups whose size was changed, or was tried to be.
    touched: BTreeSet<GroupId>,
    has_fixed_sizes: bool,
    /// Groups that were asked for more, and may have heard it.
    grown: BTreeSet<GroupId>,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Carry it out and answer.
    Act(Action),
    /// There is more to think about.
    Working,
    Ended,
}

#[derive(Debug)]
enum Stage<'a> {
    /// Actions of step 3 are being carried out; those of step 4 follow.
    Removing {
        reductions: VecDeque<Action>,
        halt: Option<Halt>,
    },
    Reducing,
    ScalingUp(Box<Thought<'a>>, Box<ScaleUp<'a>>),
    /// Increases are being carried out.
    Growing(Box<Thought<'a>>, Box<Filled<'a>>),
    ScalingDown(Box<Thought<'a>>, Box<Totals>, Cluster, Box<ScaleDown<'a>>),
    /// Marks are being written.
    Marking,
    Ended,
}

/// What both plans are made on.
#[derive(Debug)]
struct Thought<'a> {
    snapshot: Snapshot<'a>,
}

/// The cluster with pods that need no new node.
#[derive(Debug)]
struct Filled<'a> {
    cluster: Cluster,
    seated: Vec<(pending::Waiting<'a>, NodeId)>,
    totals: Totals,
}

// === impl Iteration ===

impl<'a> Iteration<'a> {
    /// Steps 1 and 2.
    pub fn begin(inputs: Inputs<'a>, registry: &mut Registry, memory: &Memory) -> Self {
        let observation = registry.observe(inputs.now, inputs.facts);
        let mut halt = None;
        let (mut queue, mut reductions) = (VecDeque::new(), VecDeque::new());
        let lifts = leftovers(inputs.world, registry, &memory.drains);
        queue.extend(lifts.into_iter().map(Action::Lift));
        for decision in observation.decisions {
            match decision {
                Decision::Halt(reason) => halt = Some(reason),
                Decision::RemoveInstance { group, instance, reason } => {
                    if inputs.may_resize(&group, memory) {
                        let machine = Machine { instance, node: None, reason };
                        let floor = inputs.floor(&group, registry);
                        queue.push_back(Action::Call(Call::Delete { group, machine, floor }));
                    }
                }
                Decision::ReduceTarget { group, delta } => {
                    if inputs.may_resize(&group, memory) {
                        let floor = inputs.listed(&group);
                        let call = Call::Decrease { group, delta, floor };
                        reductions.push_back(Action::Call(call));
                    }
                }
                // Who bears a taint that nobody needs is among the leftovers, and who is being
                // removed by us is given up in its own time.
                Decision::LiftTaint { .. } => {}
            }
        }
        let account = Account { notices: observation.notices, ..Account::default() };
        Self {
            inputs,
            account,
            stage: Stage::Removing { reductions, halt },
            queue,
            current: None,
            touched: BTreeSet::new(),
            has_fixed_sizes: false,
            grown: BTreeSet::new(),
        }
    }

    /// What to do next. Does at most about so many steps of thought.
    ///
    /// # Panics
    ///
    /// If the last action was not answered.
    pub fn next(&mut self, registry: &mut Registry, memory: &mut Memory, steps: usize) -> Next {
        assert!(self.current.is_none(), "an action is answered before the next one");
        loop {
            if let Some(action) = self.queue.pop_front() {
                self.current = Some(action.clone());
                return Next::Act(action);
            }
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Removing { halt: Some(halt), .. } => self.end(Ending::Unhealthy(halt)),
                Stage::Removing { reductions, halt: None } => {
                    // What was deleted for a group is its one change.
                    let is_free = |action: &Action| match action {
                        Action::Call(call) => !self.touched.contains(call.group()),
                        _ => true,
                    };
                    self.queue.extend(reductions.into_iter().filter(is_free));
                    self.stage = Stage::Reducing;
                }
                Stage::Reducing if self.has_fixed_sizes => self.end(Ending::SizesFixed),
                Stage::Reducing => self.begin_scale_up(registry, memory),
                Stage::ScalingUp(thought, mut scale_up) => {
                    if !scale_up.advance(steps) {
                        self.stage = Stage::ScalingUp(thought, scale_up);
                        return Next::Working;
                    }
                    self.end_scale_up(thought, *scale_up);
                }
                Stage::Growing(thought, filled) => {
                    tell::scale_up(&mut self.account, &self.grown);
                    self.begin_scale_down(thought, *filled, registry, memory);
                }
                Stage::ScalingDown(thought, totals, filled, mut scale_down) => {
                    if !scale_down.advance(steps) {
                        self.stage = Stage::ScalingDown(thought, totals, filled, scale_down);
                        return Next::Working;
                    }
                    let choice = (*scale_down, *totals, filled);
                    self.end_scale_down(&thought, choice, registry, memory);
                }
                Stage::Marking => {
                    let was_productive =
                        !self.grown.is_empty() || !self.account.removals.is_empty();
                    self.end(Ending::Complete { was_productive });
                }
                Stage::Ended => return Next::Ended,
            }
        }
    }

    /// The group whose new nodes are being estimated, if one is.
    #[must_use]
    pub fn estimating(&self) -> Option<&GroupId> {
        match &self.stage {
            Stage::ScalingUp(_, scale_up) => scale_up.at(),
            _ => None,
        }
    }

    /// Goes on without the rest of the estimate at hand; says of which group. Whether pods fit nodes
    /// that are there is looked at to the end: cut short, it would ask for nodes that nobody needs.
    pub fn cut(&mut self) -> Option<GroupId> {
        let group = self.estimating()?.clone();
        let Stage::ScalingUp(_, scale_up) = &mut self.stage else { return None };
        scale_up.cut();
        Some(group)
    }

    /// Takes in what came of the last action.
    pub fn on_effect(&mut self, effect: &Effect, memory: &mut Memory) {
        let Some(action) = self.current.take() else { return };
        let Action::Call(call) = &action else { return };
        let (group, now) = (call.group(), self.inputs.now);
        match effect {
            Effect::Done => memory.on_accepted(group),
            Effect::Failed(_) | Effect::Unknown if !matches!(call, Call::Increase { .. }) => {
                memory.on_refused(group, now);
            }
            // The registry backs off from a group that does not grow, and waits to see whether it does.
            Effect::Failed(_) | Effect::Unknown | Effect::Stale => {}
        }
        self.touched.insert(group.clone());
        if matches!(effect, Effect::Failed(_) | Effect::Unknown) {
            // A provider that does not answer for a group is waited for once.
            self.queue.retain(|it| !matches!(it, Action::Call(call) if call.group() == group));
        }
        match call {
            Call::Increase { .. } if effect.may_have_happened() => {
                self.grown.insert(group.clone());
                memory.times.added = memory.times.added.max(Some(now));
            }
            // Without an answer nothing is fixed yet, and others must not wait for one that may never
            // come.
            Call::Decrease { .. } => self.has_fixed_sizes |= *effect == Effect::Done,
            Call::Increase { .. } | Call::Delete { .. } => {}
        }
    }

    /// Groups whose size it has changed, or tried to.
    #[must_use]
    pub fn touched(&self) -> &BTreeSet<GroupId> {
        &self.touched
    }

    /// What has been found out and done so far.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// All of it, once it has ended.
    #[must_use]
    pub fn into_account(self) -> Account {
        self.account
    }

    fn end(&mut self, ending: Ending) {
        self.account.ending = Some(ending);
        self.stage = Stage::Ended;
    }

    /// Steps 5 to 7.
    fn begin_scale_up(&mut self, registry: &Registry, memory: &mut Memory) {
        let Inputs { now, seed, facts, world, config } = self.inputs;
        let placeholders = starting(registry, now);
        let mut snapshot = Snapshot::new(world, registry, &placeholders, config);
        for (node, error) in &snapshot.unclear {
            self.account.reports.push(format!("node {node} cannot be read: {error}"));
        }
        snapshot.expect(world, &memory.drains, config);
        memory.samples.extend(samples(world, &snapshot, registry, (now, config)));
        let groups: Vec<_> = registry.groups().cloned().collect();
        memory.samples.retain(|group, _| groups.contains(group));
        let templates: Templates =
            templates(&mut snapshot.cluster, world, &memory.samples, (&groups, config));
        let mut pending = pending::sift(world, &mut snapshot, now, config);
        if world.nodes.is_empty() && !config.scale_up.scales_from_zero {
            pending.waiting.clear();
        }
        let scene = scale_up::Scene {
            now,
            seed,
            config,
            world,
            facts,
            registry,
            memory,
            templates: &templates,
            touched: &self.touched,
        };
        let scale_up = ScaleUp::begin(scene, &mut snapshot, pending);
        self.stage = Stage::ScalingUp(Box::new(Thought { snapshot }), Box::new(scale_up));
    }

    fn end_scale_up(&mut self, mut thought: Box<Thought<'a>>, scale_up: ScaleUp<'a>) {
        // From here on it is thought about the cluster with those pods; this one is only in its way.
        thought.snapshot.cluster = Cluster::new(&BTreeMap::new());
        let Planned { plan, groups, pods, filled, seated, totals } = scale_up.finish();
        (self.account.groups, self.account.pods) = (groups, pods);
        self.queue.extend(plan.iter().flat_map(increases));
        self.account.scale_up = plan;
        let filled = Filled { cluster: filled, seated, totals };
        self.stage = Stage::Growing(thought, Box::new(filled));
    }

    /// Step 8.
    fn begin_scale_down(
        &mut self,
        thought: Box<Thought<'a>>,
        filled: Filled<'a>,
        registry: &Registry,
        memory: &mut Memory,
    ) {
        let now = self.inputs.now;
        memory.unremovable.retain(|_, known| now < known.until);
        let scene = self.inputs.removal_scene(registry, memory);
        let Filled { cluster, seated, totals } = filled;
        let scale_down = ScaleDown::begin(scene, &thought.snapshot, cluster.fork(), &seated);
        self.stage = Stage::ScalingDown(thought, Box::new(totals), cluster, Box::new(scale_down));
    }

    /// Step 9.
    fn end_scale_down(
        &mut self,
        thought: &Thought<'a>,
        (scale_down, totals, filled): (ScaleDown<'a>, Totals, Cluster),
        registry: &mut Registry,
        memory: &mut Memory,
    ) {
        let Inputs { now, facts, config, .. } = self.inputs;
        let found = scale_down.finish();
        let unneeded: BTreeSet<NodeName> = found.unneeded.keys().cloned().collect();
        registry.mark_unneeded(now, &unneeded);
        let until = now.saturating_add(config.scale_down.unremovable_recheck);
        let until = until.unwrap_or(Timestamp::MAX);
        for name in &found.unremovable {
            let why = found.kept[name].clone();
            memory.unremovable.insert(name.clone(), Unremovable { until, why });
        }
        let candidates: BTreeSet<_> =
            unneeded.union(&found.unready.keys().cloned().collect()).cloned().collect();
        if config.scale_down.is_enabled {
            let scene = self.inputs.removal_scene(registry, memory);
            let chooser = Chooser { scene, facts, touched: &self.touched, totals };
            let destinations = thought.snapshot.ready.values().copied().collect();
            let choice = chooser.choose(&found, filled, destinations);
            self.queue.extend(marks(scene, &candidates));
            self.account.kept.extend(choice.kept);
            self.account.cooldown = choice.cooldown;
            self.account.removals = choice.orders;
        }
        tell::scale_down(&mut self.account);
        for order in &self.account.removals {
            memory.drains.begin(order.clone(), now);
        }
        self.account.kept.extend(found.kept);
        self.account.unneeded = candidates;
        self.stage = Stage::Marking;
    }
}

// === impl Inputs ===

impl<'a> Inputs<'a> {
    fn removal_scene<'b>(
        &self,
        registry: &'b Registry,
        memory: &'b Memory,
    ) -> scale_down::Scene<'a, 'b> {
        let Self { now, config, world, .. } = *self;
        scale_down::Scene { now, config, world, registry, memory }
    }

    /// Whether a group's size is ours to change, and its provider did not refuse a moment ago.
    fn may_resize(&self, group: &GroupId, memory: &Memory) -> bool {
        !self.world.is_zero_or_max(group) && memory.retry(group, self.now).is_none()
    }

    /// The least target that a deletion may leave.
    fn floor(&self, group: &GroupId, registry: &Registry) -> u32 {
        if registry.config().removes_unregistered_below_min {
            return 0;
        }
        let listed = self.facts.groups.iter().flatten().find(|listed| listed.id == *group);
        listed.and_then(|listed| u32::try_from(listed.min).ok()).unwrap_or(0)
    }

    /// How many machines a group has that are not on their way out.
    fn listed(&self, group: &GroupId) -> u32 {
        let listed = self.facts.groups.iter().flatten().find(|listed| listed.id == *group);
        let instances = listed.and_then(|listed| listed.instances.as_ref().ok());
        let stays = |state: Option<InstanceState>| state != Some(InstanceState::Deleting);
        let count = instances.into_iter().flatten().filter(|it| stays(it.state)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

fn increases(plan: &ScaleUpPlan) -> impl Iterator<Item = Action> {
    plan.increases.iter().map(|increase| {
        let group = increase.group.clone();
        let (delta, target) = (increase.delta, increase.target);
        Action::Call(Call::Increase { group, delta, target })
    })
}
