//! A small cloud with a cluster on it. What happens is drawn from few events, so that they meet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use proptest::{collection::vec, prelude::*, sample::select};
use registry::{
    Action, Condition, ConditionStatus, Decision, ErrorClass, ErrorInfo, Facts, Fault, Group,
    GroupId, Instance, InstanceState, Membership, Node, Options, Outcome, Registry, Step, Taint,
};

use crate::scene::beginning;

pub(super) const GROUPS: [&str; 2] = ["a", "b"];

/// Something that happens. Numbers pick a group or a machine, whichever there are.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Time passes, and the registry looks.
    Look {
        after_secs: u32,
    },
    /// We ask for more; the provider answers, and may do it or not.
    Ask {
        group: usize,
        delta: u32,
        step: Step,
        is_done: bool,
    },
    /// Others set a target.
    Resize {
        group: usize,
        target: u32,
    },
    /// The provider makes what is asked for, or says why it cannot.
    Create {
        group: usize,
        fails: bool,
    },
    Register(usize),
    TurnReady(usize),
    TurnUnready(usize),
    Taint(usize),
    Deleting(usize),
    Vanish(usize),
    NodeGoes(usize),
    /// From now on the group's sizes cannot be read, or can again.
    Fail {
        group: usize,
        fails: bool,
    },
    /// What was decided last is carried out.
    CarryOut {
        step: Step,
        is_done: bool,
    },
}

#[derive(Clone, Debug, Default)]
struct Machine {
    group: usize,
    id: String,
    is_failed: bool,
    is_deleting: bool,
    node: Option<Life>,
    is_gone: bool,
}

/// A Node object.
#[derive(Clone, Debug)]
struct Life {
    created: Timestamp,
    is_ready: bool,
    since: Timestamp,
    is_tainted: bool,
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) now: Timestamp,
    /// What the registry decided when it looked last.
    pub(super) decided: Vec<Decision>,
    /// Whether intents are recorded before their calls, as they must be.
    pub(super) records_intents: bool,
    targets: [u32; 2],
    fails: [bool; 2],
    machines: Vec<Machine>,
    /// Of deletions that were asked for and not refused.
    pub(super) deleted: BTreeMap<String, Timestamp>,
}

// === impl World ===

impl Default for World {
    fn default() -> Self {
        Self {
            now: beginning(),
            decided: Vec::new(),
            records_intents: true,
            targets: [1, 1],
            fails: [false, false],
            machines: Vec::new(),
            deleted: BTreeMap::new(),
        }
    }
}

impl World {
    pub(super) fn happen(&mut self, event: &Event, registry: &mut Registry) {
        match event {
            Event::Look { after_secs } => self.now += Duration::from_secs(u64::from(*after_secs)),
            Event::Ask { group, delta, step, is_done } => {
                let group = group % 2;
                let baseline = self.targets[group];
                let action =
                    Action::Increase { group: GROUPS[group].into(), delta: *delta, baseline };
                self.call(registry, action, step, *is_done);
            }
            Event::Resize { group, target } => self.targets[group % 2] = *target,
            Event::Create { group, fails } => self.create(group % 2, *fails),
            Event::Fail { group, fails } => self.fails[group % 2] = *fails,
            Event::CarryOut { step, is_done } => self.carry_out(registry, step, *is_done),
            Event::Register(which) => self.register(*which),
            Event::TurnReady(which) => self.turn(*which, true),
            Event::TurnUnready(which) => self.turn(*which, false),
            Event::Taint(which) => self.with(*which, |machine| {
                machine.node.iter_mut().for_each(|node| node.is_tainted = true);
            }),
            Event::Deleting(which) => self.with(*which, |machine| machine.is_deleting = true),
            Event::Vanish(which) => self.with(*which, |machine| machine.is_gone = true),
            Event::NodeGoes(which) => self.with(*which, |machine| machine.node = None),
        }
    }

