//! Nodes that were Ready once.

use crate::sim::{Sim, mins};
use autoscaler::core::names;

/// Ten nodes, of which one is not heard of from the first minute on; pods fill more than half of each.
fn ten_with_one_silent(kind: &str) -> Sim {
    let mut sim = Sim::new(&format!(
        "groups: [{{id: a, min: 1, max: 12, target: 10}}]\nfaults: [{{fault: {kind}, group: a, from: 1m, count: 1}}]"
    ));
    sim.deploy("web", 10, "3").min_available = Some(9);
    sim
}

#[test]
fn sc6_1_a_node_that_stays_unready_goes_though_it_is_in_use() {
    let mut sim = ten_with_one_silent("silent");
    sim.run_until(mins(3), |sim| sim.registry.cluster_health().unready == 1);
    let lost = sim.registry.cluster_health().named[0].clone();
    let transition = sim.registry.node(&lost).unwrap().unready_since;
    sim.run_until(mins(10), |sim| sim.kube.pods.values().any(crate::sim::objects::is_terminating));
    let evicted = sim.elapsed();
    assert!(evicted >= mins(6) && evicted <= mins(8), "{evicted:?}");
    sim.run_until(mins(30), |sim| !sim.calls("taint").is_empty());
    assert_eq!(sim.calls("taint")[0].what, format!("taint {lost}"));
    assert_eq!(sim.now, transition + mins(20), "{}", sim.story());
    sim.run_until(mins(2), |sim| !sim.calls("delete").is_empty());
    assert_eq!(sim.calls("delete")[0].what, format!("delete {lost}"));
    assert!(sim.has_event(&format!("removing unready node {lost}")), "{}", sim.story());
    assert!(sim.calls("evict").is_empty(), "live pods are left alone");
}

/// The pods of a node that is lost have to be asked to go if nobody else has, and nobody ends them. Its
/// first removal was taken back a minute later, and the next one came after a cooldown.
#[test]
fn a_lost_node_goes_with_the_first_removal() {
    let mut sim = ten_with_one_silent("silent").with_rules(|it| it.times.unready = mins(3));
    sim.kube.deployments[0].min_available = None;
    sim.run_until(mins(6), |sim| !sim.calls("evict").is_empty());
    sim.run_until(mins(2), |sim| !sim.calls("delete").is_empty());
    assert!(!sim.has_event("ScaleDownFailed"), "{}", sim.story());
    assert!(sim.calls("lift").is_empty(), "{}", sim.story());
}

#[test]
fn sc6_1_an_unready_node_stays_while_its_group_misses_another() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 12, target: 10, zones: [z1, z2]}]\nfaults: [{fault: silent, zone: z1, from: 1m, count: 1}, {fault: vanishes, zone: z2, from: 10m, count: 1}]",
    )
    .with_rules(|it| it.times.unneeded = mins(600));
    sim.run_until(mins(3), |sim| sim.registry.cluster_health().unready == 1);
    let lost = sim.registry.cluster_health().named[0].clone();
    let due = sim.registry.node(&lost).unwrap().unready_since + mins(20);
    sim.run_until(mins(30), |sim| sim.now >= due + mins(1));
    assert_eq!(sim.registry.missing(&"a".into(), sim.now), 1, "{}", sim.story());
    assert!(sim.calls("taint").is_empty(), "{}", sim.story());
    assert!(sim.kept(&lost.0).contains("misses nodes"), "{}", sim.story());
    // Once what is missing is given up, it goes.
    sim.run_until(mins(10), |sim| !sim.calls("decrease").is_empty());
    sim.run_until(mins(2), |sim| !sim.calls("taint").is_empty());
    assert_eq!(sim.calls("taint")[0].what, format!("taint {lost}"));
}

#[test]
fn sc6_2_a_node_that_flaps_stays_and_is_counted() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 12, target: 4}]\nfaults: [{fault: flapping, group: a, from: 1m, every: 3m, count: 1}]",
    );
    sim.deploy("web", 4, "3");
    sim.run_for(mins(60));
    assert!(sim.calls("delete").is_empty(), "{}", sim.story());
    let flaps: usize = sim.registry.nodes().map(|(_, node)| node.flaps).sum();
    assert!(flaps >= 8, "{flaps}");
}

#[test]
fn sc6_3_what_is_forbidden_is_not_done() {
    let mut flagged = ten_with_one_silent("not-ready")
        .with_rules(|it| it.removes_unready = false)
        .with_config(|it| it.scale_down.removes_unready = false);
    flagged.run_for(mins(30));
    assert!(flagged.calls("taint").is_empty(), "{}", flagged.story());
    let lost = flagged.registry.cluster_health().named[0].clone();
    assert_eq!(flagged.kept(&lost.0), "ScaleDownUnreadyDisabled");

    let mut annotated = ten_with_one_silent("not-ready");
    for node in annotated.kube.nodes.values_mut() {
        let annotations = node.metadata.annotations.get_or_insert_default();
        annotations.insert(names::SCALE_DOWN_DISABLED.to_owned(), "true".to_owned());
    }
    annotated.run_for(mins(30));
    assert!(annotated.calls("taint").is_empty(), "{}", annotated.story());
    let lost = annotated.registry.cluster_health().named[0].clone();
    assert_eq!(annotated.kept(&lost.0), "ScaleDownDisabledAnnotation");
}
