//! The shell that the cores are written for, in small: reads, carries out, saves, and dies when told.

use std::num::NonZeroU32;
use std::sync::Arc;

use autoscaler::core::template::node_of;
use autoscaler::core::{
    Action, Call, Command, Effect, End, Evicted, GroupSettings, Inputs, Iteration, Lift, Machine,
    Memory, Next, Reply, World, names,
};
use autoscaler::provider::{self, NodeRef, TemplateTaint};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Node;
use registry::{
    Condition, Facts, Fault, Group, GroupId, Membership, NodeName, Notices, Options, Outcome,
    Registry, RemovalReason, Step, Taint,
};
use simcloud::core::{Refusal, Template};

use super::kubernetes::ready;
use super::{Sim, objects};

/// Steps of thought between two looks at the clock.
const STEPS: usize = 100;

/// What outlives the process.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    registry: Vec<u8>,
    memory: Vec<u8>,
}

/// The process is no more.
#[derive(Debug)]
pub(crate) struct Killed;

// === impl Sim ===

impl Sim {
    /// One iteration of the autoscaler, and a step of its removals; or death and rebirth.
    pub(crate) fn iterate(&mut self) {
        if self.restarts_always {
            self.restart();
        }
        let ended = self.run_iteration().and_then(|()| self.step_drains());
        if ended.is_err() {
            self.restart();
        }
    }

    /// A new process finds what was saved.
    pub(crate) fn restart(&mut self) {
        let saved = self.saved.clone().filter(|_| !self.loses_state);
        let restored = saved.as_ref().map(|saved| {
            let registry = Registry::restore(self.rules.clone(), &saved.registry, self.now);
            (registry.unwrap(), Memory::restore(&saved.memory).unwrap())
        });
        (self.registry, self.memory) = restored
            .unwrap_or_else(|| (Registry::rebuild(self.rules.clone()), Memory::lost(self.now)));
    }

    /// Where the process may die.
    fn point(&mut self) -> Result<(), Killed> {
        self.points += 1;
        if self.dies_at == Some(self.points) { Err(Killed) } else { Ok(()) }
    }

    /// False if somebody else has become the leader.
    fn save(&mut self) -> Result<bool, Killed> {
        self.point()?;
        if self.is_fenced {
            return Ok(false);
        }
        self.saved = Some(Saved { registry: self.registry.save(), memory: self.memory.save() });
        Ok(true)
    }

    fn run_iteration(&mut self) -> Result<(), Killed> {
        if self.cloud.refresh(self.now).is_err() {
            return Ok(());
        }
        let (facts, world) = (self.facts(), self.world());
        let config = self.config.clone();
        let inputs = Inputs {
            now: self.now,
            seed: self.seed,
            facts: &facts,
            world: &world,
            config: &config,
        };
        let mut iteration = Iteration::begin(inputs, &mut self.registry, &self.memory);
        self.tell(&iteration.account().notices.clone());
        loop {
            match iteration.next(&mut self.registry, &mut self.memory, STEPS) {
                Next::Act(action) => {
                    let effect = self.carry_out(&action)?;
                    iteration.on_effect(&effect, &mut self.memory);
                }
                Next::Working => {}
                Next::Ended => break,
            }
        }
        self.account = iteration.into_account();
        for event in self.account.events.clone() {
            self.note_event(format!("{} {:?}: {}", event.reason, event.about, event.message));
        }
        self.save()?;
        Ok(())
    }

