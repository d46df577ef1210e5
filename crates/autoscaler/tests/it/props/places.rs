//! Nodes that go leave their pods a place, all of them together, and no budget is overdrawn.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use fit::{ClassId, Cluster, NodeId, Volumes};
use registry::RemovalReason;

use super::worlds;
use crate::scene::{NodeWords, PodWords, Scene};

/// By default pods of lower priority do not count: they give way to others.
const EXPENDABLE_BELOW: i32 = -10;

#[test]
fn nodes_that_go_leave_their_pods_a_place() {
    let moved = Cell::new(0);
    worlds(|scene, seed| {
        // So that pods move: off busy nodes too, and while others wait for a node; if the seed is odd,
        // off several at once, and without constraints and uncontrolled pods in the way.
        let scale_down = &mut scene.config.scale_down;
        (scale_down.utilization_threshold, scale_down.delay_after_add) = (0.95, Duration::ZERO);
        scale_down.drain_parallelism_max = if seed % 2 == 0 { 1 } else { 10 };
        if seed % 2 == 1 {
            for pod in &mut scene.words.pods {
                pod.app.get_or_insert_with(|| "app3".to_owned());
                pod.spec = Default::default();
            }
        }
        let account = scene.run_for(Duration::from_mins(10));
        let mut going = Vec::new();
        for order in &account.removals {
            let words = scene.words.groups.iter().find(|it| it.id == order.group.0).unwrap();
            assert!(words.min >= 0 && order.floor == u32::try_from(words.min).unwrap());
            if order.reason == RemovalReason::Unneeded {
                going.push(order.node.0.clone());
            }
        }
        assert!(account.removals.len() <= 10, "seed {seed}");
        moved.set(moved.get() + check(scene, &going, seed));
    });
    assert!(moved.get() >= 5, "only {} pods had to move", moved.get());
}

/// How many pods move.
fn check(scene: &Scene, going: &[String], seed: u64) -> usize {
    let moves = |pod: &&PodWords| {
        let counts = pod.priority.unwrap_or(0) >= EXPENDABLE_BELOW;
        counts && pod.node.as_ref().is_some_and(|node| going.contains(node))
    };
    let movers: Vec<&PodWords> = scene.words.pods.iter().filter(moves).collect();
    let mut spent: BTreeMap<&str, i32> = BTreeMap::new();
    for pod in &movers {
        let app = pod.app.as_deref();
        let app = app.unwrap_or_else(|| panic!("seed {seed}: {} has no controller", pod.name));
        *spent.entry(app).or_default() += 1;
    }
    for (app, allowed) in &scene.words.budgets {
        let spent = spent.get(app.as_str()).copied().unwrap_or(0);
        assert!(spent <= *allowed, "seed {seed}: {spent} of {app} move, {allowed} may");
    }
    let (mut cluster, others) = remaining(scene, going);
    let classes: Vec<ClassId> = movers
        .iter()
        .map(|words| {
            let mut pod = scene.pod(words);
            pod.spec.as_mut().unwrap().node_name = None;
            cluster.compile(&pod, &Volumes::default()).expect("what moves is understood")
        })
        .collect();
    let names: Vec<&str> = movers.iter().map(|pod| pod.name.as_str()).collect();
    assert!(find_places(&cluster, &classes, &others), "seed {seed}: {names:?} off {going:?}");
    classes.len()
}

/// The cluster without the nodes that go, and those nodes that take pods.
fn remaining(scene: &Scene, going: &[String]) -> (Cluster, Vec<NodeId>) {
    let world = scene.world();
    let mut cluster = Cluster::new(&world.namespaces);
    let mut others = Vec::new();
    let mut nodes = BTreeMap::new();
    for words in scene.words.nodes.iter().filter(|node| !going.contains(&node.name)) {
        let id = cluster.add_node(&world.nodes[words.name.as_str()]).expect("a node");
        nodes.insert(words.name.as_str(), id);
        if takes_pods(words) {
            others.push(id);
        }
    }
    for words in &scene.words.pods {
        let place = words.node.as_deref().and_then(|node| nodes.get(node));
        if let Some(place) = place
            && words.priority.unwrap_or(0) >= EXPENDABLE_BELOW
        {
            let class = cluster.compile_bound(&scene.pod(words)).expect("a pod");
            cluster.place(class, *place);
        }
    }
    (cluster, others)
}

fn takes_pods(node: &NodeWords) -> bool {
    let is_leaving = node.taints.iter().any(|it| it.key == "ToBeDeletedByClusterAutoscaler");
    node.unready.is_none() && !is_leaving
}

/// Tries every way there is.
fn find_places(cluster: &Cluster, pods: &[ClassId], others: &[NodeId]) -> bool {
    let Some((pod, rest)) = pods.split_first() else { return true };
    others.iter().any(|node| {
        let mut trial = cluster.fork();
        trial.fits(*pod, *node) && {
            trial.place(*pod, *node);
            find_places(&trial, rest, others)
        }
    })
}
