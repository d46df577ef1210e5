//! Nodes that the provider does not make.

use std::time::Duration;

use crate::sim::{Sim, mins, secs};

const TWO: &str = "groups: [{id: a, max: 10, capacity: {cpu: \"4\", memory: 16Gi, pods: \"110\"}}, {id: b, max: 10, capacity: {cpu: \"8\", memory: 32Gi, pods: \"110\"}}, {id: c, min: 1, max: 1, target: 1, capacity: {cpu: \"1\", memory: 4Gi, pods: \"110\"}}]";

/// Two groups, of which `a` wastes less for pods of 2 cpu and fails as the fault says.
fn two_groups(fault: &str) -> Sim {
    let mut sim = Sim::new(&format!("{TWO}\nfaults: [{fault}]"));
    sim.deploy("busy", 1, "900m");
    sim.deploy("web", 6, "2");
    sim
}

#[test]
fn sc4_1_a_silent_stockout_is_reverted_and_the_other_group_used() {
    let mut sim = two_groups("{fault: stockout, group: a}");
    sim.tick();
    let asked = sim.elapsed();
    assert_eq!(sim.calls[0].what, "increase a 3", "{}", sim.story());
    sim.run_until(mins(16), |sim| !sim.calls("decrease").is_empty());
    assert_eq!(sim.elapsed(), asked + mins(15));
    assert_eq!(sim.calls("decrease")[0].what, "decrease a 3");
    assert!(sim.has_event("ScaleUpTimedOut"));
    let backoff = sim.registry.backoff(&"a".into(), sim.now).unwrap();
    assert_eq!(backoff.until, sim.now + mins(5));
    assert_eq!(sim.calls("increase").len(), 1, "a size fix ends the iteration");
    sim.tick();
    assert_eq!(sim.calls("increase")[1].what, "increase b 2");
    sim.run_for(mins(5));
    assert_eq!((sim.running("web"), sim.target("a"), sim.calls("increase").len()), (6, 0, 2));
}

#[test]
fn sc4_1_backoff_doubles_while_nothing_comes() {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]\nfaults: [{fault: stockout, group: a}]");
    sim.deploy("web", 2, "2");
    let mut waits = Vec::new();
    for _ in 0..5 {
        let before = sim.calls("decrease").len();
        sim.run_until(mins(60), |sim| sim.calls("decrease").len() > before);
        let reverted = sim.elapsed();
        let before = sim.calls("increase").len();
        sim.run_until(mins(60), |sim| sim.calls("increase").len() > before);
        waits.push((sim.elapsed() - reverted).as_secs() / 60);
    }
    assert_eq!(waits, [5, 10, 20, 30, 30], "{}", sim.story());
}

#[test]
fn sc4_2_a_creation_error_reroutes_in_the_same_iteration() {
    let mut sim = two_groups("{fault: quota, group: a}");
    sim.tick();
    assert_eq!(sim.calls.last().unwrap().what, "increase a 3");
    sim.tick();
    assert!(sim.has_event("ScaleUpFailed"), "{}", sim.story());
    assert!(sim.has_event("QUOTA_EXCEEDED"), "{}", sim.story());
    assert_eq!(sim.calls("delete").len(), 3, "{}", sim.story());
    assert_eq!(sim.calls("increase").last().unwrap().what, "increase b 2");
    assert_eq!(sim.calls("increase").last().unwrap().at, sim.elapsed());
    assert!(sim.registry.backoff(&"a".into(), sim.now).is_some());
    sim.run_for(mins(3));
    assert_eq!((sim.running("web"), sim.target("a")), (6, 0));
}

#[test]
fn sc4_3_a_target_raised_by_hand_is_fixed_once_it_stays_wrong() {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 10, target: 2}]\nfaults: [{fault: stockout, group: a}]",
    );
    sim.deploy("web", 4, "2");
    sim.run_for(mins(1));
    sim.raise_by_hand("a", 2);
    sim.tick();
    let raised = sim.elapsed();
    sim.run_for(mins(10));
    sim.raise_by_hand("a", 1);
    sim.tick();
    let changed = sim.elapsed();
    assert!(changed > raised);
    sim.run_until(mins(40), |sim| !sim.calls("decrease").is_empty());
    assert!(sim.elapsed() >= changed + mins(15), "{}", sim.story());
    assert_eq!(sim.calls("decrease")[0].what, "decrease a 3");
    assert_eq!(sim.target("a"), 2);
    assert_eq!(sim.account.ending, Some(autoscaler::core::Ending::SizesFixed));
    sim.run_for(mins(20));
    assert_eq!(sim.calls("decrease").len(), 1);
}

#[test]
fn sc4_4_a_group_whose_decrease_fails_keeps_no_other_from_growing() {
    let mut sim = Sim::new(&format!(
        "{TWO}\nfaults: [{{fault: stockout, group: a}}, {{fault: call-fails, group: a, method: NodeGroupDecreaseTargetSize, count: 3}}]"
    ));
    sim.deploy("web", 6, "2");
    sim.run_until(mins(16), |sim| sim.has_event("FailedToRevertScaleUp"));
    assert_eq!(sim.calls("increase").last().unwrap().what, "increase b 2", "{}", sim.story());
    assert_eq!(sim.calls("increase").last().unwrap().at, sim.elapsed(), "in the same iteration");
    let failed = sim.elapsed();
    sim.run_until(mins(10), |sim| !sim.calls("decrease a 3").is_empty());
    // Three refusals: tried again after 30 s, 60 s and 120 s.
    assert_eq!(sim.elapsed(), failed + secs(210));
}

/// A provider that never answers when a target is to be lowered was asked again after a second, for
/// ever, and each time that was the end of the iteration: no other group ever grew.
#[test]
fn a_decrease_that_is_never_answered_keeps_no_other_group_from_growing() {
    let mut sim = Sim::new(&format!(
        "{TWO}\nfaults: [{{fault: stockout, group: a}}, {{fault: call-fails, group: a, method: NodeGroupDecreaseTargetSize, code: unavailable}}]"
    ));
    sim.deploy("web", 6, "2");
    sim.run_until(mins(16), |sim| !sim.calls("decrease a 3").is_empty());
    let asked = sim.elapsed();
    assert_eq!(sim.calls("increase").last().unwrap().what, "increase b 2", "{}", sim.story());
    assert_eq!(sim.calls("increase").last().unwrap().at, asked, "in the same iteration");
    sim.run_for(mins(4));
    let waits: Vec<_> = sim.calls("decrease").iter().map(|noted| noted.at - asked).collect();
    assert_eq!(waits, [0, 30, 90, 210].map(secs), "{}", sim.story());
    assert_eq!(sim.running("web"), 6);
}

#[test]
fn an_increase_whose_answer_is_lost_is_not_repeated() {
    let mut sim = Sim::new(
        "groups: [{id: a, max: 10}]\nfaults: [{fault: timeout-after-effect, method: NodeGroupIncreaseSize, count: 1}]",
    );
    sim.deploy("web", 4, "2");
    sim.run_until(mins(5), |sim| sim.running("web") == 4);
    sim.run_for(mins(3));
    assert_eq!((sim.calls("increase").len(), sim.target("a")), (1, 2), "{}", sim.story());
}

#[test]
fn a_target_that_is_shown_late_is_not_raised_twice() {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]\nfaults: [{fault: stale-target, by: 50s}]");
    sim.deploy("web", 4, "2");
    sim.run_until(mins(5), |sim| sim.running("web") == 4);
    sim.run_for(Duration::from_mins(3));
    assert_eq!((sim.calls("increase").len(), sim.target("a")), (1, 2), "{}", sim.story());
}