    fn step_drains(&mut self) -> Result<(), Killed> {
        // What waits for nothing but an answer goes on in the same tick.
        for _ in 0..3 {
            let world = self.world();
            let sights = (&world, &self.registry);
            let (commands, ends) = self.memory.drains.step(self.now, sights, &self.config);
            for end in ends {
                self.memory.on_drain_end(&end, self.now);
            }
            if commands.is_empty() {
                return Ok(());
            }
            for command in commands {
                self.obey(command)?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<(), Killed> {
        let (node, reply) = match command {
            Command::Taint { node, value, cordons } => {
                self.point()?;
                self.note(format!("taint {node}"));
                self.taint(&node, value, cordons);
                (node, Reply::Tainted(Effect::Done))
            }
            Command::Evict { node, pod, .. } => {
                self.point()?;
                let is_let = self.kube.evict(&pod, self.now);
                if is_let {
                    self.note(format!("evict {pod}"));
                }
                let outcome = if is_let { Evicted::Accepted } else { Evicted::Refused };
                (node, Reply::Evicted { pod, outcome })
            }
            Command::Delete { node, call } => (node, Reply::Deleted(self.call(&call)?)),
            Command::Lift(lift) => {
                let node = lift.node.clone();
                (node, Reply::Lifted(self.lift(&lift)?))
            }
        };
        if let Some(End::RolledBack { order, why }) =
            self.memory.on_drain_reply(&node, reply, self.now)
        {
            self.note_event(format!("ScaleDownFailed {}: {why}", order.node));
        }
        Ok(())
    }

    fn taint(&mut self, node: &NodeName, value: i64, cordons: bool) {
        let Some(node) = self.kube.nodes.get_mut(node) else { return };
        let taint = objects::taint(names::TO_BE_DELETED, &value.to_string(), "NoSchedule");
        objects::taints(node).push(taint);
        if cordons {
            node.spec.get_or_insert_default().unschedulable = Some(true);
            let annotations = node.metadata.annotations.get_or_insert_default();
            annotations.insert(names::CORDONED.to_owned(), "true".to_owned());
        }
    }

    fn lift(&mut self, lift: &Lift) -> Result<Effect, Killed> {
        self.point()?;
        self.note(format!("lift {}: {}", lift.node, lift.why));
        if let Some(node) = self.kube.nodes.get_mut(&lift.node) {
            objects::taints(node).retain(|taint| taint.key != names::TO_BE_DELETED);
            if lift.uncordons {
                node.spec.get_or_insert_default().unschedulable = None;
                let annotations = node.metadata.annotations.get_or_insert_default();
                annotations.remove(names::CORDONED);
            }
        }
        Ok(Effect::Done)
    }

    fn carry_out(&mut self, action: &Action) -> Result<Effect, Killed> {
        match action {
            Action::Call(call) => self.call(call),
            Action::Lift(lift) => self.lift(lift),
            Action::Mark { node, value } => {
                self.point()?;
                if let Some(node) = self.kube.nodes.get_mut(node) {
                    let value = value.to_string();
                    let taint =
                        objects::taint(names::DELETION_CANDIDATE, &value, "PreferNoSchedule");
                    objects::taints(node).push(taint);
                }
                Ok(Effect::Done)
            }
            Action::Unmark { node } => {
                self.point()?;
                if let Some(node) = self.kube.nodes.get_mut(node) {
                    objects::taints(node).retain(|it| it.key != names::DELETION_CANDIDATE);
                }
                Ok(Effect::Done)
            }
        }
    }

    /// As the contract has it: read, record, save, call, record.
    fn call(&mut self, call: &Call) -> Result<Effect, Killed> {
        let Ok(read) = self.cloud.target(self.now, call.group()) else {
            return Ok(Effect::Failed("the target is not known".to_owned()));
        };
        let Ok(intent) = call.intent(read) else { return Ok(Effect::Stale) };
        let requested = Outcome { action: intent.clone(), step: Step::Requested };
        if let Err(error) = self.registry.record(self.now, &requested) {
            return Ok(Effect::Failed(error.to_string()));
        }
        if !self.save()? {
            return Ok(Effect::Failed("somebody else leads".to_owned()));
        }
        self.point()?;
        let answer = self.ask(call);
        if !matches!(answer, Err(Refusal::Failed { .. } | Refusal::Unimplemented)) {
            self.note(words(call));
        }
        self.point()?;
        let effect = match answer {
            Ok(()) => Effect::Done,
            Err(Refusal::NoAnswer) => Effect::Unknown,
            Err(refusal) => Effect::Failed(refusal.to_string()),
        };
        if let Some(outcome) = effect.outcome(intent) {
            let notices = self.registry.record(self.now, &outcome).unwrap_or_default();
            self.tell(&notices);
        }
        Ok(effect)
    }

    fn ask(&mut self, call: &Call) -> Result<(), Refusal> {
        let (now, group) = (self.now, call.group());
        match call {
            Call::Increase { delta, .. } => {
                self.cloud.increase(now, group, NonZeroU32::new(*delta).unwrap())
            }
            Call::Decrease { delta, .. } => {
                self.cloud.decrease(now, group, NonZeroU32::new(*delta).unwrap())
            }
            Call::Delete { machine, .. } => {
                let Machine { instance, node, reason } = machine;
                let named = match (node, reason) {
                    (Some(node), _) => NodeRef {
                        name: node.clone(),
                        provider_id: instance.0.clone(),
                        labels: Default::default(),
                        annotations: Default::default(),
                    },
                    (None, RemovalReason::CreateFailed) => NodeRef::create_failed(instance),
                    (None, _) => NodeRef::unregistered(instance),
                };
                self.cloud.delete(now, group, &[named])
            }
        }
    }

    fn tell(&mut self, notices: &Notices) {
        for event in &notices.events {
            self.note_event(format!("{} {}", event.reason, event.message));
        }
        for failure in &notices.failures {
            self.note_event(format!(
                "failure {} {} {}",
                failure.group, failure.code, failure.delta
            ));
        }
    }

    pub(crate) fn facts(&mut self) -> Facts {
        let now = self.now;
        let nodes: Vec<_> = self.kube.nodes.clone().into_iter().collect();
        let nodes = nodes.into_iter().map(|(name, node)| self.fact(name, &node)).collect();
        let groups = self.cloud.groups(now).map_err(fault).map(|listed| {
            let group = |listed: provider::ListedGroup| {
                let id = listed.id;
                let times = self.cloud.options(now, &id).unwrap_or_default();
                let span = |span: Option<std::time::Duration>| {
                    span.map(|span| SignedDuration::try_from(span).unwrap())
                };
                Group {
                    min: listed.min,
                    max: listed.max,
                    exists: true,
                    options: Options {
                        unneeded: span(times.unneeded),
                        unready: span(times.unready),
                        provision: span(times.provision),
                        startup: span(times.startup),
                    },
                    target: self.cloud.target(now, &id).map(i64::from).map_err(fault),
                    instances: self.cloud.instances(now, &id).map_err(fault),
                    id,
                }
            };
            listed.into_iter().map(group).collect()
        });
        Facts { nodes, groups }
    }

    fn fact(&mut self, name: NodeName, node: &Node) -> registry::Node {
        let spec = node.spec.clone().unwrap_or_default();
        let (status, since) = ready(node);
        let named = NodeRef {
            name: name.clone(),
            provider_id: spec.provider_id.clone().unwrap_or_default(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            annotations: node.metadata.annotations.clone().unwrap_or_default(),
        };
        let membership = match self.cloud.group_of(self.now, &named) {
            Ok(Some(group)) => Membership::Group(group),
            Ok(None) => Membership::Unmanaged,
            Err(_) => Membership::Unknown,
        };
        let taint = |taint: k8s_openapi::api::core::v1::Taint| Taint {
            key: taint.key,
            value: taint.value.unwrap_or_default(),
        };
        let condition = Condition { status, last_transition: Some(since) };
        registry::Node {
            created: node.metadata.creation_timestamp.as_ref().unwrap().0,
            name,
            provider_id: named.provider_id,
            conditions: [("Ready".to_owned(), condition)].into(),
            taints: spec.taints.unwrap_or_default().into_iter().map(taint).collect(),
            labels: named.labels,
            annotations: named.annotations,
            missing_resources: Default::default(),
            membership,
        }
    }

    pub(crate) fn world(&mut self) -> World {
        let mut world = self.kube.world();
        let groups: Vec<GroupId> =
            self.cloud.scenario().groups.iter().map(|group| group.id.clone()).collect();
        for id in groups {
            let template = self.cloud.template(self.now, &id).ok().flatten();
            let template = template.map(|template| Arc::new(node_of(&provided(&template))));
            world.groups.insert(id, GroupSettings { template, ..GroupSettings::default() });
        }
        world
    }
}

fn provided(template: &Template) -> provider::Template {
    let taint = |taint: &simcloud::scenario::Taint| TemplateTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.clone(),
    };
    provider::Template {
        labels: template.labels(),
        annotations: Default::default(),
        taints: template.group.taints.iter().map(taint).collect(),
        is_unschedulable: false,
        capacity: template.group.capacity.clone(),
        allocatable: template.group.capacity.clone(),
    }
}

fn fault(refusal: Refusal) -> Fault {
    Fault(refusal.to_string())
}

fn words(call: &Call) -> String {
    match call {
        Call::Increase { group, delta, .. } => format!("increase {group} {delta}"),
        Call::Decrease { group, delta, .. } => format!("decrease {group} {delta}"),
        Call::Delete { machine, .. } => {
            format!("delete {} {:?}", machine.instance.last_segment(), machine.reason)
        }
    }
}