    /// The group of the machine that a number picks.
    pub(super) fn group_of(&self, which: usize) -> Option<&'static str> {
        let machine = self.machines.get(which % self.machines.len().max(1))?;
        Some(GROUPS[machine.group])
    }

    fn with(&mut self, which: usize, change: impl FnOnce(&mut Machine)) {
        let count = self.machines.len().max(1);
        if let Some(machine) = self.machines.get_mut(which % count) {
            change(machine);
        }
    }

    fn create(&mut self, group: usize, is_failed: bool) {
        let is_here = |machine: &&Machine| machine.group == group && !machine.is_gone;
        let have = self.machines.iter().filter(is_here).count();
        if have < usize::try_from(self.targets[group]).expect("small") {
            let id = format!("{}/{}", GROUPS[group], self.machines.len());
            self.machines.push(Machine { group, id, is_failed, ..Machine::default() });
        }
    }

    fn register(&mut self, which: usize) {
        let (created, since) = (self.now, self.now);
        self.with(which, |machine| {
            if machine.node.is_none() && !machine.is_gone && !machine.is_failed {
                machine.node = Some(Life { created, is_ready: false, since, is_tainted: false });
            }
        });
    }

    /// Nodes do not blink between two looks: then only their conditions' times would tell.
    fn turn(&mut self, which: usize, is_ready: bool) {
        let now = self.now;
        let turns = |node: &&mut Life| node.is_ready != is_ready && node.since < now;
        self.with(which, |machine| {
            if let Some(node) = machine.node.as_mut().filter(turns) {
                (node.is_ready, node.since) = (is_ready, now);
            }
        });
    }

    fn carry_out(&mut self, registry: &mut Registry, step: &Step, is_done: bool) {
        for decision in std::mem::take(&mut self.decided) {
            let action = match decision {
                Decision::RemoveInstance { group, instance, .. } => {
                    Action::Delete { group, instance }
                }
                Decision::ReduceTarget { group, delta } => Action::Decrease { group, delta },
                Decision::Halt(_) | Decision::LiftTaint { .. } => continue,
            };
            self.call(registry, action, step, is_done);
        }
    }

    /// The intent, the call with or without its effect, and what is known of it.
    fn call(&mut self, registry: &mut Registry, action: Action, step: &Step, is_done: bool) {
        if self.records_intents {
            let intent = Outcome { action: action.clone(), step: Step::Requested };
            registry.record(self.now, &intent).expect("there is room");
        }
        let is_refused = matches!(step, Step::Failed { .. });
        if is_done && !is_refused {
            self.effect(&action);
        }
        if let Action::Delete { instance, .. } = &action {
            match is_refused {
                true => _ = self.deleted.remove(instance.as_str()),
                false => _ = self.deleted.insert(instance.to_string(), self.now),
            }
        }
        registry.record(self.now, &Outcome { action, step: step.clone() }).expect("there is room");
    }

    fn effect(&mut self, action: &Action) {
        let place = |group: &GroupId| usize::from(group.as_str() == GROUPS[1]);
        match action {
            Action::Increase { group, delta, .. } => self.targets[place(group)] += delta,
            Action::Decrease { group, delta } => {
                let target = &mut self.targets[place(group)];
                *target = target.saturating_sub(*delta);
            }
            Action::Delete { group, instance } => {
                let target = &mut self.targets[place(group)];
                *target = target.saturating_sub(1);
                let mut machines = self.machines.iter_mut();
                let machine = machines.find(|machine| machine.id == instance.as_str());
                machine.into_iter().for_each(|machine| machine.is_gone = true);
            }
        }
    }

    /// How many machines of a group are listed and stay.
    pub(super) fn staying(&self, group: &GroupId) -> u32 {
        let is_one = |machine: &&Machine| {
            GROUPS[machine.group] == group.as_str() && !machine.is_gone && !machine.is_deleting
        };
        u32::try_from(self.machines.iter().filter(is_one).count()).expect("small")
    }

    pub(super) fn target(&self, group: &GroupId) -> u32 {
        self.targets[usize::from(group.as_str() == GROUPS[1])]
    }

    pub(super) fn facts(&self) -> Facts {
        let nodes =
            self.machines.iter().filter_map(|machine| Some(node(machine, machine.node.as_ref()?)));
        let groups = (0..GROUPS.len()).map(|group| self.group(group));
        Facts { nodes: nodes.collect(), groups: Ok(groups.collect()) }
    }

    fn group(&self, group: usize) -> Group {
        let own = self.machines.iter().filter(|machine| machine.group == group && !machine.is_gone);
        let instances = own.map(instance).collect();
        let fault = || Fault("unavailable".to_owned());
        Group {
            id: GROUPS[group].into(),
            min: 0,
            max: 20,
            exists: true,
            options: Options::default(),
            target: Ok(i64::from(self.targets[group])),
            instances: if self.fails[group] { Err(fault()) } else { Ok(instances) },
        }
    }
}

