//! Nodes that are on their way: they are counted, and asked for once.

use registry::Class;

use crate::sim::{Sim, mins, secs};

/// One group, whose machines take three minutes to boot; two pods fill a node.
const SLOW: &str = "groups: [{id: a, max: 10, boot: 3m, register: 0s, ready: 0s}]";

fn slow_with_pods() -> Sim {
    let mut sim = Sim::new(SLOW);
    sim.deploy("web", 4, "2");
    sim
}

#[test]
fn sc1_1_what_is_on_its_way_is_not_asked_for_again() {
    let mut sim = slow_with_pods();
    sim.tick();
    assert_eq!(sim.calls("increase").len(), 1);
    assert_eq!(sim.calls[0].what, "increase a 2");
    sim.run_for(mins(1));
    assert_eq!(sim.upcoming("a"), 2);
    assert!(sim.registry.is_scaling_up(&"a".into(), sim.now));
    let ready = sim.run_until(mins(5), |sim| sim.running("web") == 4);
    assert!(ready <= mins(4), "{ready:?}");
    sim.tick();
    assert!(!sim.registry.has_scale_up_started(&"a".into()), "the request is closed");
    sim.run_for(mins(5));
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
}

#[test]
fn sc1_2_a_restart_asks_for_nothing_again_and_forgets_no_deadline() {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]\nfaults: [{fault: stockout, group: a}]");
    sim.deploy("web", 4, "2");
    sim.tick();
    let asked = sim.elapsed();
    sim.run_for(mins(1));
    sim.restart();
    sim.run_for(mins(10));
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
    sim.run_until(mins(6), |sim| !sim.calls("decrease").is_empty());
    assert_eq!(sim.elapsed(), asked + mins(15));
}

#[test]
fn sc1_2_without_its_state_it_asks_for_nothing_again_either() {
    let mut sim = slow_with_pods();
    sim.run_for(mins(1));
    sim.loses_state = true;
    sim.restart();
    sim.run_until(mins(5), |sim| sim.running("web") == 4);
    sim.run_for(mins(5));
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
}

#[test]
fn sc2_1_a_node_that_starts_is_upcoming_and_no_candidate() {
    let mut sim = Sim::new("groups: [{id: a, max: 10, boot: 1m, register: 1m, ready: 2m}]");
    sim.deploy("web", 2, "2");
    sim.run_until(mins(3), |sim| sim.has_node("a-0"));
    sim.tick();
    assert_eq!(sim.class("a-0"), Some(Class::Starting));
    assert_eq!((sim.upcoming("a"), sim.registry.cluster_health().unready), (1, 0));
    assert_eq!(sim.kept("a-0"), "NotStarted");
    sim.run_until(mins(3), |sim| sim.running("web") == 2);
    assert_eq!(sim.class("a-0"), Some(Class::Ready));
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
}

#[test]
fn sc2_2_without_a_startup_time_the_default_is_used() {
    let mut sim = Sim::new(
        "groups: [{id: a, max: 10, ready: 20m, options: {provision: 10m}}, {id: b, max: 10, ready: 20m, options: {startup: 5m}}]",
    );
    sim.raise_by_hand("a", 1);
    sim.raise_by_hand("b", 1);
    sim.run_until(mins(3), |sim| sim.has_node("a-0") && sim.has_node("b-0"));
    sim.run_for(mins(5) + secs(10));
    assert_eq!(sim.class("a-0"), Some(Class::Starting));
    assert_eq!(sim.class("b-0"), Some(Class::BrokenStart));
    sim.run_for(mins(10));
    assert_eq!(sim.class("a-0"), Some(Class::BrokenStart));
}
