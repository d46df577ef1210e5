//! Nodes on their way out.

use autoscaler::core::names;
use autoscaler::options::Mode;
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
    assert_eq!(sim.calls("delete")[0].what, format!("delete {node}"));
    assert!(sim.has_event(&format!("removing empty node {node}")), "{}", sim.story());
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
    assert!(sim.has_event(&format!("ClusterAutoscalerCleanup {node}")), "{}", sim.story());
    let spec = sim.kube.nodes[&node].spec.clone().unwrap();
    assert_eq!(spec.unschedulable, None);
    assert!(!objects::has_taint(&sim.kube.nodes[&node], names::TO_BE_DELETED));
    sim.run_until(mins(15), |sim| !sim.calls("delete").is_empty());
}

#[test]
fn who_only_looks_leaves_taints_and_tells_nothing() {
    let mut sim = idle();
    sim.run_until(mins(12), |sim| !sim.calls("taint").is_empty());
    let (calls, events) = (sim.calls.len(), sim.events.len());
    sim.restart();
    sim.told = |options| options.mode = Mode::DryRun;
    sim.run_for(mins(15));
    assert_eq!((sim.calls.len(), sim.events.len()), (calls, events), "{}", sim.story());
}

#[test]
fn candidates_are_marked_for_so_long_and_no_longer() {
    let is_marked = |sim: &Sim| {
        let mut nodes = sim.kube.nodes.values();
        nodes.any(|node| objects::has_taint(node, names::DELETION_CANDIDATE))
    };
    let mut sim = idle();
    sim.told = |options| options.soft_taint_duration_max = secs(0);
    sim.run_for(mins(1));
    assert!(!is_marked(&sim), "{}", sim.story());
    sim.told = |_| {};
    sim.restart();
    sim.tick();
    assert!(is_marked(&sim), "{}", sim.story());
}

#[test]
fn a_drain_is_explained() {
    let mut sim = super::with_a_pod_to_move();
    sim.run_until(mins(20), |sim| !sim.calls("evict").is_empty());
    let node = sim.calls("taint")[0].what[6..].to_owned();
    let words = sim.explain(&node);
    assert!(words.contains("\ndrain    Unneeded, since "), "{words}");
    sim.tick();
    let words = sim.explain(&node);
    assert!(words.contains("class    Leaving"), "{words}");
}

#[test]
fn sc7_1_a_crash_while_pods_are_moved_takes_the_node_back_and_loses_no_pod() {
    let mut sim = super::with_a_pod_to_move();
    sim.run_until(mins(20), |sim| !sim.calls("evict").is_empty());
    assert!(sim.calls("delete").is_empty(), "{}", sim.story());
    let node: registry::NodeName = sim.calls("taint")[0].what[6..].into();
    sim.restart();
    sim.tick();
    assert_eq!(sim.calls("lift").len(), 1, "{}", sim.story());
    assert!(!objects::has_taint(&sim.kube.nodes[&node], names::TO_BE_DELETED));
    sim.run_until(mins(15), |sim| !sim.has_node(&node.0));
    assert_eq!((sim.calls("delete").len(), sim.target("a"), sim.running("web")), (1, 1, 1));
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

/// Only the delay after any failed removal was kept to; who had set that to nothing saw nodes tainted and
/// taken back all the time, for as long as the provider refused.
#[test]
fn a_group_whose_removals_are_refused_is_left_alone_for_longer_each_time() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 12, target: 3}, {id: b, max: 12, target: 1}]\nfaults: [{fault: delete-fails, group: a}]",
    )
    .with_config(|it| it.scale_down.delay_after_failure = secs(0))
    .with_rules(|it| it.times.unneeded = secs(10));
    sim.deploy("web", 2, "3");
    sim.run_until(mins(12), |sim| sim.has_event("ScaleDownFailed"));
    assert_eq!(sim.calls("delete b").len(), 1, "{}", sim.story());
    sim.run_for(mins(4));
    let tainted: Vec<_> = sim.calls("taint a").iter().map(|noted| noted.at).collect();
    let waits: Vec<_> = tainted.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    // Ten seconds from the taint to the refusal, then 30, 60 and 120.
    assert_eq!(waits, [40, 70, 130], "{}", sim.story());
}

/// A node that was drained went in the iteration that had just made its group larger: two changes on one
/// reading of the sizes.
#[test]
fn a_drained_node_waits_until_its_group_has_not_just_grown() {
    let mut sim = idle();
    sim.run_until(mins(12), |sim| !sim.calls("taint").is_empty());
    sim.deploy("late", 1, "3");
    sim.tick();
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
    assert!(sim.calls("delete").is_empty(), "{}", sim.story());
    sim.tick();
    assert_eq!((sim.calls("delete").len(), sim.target("a")), (1, 3), "{}", sim.story());
}