fn instance(machine: &Machine) -> Instance {
    let error = machine.is_failed.then(|| ErrorInfo {
        class: ErrorClass::Other,
        code: "NO".to_owned(),
        message: "not today".to_owned(),
    });
    let state = if machine.is_deleting { InstanceState::Deleting } else { InstanceState::Running };
    Instance { id: machine.id.as_str().into(), state: Some(state), error }
}

fn node(machine: &Machine, life: &Life) -> Node {
    let status = if life.is_ready { ConditionStatus::True } else { ConditionStatus::False };
    let taint = Taint { key: "ToBeDeletedByClusterAutoscaler".to_owned(), value: String::new() };
    Node {
        created: life.created,
        name: machine.id.as_str().into(),
        provider_id: machine.id.clone(),
        conditions: [("Ready".to_owned(), Condition { status, last_transition: Some(life.since) })]
            .into(),
        taints: life.is_tainted.then_some(taint).into_iter().collect(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        missing_resources: BTreeSet::new(),
        membership: Membership::Group(GROUPS[machine.group].into()),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let failed = Step::Failed { message: "no".to_owned() };
    select(vec![Step::Done, Step::Done, failed, Step::Unknown])
}

/// What happens in a world without faults of listings.
fn calm_event() -> impl Strategy<Value = Event> {
    let which = || 0_usize..8;
    prop_oneof![
        10 => select(vec![10_u32, 10, 60, 300, 900]).prop_map(|after_secs| Event::Look { after_secs }),
        3 => (which(), 1_u32..4, step(), any::<bool>())
            .prop_map(|(group, delta, step, is_done)| Event::Ask { group, delta, step, is_done }),
        1 => (which(), 0_u32..6).prop_map(|(group, target)| Event::Resize { group, target }),
        6 => (which(), prop::bool::weighted(0.1)).prop_map(|(group, fails)| Event::Create { group, fails }),
        6 => which().prop_map(Event::Register),
        4 => which().prop_map(Event::TurnReady),
        2 => which().prop_map(Event::TurnUnready),
        1 => which().prop_map(Event::Taint),
        1 => which().prop_map(Event::Deleting),
        1 => which().prop_map(Event::Vanish),
        1 => which().prop_map(Event::NodeGoes),
        3 => (step(), any::<bool>()).prop_map(|(step, is_done)| Event::CarryOut { step, is_done }),
    ]
}

pub(super) fn calm_life() -> impl Strategy<Value = Vec<Event>> {
    vec(calm_event(), 1..60)
}

pub(super) fn life() -> impl Strategy<Value = Vec<Event>> {
    let fail = (0_usize..2, any::<bool>()).prop_map(|(group, fails)| Event::Fail { group, fails });
    vec(prop_oneof![20 => calm_event(), 1 => fail], 1..60)
}

// === impl Event ===

impl Event {
    /// Whether it needs a registry to act for the world to change.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Ask { .. } | Self::CarryOut { .. })
    }
}
