//! The removal of one node, from its taint to the provider's call, or back.
//!
//! A [`Drain`] is stepped with what is seen and says what to do; whoever does it answers with
//! [`Drains::on_reply`]. Nothing is asked for twice before it was answered. What a crash leaves behind
//! is told by `leftovers`: a node that bears the taint, and that nobody removes, is made an ordinary
//! one again, unless its machine was already handed to the provider, which the registry remembers.

mod evict;
mod leftovers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fit::Budgets;
use fit::drain::Surroundings;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use registry::{GroupId, NodeName, Registry};
use serde::{Deserialize, Serialize};

use super::action::{Call, Effect, Lift, Machine};
use super::config::Config;
use super::kept::KeptPod;
use super::names::CORDONED;
use super::scale_down::Order;
use super::world::{PodKey, World, bound_to, node_annotation, sorted};

pub(super) use leftovers::leftovers;

use evict::Eviction;

/// How long a pod may take beyond its grace.
pub const GRACE_ALLOWANCE: Duration = Duration::from_secs(30);

/// All removals under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drains(BTreeMap<NodeName, Drain>);

/// The removal of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    pub order: Order,
    pub began: Timestamp,
    pub phase: Phase,
    /// Asked for and not answered: nothing else is asked for meanwhile, but for evictions.
    is_waiting: bool,
}

/// How far a removal is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Waits for the taint to be written.
    Tainting,
    /// Waits for pods that the scheduler was about to place.
    Settling { since: Timestamp },
    /// Waits for all pods to go.
    Evicting(Eviction),
    /// Waits for the provider's answer.
    HandingOver,
    /// Waits for the taint to be lifted: it did not work out.
    RollingBack { why: String },
}

/// What is to be done for a removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// `ToBeDeleted…=<value>:NoSchedule`; a cordoned node also gets the annotation that we did it.
    Taint {
        node: NodeName,
        value: i64,
        cordons: bool,
    },
    Evict {
        node: NodeName,
        pod: PodKey,
        grace_secs: i64,
    },
    /// As any other call: target read, intent recorded and saved, then called.
    Delete {
        node: NodeName,
        call: Call,
    },
    Lift(Lift),
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    Tainted(Effect),
    Evicted {
        pod: PodKey,
        outcome: Evicted,
    },
    Deleted(Effect),
    /// The provider was not asked: it did not do what it was asked for this group just before, or the
    /// group's size was changed in the same iteration.
    Postponed,
    Lifted(Effect),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Evicted {
    Accepted,
    /// For want of budget, or by an error: asked again.
    Refused,
    /// It is not there.
    Gone,
}

/// How a removal ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The provider has it, or may have it if it did not answer; the registry waits for it.
    HandedOver {
        order: Order,
        is_confirmed: bool,
    },
    RolledBack {
        order: Order,
        why: String,
    },
    /// The Node is gone.
    Vanished(Order),
}

/// What a removal looks at.
pub(super) struct Sight<'a> {
    pub(super) now: Timestamp,
    pub(super) config: &'a Config,
    pub(super) node: &'a Node,
    /// Those on the node.
    pub(super) pods: &'a [&'a Arc<KeptPod>],
    pub(super) surroundings: Surroundings<'a>,
}

// === impl Phase ===

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tainting => f.write_str("its taint is being written"),
            Self::Settling { .. } => f.write_str("waits for pods that were about to come"),
            Self::Evicting(eviction) => write!(f, "waits for pods to go: {eviction}"),
            Self::HandingOver => f.write_str("its machine is being handed to the provider"),
            Self::RollingBack { why } => write!(f, "it is to stay: {why}"),
        }
    }
}

// === impl Drains ===

