//! What a person is told who asks why a task does not run.

use expect_test::{Expect, expect};
use tasks::core::admission::Hindrance;
use tasks::core::amounts::Amounts;
use tasks::core::cache::{Phase, Summary};
use tasks::core::explain::{Explanation, explain};
use tasks::core::id::AttemptNumber;
use tasks::core::keys::End;
use tasks::core::node::{Node, Obstacle};
use tasks::core::time::Epoch;
use tasks::wire;

use crate::scene::{Scene, node, spec};

fn check(spec: wire::TaskSpec, nodes: &[Node], expected: &Expect) {
    let mut scene = Scene::new();
    let task = Summary::new(&scene.submit(spec)).expect("a valid spec");
    scene.pass(3);
    let nodes: Vec<&Node> = nodes.iter().collect();
    let explanation = explain(&task, &nodes, scene.now);
    let mut told: String = explanation
        .nodes
        .iter()
        .map(|opinion| {
            let obstacles: Vec<String> =
                opinion.obstacles.iter().map(ToString::to_string).collect();
            let (rank, age) = (opinion.rank, opinion.free_age.as_secs());
            format!("{}: rank {rank:?}, told {age} s ago, {obstacles:?}\n", opinion.name)
        })
        .collect();
    told += &format!("unsatisfiable: {}\n", explanation.is_unsatisfiable);
    expected.assert_eq(&told);
}

#[test]
fn every_node_says_why_not() {
    let full = Node { reserved: Amounts { cpu_millis: 950, ..Amounts::default() }, ..node(2) };
    let leaving = Node { is_draining: true, ..node(3) };
    check(
        spec(),
        &[node(1), full, leaving],
        &expect![[r#"
        node1: rank Some(0), told 3 s ago, []
        node2: rank Some(1), told 3 s ago, ["the node has 50m of cpu free, the task needs 100m of cpu"]
        node3: rank None, told 3 s ago, ["the node is draining"]
        unsatisfiable: false
    "#]],
    );
}

#[test]
fn a_machine_that_takes_nothing_says_why() {
    let memory = |from_bytes| Hindrance::Memory { from_bytes };
    let mut scene = Scene::new();
    let task = Summary::new(&scene.submit(spec())).expect("a valid spec");
    let asked = task.requirements.demand.memory_bytes;
    for (hindrance, is_told) in [
        (Hindrance::Disk, true),
        (Hindrance::Pressure, true),
        (memory(asked), true),
        (memory(asked + 1), false),
    ] {
        let node = Node { hindrance: Some(hindrance), ..node(1) };
        let explanation = explain(&task, &[&node], scene.now);
        let told: Vec<Obstacle> =
            is_told.then_some(Obstacle::Machine(hindrance)).into_iter().collect();
        assert_eq!(explanation.nodes[0].obstacles, told, "{hindrance:?}");
        assert_eq!(explanation.nodes[0].rank, Some(0), "it may have room again");
        assert!(!explanation.is_unsatisfiable);
    }
}

#[test]
fn a_task_that_no_node_could_ever_run_is_unsatisfiable() {
    let resources = wire::Resources { cpu_millis: Some(1001), ..Default::default() };
    let large = wire::TaskSpec { resources: Some(resources), ..spec() };
    check(
        large,
        &[node(1), node(2)],
        &expect![[r#"
        node1: rank None, told 3 s ago, ["the node has 1000m of cpu, the task needs 1001m of cpu"]
        node2: rank None, told 3 s ago, ["the node has 1000m of cpu, the task needs 1001m of cpu"]
        unsatisfiable: true
    "#]],
    );
    check(
        spec(),
        &[],
        &expect![[r#"
        unsatisfiable: true
    "#]],
    );
}

#[test]
fn what_runs_or_has_ended_waits_for_nobody() {
    let mut scene = Scene::new();
    let mut task = Summary::new(&scene.submit(spec())).expect("a valid spec");
    let node = node(1);
    for phase in [
        Phase::Running { node: node.id, attempt: AttemptNumber(1) },
        Phase::Ended(End::Complete, Epoch(1)),
    ] {
        task.phase = phase;
        assert_eq!(explain(&task, &[&node], scene.now), Explanation::default(), "{phase:?}");
    }
}
