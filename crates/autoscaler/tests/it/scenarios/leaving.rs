//! Nodes on their way out.

use autoscaler::core::names;
use registry::Class;

use crate::sim::{Sim, mins, objects, secs};

/// Three nodes, of which one is idle.
fn idle() -> Sim {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 12, target: 3, delete: 2m}]");
    sim.deploy("web", 2, "3");
    sim
}

#[test]
fn an_idle_node_goes_after_ten_minutes() {
    let mut sim = idle();
    sim.tick();
    let unneeded = sim.elapsed();
    assert_eq!(sim.account.unneeded.len(), 1, "{}", sim.story());
    let node = sim.account.unneeded.first().unwrap().clone();
    assert!(sim.kept(&node.0).starts_with("NotUnneededLongEnough"), "{}", sim.story());
    assert!(objects::has_taint(&sim.kube.nodes[&node], names::DELETION_CANDIDATE));
    sim.run_until(mins(11), |sim| !sim.calls("taint").is_empty());
    assert_eq!(sim.elapsed(), unneeded + mins(10), "{}", sim.story());
    sim.run_until(mins(1), |sim| !sim.calls("delete").is_empty());
    assert_eq!(sim.calls("delete")[0].what, format!("delete {node} Unneeded"));
    assert_eq!(sim.target("a"), 2);
}

#[test]
fn sc7_1_a_node_that_leaves_is_no_place_and_no_sorrow() {
    let mut sim = idle();
    sim.run_until(mins(12), |sim| !sim.calls("delete").is_empty());
    let node = sim.account.removals.first().map(|order| order.node.clone());
    let node = node.unwrap_or_else(|| sim.calls("taint")[0].what[6..].into());
    sim.tick();
    assert_eq!(sim.class(&node.0), Some(Class::Leaving));
    assert_eq!((sim.upcoming("a"), sim.registry.cluster_health().unready), (0, 0));
    assert_eq!(sim.kept(&node.0), "CurrentlyBeingDeleted");
    sim.deploy("late", 1, "3");
    sim.tick();
    assert_eq!(sim.calls("increase").len(), 1, "it is not a place for new pods: {}", sim.story());
    sim.run_until(mins(4), |sim| !sim.has_node(&node.0));
    assert_eq!(sim.calls("delete").len(), 1);
}

#[test]
fn sc7_1_a_crash_after_the_taint_lifts_it() {
    let mut sim = idle();
    sim.run_until(mins(12), |sim| !sim.calls("taint").is_empty());
    assert!(sim.calls("delete").is_empty());
    let node: registry::NodeName = sim.calls("taint")[0].what[6..].into();
    assert_eq!(sim.kube.nodes[&node].spec.as_ref().unwrap().unschedulable, Some(true));
    sim.restart();
    sim.tick();
    assert_eq!(sim.calls("lift").len(), 1, "{}", sim.story());
    let spec = sim.kube.nodes[&node].spec.clone().unwrap();
    assert_eq!(spec.unschedulable, None);
    assert!(!objects::has_taint(&sim.kube.nodes[&node], names::TO_BE_DELETED));
    sim.run_until(mins(15), |sim| !sim.calls("delete").is_empty());
}

#[test]
fn sc7_1_what_was_handed_over_is_finished_by_the_next_one() {
    let mut sim = idle();
    sim.run_until(mins(12), |sim| !sim.calls("delete").is_empty());
    sim.restart();
    sim.tick();
    assert!(sim.calls("lift").is_empty(), "{}", sim.story());
    sim.run_until(mins(4), |sim| sim.kube.nodes.len() == 2);
    assert_eq!((sim.calls("delete").len(), sim.target("a")), (1, 2));
}

#[test]
fn pods_are_moved_before_their_node_goes() {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 12, target: 3}]");
    sim.deploy("web", 3, "1").min_available = Some(2);
    // One pod on each node.
    sim.kube.deployments[0].spec.affinity = None;
    sim.run_until(mins(30), |sim| sim.kube.nodes.len() == 1);
    sim.run_for(mins(1));
    assert_eq!(sim.running("web"), 3, "{}", sim.story());
    assert_eq!(sim.target("a"), 1);
    sim.run_for(mins(20));
    assert_eq!(sim.target("a"), 1, "not below the minimum");
}

#[test]
fn a_removal_that_the_provider_refuses_is_rolled_back() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 12, target: 3}]\nfaults: [{fault: delete-fails, group: a, count: 1}]",
    );
    sim.deploy("web", 2, "3");
    sim.run_until(mins(12), |sim| sim.has_event("ScaleDownFailed"));
    let failed = sim.elapsed();
    assert_eq!(sim.target("a"), 3);
    assert!(!sim.kube.nodes.values().any(|node| objects::has_taint(node, names::TO_BE_DELETED)));
    sim.run_until(mins(15), |sim| sim.calls("taint").len() == 2);
    assert!(sim.elapsed() >= failed + mins(3), "a failure is waited out");
    sim.run_until(secs(60), |sim| sim.calls("delete").len() == 1);
}
