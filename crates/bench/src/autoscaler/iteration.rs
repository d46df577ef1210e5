//! One iteration on a large cluster, from what was read to what is to be done, and the registry's part
//! of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use autoscaler::core::{
    Config, Effect, GroupSettings, Inputs, Iteration, Kinds, Memory, Next, World,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use registry::{
    Condition, ConditionStatus, Facts, Group, Instance, InstanceState, Membership, Options,
    Registry,
};
use serde::Serialize;
use tokio::time::Instant;

use crate::fit::Scale;
use crate::fit::objects::{node, pod};
use crate::process;

const NODES: usize = 5_000;
const PODS_PER_NODE: usize = 31;
const GROUPS: usize = 20;

/// Deployments that the pods belong to.
const DEPLOYMENTS: usize = 500;

/// One node in so many has few pods, so that it may go if they find another place.
const IDLE_ONE_IN: usize = 20;

/// Pods that wait for a node.
const PENDING: usize = 1_000;

/// What is thought between two looks at the clock.
const STEPS: usize = 10_000;

/// The first iteration finds everything new; the second is like all others.
const ITERATIONS: usize = 2;

const GIB: u64 = 1 << 30;

/// What one iteration took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Iterated {
    pub nodes: usize,
    pub pods: usize,
    pub increases: usize,
    pub unneeded: usize,
    /// The registry's part.
    pub observe_millis: f64,
    pub iteration_millis: f64,
    /// The most that the process ever had resident, with all objects of the cluster.
    pub peak_bytes: u64,
}

/// Each iteration.
pub(super) fn run(scale: Scale) -> Result<Vec<Iterated>> {
    let nodes = NODES / scale.divisor;
    let (facts, world) = (facts(nodes), world(nodes, PENDING / scale.divisor));
    let config = Config::default();
    let mut registry = Registry::new(registry::Config::default());
    let mut memory = Memory::new();
    let mut now = start()?;
    let mut figures = Vec::new();
    for _ in 0..ITERATIONS {
        let observed = observe(registry.clone(), now, &facts);
        let inputs = Inputs { now, seed: 1, facts: &facts, world: &world, config: &config };
        let began = Instant::now();
        let mut iteration = Iteration::begin(inputs, &mut registry, &memory);
        loop {
            match iteration.next(&mut registry, &mut memory, STEPS) {
                // Nothing comes of it, so that every iteration has the same to do.
                Next::Act(_) => iteration.on_effect(&Effect::Stale, &mut memory),
                Next::Working => {}
                Next::Ended => break,
            }
        }
        let took = began.elapsed();
        let account = iteration.into_account();
        let increases = account.scale_up.map_or(0, |plan| plan.offer.new_nodes);
        ensure!(increases > 0, "pods that wait bring nodes");
        figures.push(Iterated {
            nodes,
            pods: world.pods.len(),
            increases,
            unneeded: account.unneeded.len(),
            observe_millis: observed.as_secs_f64() * 1e3,
            iteration_millis: took.as_secs_f64() * 1e3,
            peak_bytes: process::peak_bytes(std::process::id())?,
        });
        now += Duration::from_secs(10);
    }
    Ok(figures)
}

/// What the registry's part takes, by a copy that is gone before the whole is measured: the memory of a
/// large cluster is not given back for nothing.
fn observe(mut registry: Registry, now: Timestamp, facts: &Facts) -> Duration {
    let began = Instant::now();
    registry.observe(now, facts);
    began.elapsed()
}

fn start() -> Result<Timestamp> {
    "2026-03-01T08:00:00Z".parse().context("a moment")
}

fn name(at: usize) -> String {
    format!("node-{at:05}")
}

fn group(at: usize) -> String {
    format!("group-{:02}", at % GROUPS)
}

fn facts(nodes: usize) -> Facts {
    let created = Timestamp::UNIX_EPOCH;
    let ready = Condition { status: ConditionStatus::True, last_transition: Some(created) };
    let node = |at: usize| registry::Node {
        created,
        name: name(at).as_str().into(),
        provider_id: format!("cloud://{}", name(at)),
        conditions: [("Ready".to_owned(), ready)].into(),
        taints: Default::default(),
        labels: [("kubernetes.io/hostname".to_owned(), name(at))].into(),
        annotations: BTreeMap::new(),
        missing_resources: Default::default(),
        membership: Membership::Group(group(at).as_str().into()),
    };
    let groups = (0..GROUPS).map(|which| {
        let instance = |at: usize| Instance {
            id: format!("cloud://{}", name(at)).as_str().into(),
            state: Some(InstanceState::Running),
            error: None,
        };
        let instances: Vec<_> = (which..nodes).step_by(GROUPS).map(instance).collect();
        Group {
            id: group(which).as_str().into(),
            min: 0,
            max: 10_000,
            exists: true,
            options: Options::default(),
            target: Ok(i64::try_from(instances.len()).unwrap_or(i64::MAX)),
            instances: Ok(instances),
        }
    });
    Facts { nodes: (0..nodes).map(node).collect(), groups: Ok(groups.collect()) }
}

fn world(nodes: usize, pending: usize) -> World {
    let mut kinds = Kinds::default();
    let mut world =
        World { namespaces: [("default".to_owned(), BTreeMap::new())].into(), ..World::default() };
    for deployment in 0..DEPLOYMENTS {
        world.controllers.add("default", "ReplicaSet", &app(deployment), Some(100));
    }
    for at in 0..nodes {
        world.nodes.insert(name(at).as_str().into(), Arc::new(machine(&name(at))));
        let pods = if at.is_multiple_of(IDLE_ONE_IN) { 5 } else { PODS_PER_NODE };
        let pods = (0..pods).map(|of| running(at * PODS_PER_NODE + of, &name(at)));
        world.pods.extend(pods.map(|pod| Arc::new(kinds.keep(pod))));
    }
    world.pods.extend((0..pending).map(|at| Arc::new(kinds.keep(waiting(at)))));
    for which in 0..GROUPS {
        let template = Some(Arc::new(machine("new")));
        let settings = GroupSettings { template, ..GroupSettings::default() };
        world.groups.insert(group(which).as_str().into(), settings);
    }
    world
}

fn machine(name: &str) -> Node {
    let mut machine = node(name, 16, 64 * GIB);
    let status = machine.status.get_or_insert_default();
    status.capacity.clone_from(&status.allocatable);
    machine
}

fn app(at: usize) -> String {
    format!("app-{:03}", at % DEPLOYMENTS)
}

fn owned(at: usize, cpu_millis: u64) -> Pod {
    let mut pod = pod(&app(at), cpu_millis, GIB);
    pod.metadata.name = Some(format!("pod-{at:06}"));
    pod.metadata.owner_references = Some(vec![OwnerReference {
        kind: "ReplicaSet".to_owned(),
        name: app(at),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    pod
}

fn running(at: usize, node: &str) -> Pod {
    let mut pod = owned(at, 400);
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    pod
}

fn waiting(at: usize) -> Pod {
    let mut pod = owned(at, 15_000);
    pod.metadata.name = Some(format!("waiting-{at:06}"));
    let refused = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "False".to_owned(),
        reason: Some("Unschedulable".to_owned()),
        ..PodCondition::default()
    };
    pod.status = Some(PodStatus { conditions: Some(vec![refused]), ..PodStatus::default() });
    pod
}