impl Drains {
    pub(super) fn begin(&mut self, order: Order, now: Timestamp) {
        let node = order.node.clone();
        let drain = Drain { order, began: now, phase: Phase::Tainting, is_waiting: false };
        self.0.insert(node, drain);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Drain> {
        self.0.values()
    }

    #[must_use]
    pub fn has(&self, node: &NodeName) -> bool {
        self.0.contains_key(node)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn group_of(&self, node: &NodeName) -> Option<&GroupId> {
        self.0.get(node).map(|drain| &drain.order.group)
    }

    /// How many of them have pods that go first.
    pub(super) fn with_pods(&self) -> usize {
        self.0.values().filter(|drain| !drain.order.is_empty).count()
    }

    pub(super) fn in_group(&self, group: &GroupId) -> u32 {
        let of_group = self.0.values().filter(|drain| drain.order.group == *group);
        u32::try_from(of_group.count()).unwrap_or(u32::MAX)
    }

    /// Whether pods of the node are being moved away.
    pub(super) fn has_pods_to_go(&self, node: &str) -> bool {
        let drain = self.0.get(node);
        drain.is_some_and(|it| !matches!(it.phase, Phase::RollingBack { .. }))
    }

    /// What is to be done now, and what is over. To be called often: the delays here are of seconds.
    pub fn step(
        &mut self,
        now: Timestamp,
        (world, registry): (&World, &Registry),
        config: &Config,
    ) -> (Vec<Command>, Vec<End>) {
        let budgets = Budgets::new(&world.budgets);
        let mut pods: BTreeMap<&str, Vec<&Arc<KeptPod>>> = BTreeMap::new();
        let is_here =
            |pod: &&Arc<KeptPod>| bound_to(pod).is_some_and(|node| self.0.contains_key(node));
        for pod in sorted(world.pods.iter().filter(is_here)) {
            pods.entry(bound_to(pod).unwrap_or_default()).or_default().push(pod);
        }
        let (mut commands, mut ends) = (Vec::new(), Vec::new());
        let halt = registry.cluster_health().is_unhealthy;
        self.0.retain(|name, drain| {
            let Some(node) = world.nodes.get(name) else {
                ends.push(End::Vanished(drain.order.clone()));
                return false;
            };
            if halt {
                drain.give_up("the cluster is unhealthy");
            }
            // Neither its use nor whether there is room for its pods was asked, since it was lost.
            if drain.order.is_lost() && is_ready(registry, name) {
                drain.give_up("it is Ready again");
            }
            let surroundings = Surroundings {
                now,
                options: &config.scale_down.drain_rules,
                controllers: &world.controllers,
                budgets: &budgets,
            };
            let pods = pods.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            commands.extend(drain.step(&Sight { now, config, node, pods, surroundings }));
            true
        });
        (commands, ends)
    }

    /// Takes in what came of a command for a node, and says if its removal is over.
    pub fn on_reply(&mut self, node: &NodeName, reply: Reply, now: Timestamp) -> Option<End> {
        let drain = self.0.get_mut(node)?;
        let end = drain.on_reply(reply, now);
        if end.is_some() {
            self.0.remove(node);
        }
        end
    }
}

/// Whether it was when it was last looked at, but for its taint.
fn is_ready(registry: &Registry, node: &NodeName) -> bool {
    registry.node(node).is_some_and(|view| view.readiness.is_ready())
}

// === impl Drain ===

impl Drain {
    fn step(&mut self, sight: &Sight<'_>) -> Vec<Command> {
        if self.is_waiting {
            return Vec::new();
        }
        let limit = sight.config.drain_timeout();
        if self.began.checked_add(limit).is_ok_and(|end| end <= sight.now) {
            self.give_up("it took too long");
        }
        match &mut self.phase {
            Phase::Tainting => {
                self.is_waiting = true;
                vec![self.taint(sight)]
            }
            Phase::Settling { since } => {
                let delay = sight.config.drain.delay_after_taint;
                let is_over = since.checked_add(delay).is_ok_and(|end| end <= sight.now);
                if is_over { self.begin_evicting(sight) } else { Vec::new() }
            }
            Phase::Evicting(_) => self.evict(sight),
            Phase::HandingOver => Vec::new(),
            Phase::RollingBack { .. } => self.lift(sight).into_iter().collect(),
        }
    }

    fn taint(&self, sight: &Sight<'_>) -> Command {
        let is_cordoned = sight.node.spec.as_ref().and_then(|spec| spec.unschedulable);
        Command::Taint {
            node: self.order.node.clone(),
            value: sight.now.as_second(),
            cordons: sight.config.drain.cordons && is_cordoned != Some(true),
        }
    }

    fn begin_evicting(&mut self, sight: &Sight<'_>) -> Vec<Command> {
        self.phase = Phase::Evicting(Eviction::new(sight, &self.order));
        self.evict(sight)
    }

    fn evict(&mut self, sight: &Sight<'_>) -> Vec<Command> {
        let Phase::Evicting(eviction) = &mut self.phase else { return Vec::new() };
        let node = self.order.node.clone();
        match eviction.step(sight, &self.order) {
            Ok(wanted) if wanted.is_empty() && eviction.is_over() => self.hand_over(),
            Ok(wanted) => wanted
                .into_iter()
                .map(|(pod, grace_secs)| Command::Evict { node: node.clone(), pod, grace_secs })
                .collect(),
            Err(why) => {
                self.give_up(&why);
                self.lift(sight).into_iter().collect()
            }
        }
    }

    fn hand_over(&mut self) -> Vec<Command> {
        self.phase = Phase::HandingOver;
        self.is_waiting = true;
        let Order { node, group, instance, reason, floor, .. } = self.order.clone();
        let machine = Machine { instance, node: Some(node.clone()), reason };
        vec![Command::Delete { node, call: Call::Delete { group, machine, floor } }]
    }

    fn lift(&mut self, sight: &Sight<'_>) -> Option<Command> {
        let Phase::RollingBack { why } = &self.phase else { return None };
        self.is_waiting = true;
        let uncordons = node_annotation(sight.node, CORDONED).is_some();
        Some(Command::Lift(Lift { node: self.order.node.clone(), uncordons, why: why.clone() }))
    }

    /// What is with the provider cannot be taken back.
    fn give_up(&mut self, why: &str) {
        if !matches!(self.phase, Phase::HandingOver | Phase::RollingBack { .. }) {
            self.phase = Phase::RollingBack { why: why.to_owned() };
        }
    }

    fn on_reply(&mut self, reply: Reply, now: Timestamp) -> Option<End> {
        let order = || self.order.clone();
        match reply {
            Reply::Evicted { pod, outcome } => {
                if let Phase::Evicting(eviction) = &mut self.phase {
                    eviction.on_reply(&pod, outcome, now);
                }
                return None;
            }
            Reply::Tainted(Effect::Done) if self.phase == Phase::Tainting => {
                self.phase = Phase::Settling { since: now };
            }
            // It may bear the taint all the same, so the way back is gone.
            Reply::Tainted(effect) => self.give_up(&format!("it could not be tainted: {effect:?}")),
            Reply::Deleted(effect) if effect.may_have_happened() => {
                let is_confirmed = effect == Effect::Done;
                return Some(End::HandedOver { order: order(), is_confirmed });
            }
            Reply::Deleted(Effect::Failed(message)) => {
                self.phase = Phase::RollingBack { why: message };
            }
            Reply::Deleted(_) => {
                let why = "its group has changed meanwhile".to_owned();
                self.phase = Phase::RollingBack { why };
            }
            // Pods may have come meanwhile, so they are looked at once more.
            Reply::Postponed => self.phase = Phase::Settling { since: now },
            Reply::Lifted(Effect::Done) => {
                let Phase::RollingBack { why } = &self.phase else { return None };
                return Some(End::RolledBack { order: order(), why: why.clone() });
            }
            // Tried again with the next step.
            Reply::Lifted(_) => {}
        }
        self.is_waiting = false;
        None
    }
}
