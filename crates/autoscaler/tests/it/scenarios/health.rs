//! When too much is broken, nothing is done.

use autoscaler::core::Ending;
use registry::UnreadyScope;

use crate::sim::{Sim, mins};

/// So many nodes, of which some are not Ready from the second minute to the thirtieth.
fn broken(nodes: u32, unready: u32) -> Sim {
    let mut sim = Sim::new(&format!(
        "groups: [{{id: a, min: 1, max: 20, target: {nodes}}}, {{id: b, max: 5}}]\nfaults: [{{fault: not-ready, group: a, from: 2m, until: 30m, count: {unready}}}]"
    ));
    sim.deploy("web", usize::try_from(nodes).unwrap(), "3");
    sim
}

#[test]
fn sc8_1_too_many_unready_nodes_halt_everything() {
    let mut sim = broken(10, 5);
    sim.run_for(mins(1));
    sim.scale("web", 8);
    sim.run_until(mins(3), |sim| sim.registry.cluster_health().is_unhealthy);
    let Some(Ending::Unhealthy(halt)) = sim.account.ending.clone() else { panic!() };
    assert_eq!((halt.unready, halt.nodes, halt.named.len()), (5, 10, 5));
    assert!(sim.has_event("ClusterUnhealthy 5 of 10 autoscaled nodes are unready"));
    sim.deploy("more", 30, "3");
    sim.run_until(mins(30), |sim| !sim.registry.cluster_health().is_unhealthy);
    let resumed = sim.elapsed();
    assert!(sim.calls.iter().all(|noted| noted.at >= resumed), "{}", sim.story());
    assert!(sim.elapsed() >= mins(30));
    sim.run_until(mins(1), |sim| !sim.calls("increase").is_empty());
}

#[test]
fn sc8_1_times_are_cleared_and_removals_taken_back() {
    let mut sim = broken(12, 6);
    sim.scale("web", 5);
    sim.run_for(mins(1));
    assert!(sim.registry.unneeded_since(sim.account.unneeded.first().unwrap()).is_some());
    sim.run_for(mins(2));
    assert!(sim.registry.nodes().all(|(name, _)| sim.registry.unneeded_since(name).is_none()));
}

#[test]
fn sc8_1_a_drain_under_way_is_rolled_back() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 20, target: 10}]\nfaults: [{fault: not-ready, group: a, from: 10m15s, until: 30m, count: 6}]",
    );
    sim.deploy("web", 9, "3");
    sim.run_until(mins(11), |sim| !sim.calls("taint").is_empty());
    assert!(sim.elapsed() <= mins(10) + std::time::Duration::from_secs(10), "{}", sim.story());
    sim.tick();
    sim.tick();
    assert_eq!((sim.calls("lift").len(), sim.calls("delete").len()), (1, 0), "{}", sim.story());
}

#[test]
fn sc8_2_nodes_of_others_halt_only_who_looks_at_them() {
    let scenario = "groups: [{id: a, min: 1, max: 20, target: 5}, {id: x, max: 20, target: 5}]\nfaults: [{fault: not-ready, group: x, from: 2m, count: 5}]";
    for (scope, is_halted) in [(UnreadyScope::Autoscaled, false), (UnreadyScope::All, true)] {
        let mut sim = Sim::new(scenario).with_rules(|it| it.unready_scope = scope);
        // Nobody owns these.
        for (name, node) in &mut sim.kube.nodes {
            let spec = node.spec.get_or_insert_default();
            if spec.provider_id.as_ref().is_some_and(|id| id.contains("/x/")) {
                spec.provider_id = Some(format!("elsewhere://{name}"));
            }
        }
        sim.run_for(mins(3));
        assert_eq!(sim.registry.cluster_health().is_unhealthy, is_halted, "{scope:?}");
    }
}

#[test]
fn sc8_3_both_limits_must_be_passed() {
    for (nodes, unready, is_halted) in [(8, 4, true), (4, 3, false), (10, 4, false)] {
        let mut sim = broken(nodes, unready);
        sim.run_for(mins(3));
        let is_unhealthy = sim.registry.cluster_health().is_unhealthy;
        assert_eq!(is_unhealthy, is_halted, "{unready} of {nodes}");
    }
}

#[test]
fn sc9_1_instances_that_never_registered_wait_for_health_unless_told_otherwise() {
    let scenario = "groups: [{id: a, min: 1, max: 20, target: 10}]\nfaults: [{fault: never-registers, group: a, count: 1}, {fault: not-ready, group: a, from: 10m, until: 40m, count: 5}]";
    for (is_told, deletions) in [(false, 0), (true, 1)] {
        let mut sim =
            Sim::new(scenario).with_rules(|it| it.removes_unregistered_when_unhealthy = is_told);
        sim.deploy("web", 10, "3");
        sim.raise_by_hand("a", 1);
        sim.run_for(mins(20));
        assert!(sim.registry.cluster_health().is_unhealthy);
        assert_eq!(sim.calls("delete").len(), deletions, "{}", sim.story());
    }
}
