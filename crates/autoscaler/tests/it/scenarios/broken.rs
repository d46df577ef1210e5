//! Nodes that never come to be of use.

use autoscaler::core::GroupVerdict;
use autoscaler::core::scale_up::Unusable;
use registry::Class;

use crate::sim::{Sim, mins, secs};

#[test]
fn sc3_1_a_node_that_does_not_start_stops_its_group_and_goes() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 3, max: 10, target: 3}, {id: b, max: 10, ready: 30s}]\nfaults: [{fault: never-ready, group: a, count: 1}]",
    );
    sim.deploy("busy", 3, "3");
    sim.raise_by_hand("a", 1);
    sim.run_until(mins(3), |sim| sim.has_node("a-3"));
    let registered = sim.elapsed();
    sim.run_for(mins(15));
    assert_eq!(sim.class("a-3"), Some(Class::BrokenStart));
    assert_eq!(sim.elapsed(), registered + mins(15));
    sim.deploy("web", 2, "2");
    sim.tick();
    sim.tick();
    let verdict = &sim.account.groups["a"];
    let GroupVerdict::Unusable(why @ Unusable::Registry(_)) = verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(why.to_string(), "broken start");
    assert_eq!(sim.calls[0].what, "increase b 1", "{}", sim.story());
    // The increase has begun the delay in which nothing is removed.
    let gone = sim.run_until(mins(20), |sim| !sim.calls("delete a-3").is_empty());
    assert!(gone >= registered + mins(20) && gone <= registered + mins(26), "{gone:?}");
    assert_eq!(sim.calls("delete").len(), 1);
    assert_eq!(sim.calls("delete")[0].what, "delete a-3");
    assert!(sim.has_event("removing unready node a-3"), "{}", sim.story());
}

#[test]
fn sc3_1_without_a_delay_it_goes_after_twenty_minutes() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 3, max: 10, target: 3}]\nfaults: [{fault: never-ready, group: a, count: 1}]",
    );
    sim.deploy("busy", 3, "3");
    sim.raise_by_hand("a", 1);
    sim.run_until(mins(3), |sim| sim.has_node("a-3"));
    let registered = sim.elapsed();
    sim.run_until(mins(25), |sim| !sim.calls("taint a-3").is_empty());
    assert_eq!(sim.elapsed(), registered + mins(20), "{}", sim.story());
}

#[test]
fn sc5_1_an_instance_that_never_registers_is_deleted_one_per_call() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 10, target: 1}]\nfaults: [{fault: never-registers, group: a, count: 2}]",
    );
    sim.deploy("busy", 1, "3");
    sim.raise_by_hand("a", 2);
    sim.tick();
    let listed = sim.elapsed();
    sim.run_until(mins(16), |sim| !sim.calls("delete").is_empty());
    assert_eq!(sim.elapsed(), listed + mins(15), "{}", sim.story());
    let deleted: Vec<_> = sim.calls("delete").iter().map(|noted| noted.what.clone()).collect();
    assert_eq!(deleted, ["delete a-1 unregistered", "delete a-2 unregistered"]);
    assert!(sim.has_event("DeleteUnregistered"));
    sim.run_for(mins(5));
    assert_eq!((sim.calls("delete").len(), sim.target("a")), (2, 1));
}

#[test]
fn sc5_1_not_below_the_minimum_unless_forced() {
    let scenario = "groups: [{id: a, min: 2, max: 10, target: 2}]\nfaults: [{fault: never-registers, group: a}, {fault: vanishes, group: a, from: 1m, until: 2m, count: 1}]";
    let scenario = scenario.replace("target: 2", "target: 2, replaces_lost: true");
    let mut kept = Sim::new(&scenario);
    kept.run_for(mins(30));
    assert!(kept.calls("delete").is_empty(), "{}", kept.story());
    let mut forced = Sim::new(&scenario).with_rules(|it| it.removes_unregistered_below_min = true);
    forced.run_for(mins(20));
    assert_eq!(forced.calls("delete").len(), 1, "{}", forced.story());
    assert!(forced.elapsed() >= secs(900));
}
