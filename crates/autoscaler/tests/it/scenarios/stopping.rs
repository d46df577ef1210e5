//! Told to stop, or led by somebody else, the loop ends what is under way and begins nothing new.

use std::time::Duration;

use registry::Registry;

use crate::sim::{INTERRUPTED, Interruption, Sim, mins};

/// So many points are tried one by one; the stories here have fewer.
const POINTS_MAX: usize = 200;

/// Interrupts a story at each of its writes and calls, and looks at what is done after that.
fn interrupted_at_every_point(story: &Sim, interruption: fn(usize) -> Interruption) {
    let mut whole = story.fork();
    run(&mut whole);
    let points = whole.points;
    assert!((1..POINTS_MAX).contains(&points), "{points} points");
    let done = |sim: &Sim| sim.calls.len() - story.calls.len();
    assert!(done(&whole) > 4, "there is something to be kept from: {}", whole.story());
    for point in 1..=points {
        let mut sim = story.fork();
        sim.interruption = Some(interruption(point));
        run(&mut sim);
        let at = sim.calls.iter().position(|noted| noted.what == INTERRUPTED).expect("it was");
        let after = &sim.calls[at + 1..];
        // What had begun at that point.
        assert!(after.len() <= 1, "{:?} and then {after:?}", sim.interruption);
    }
}

fn run(sim: &mut Sim) {
    sim.run_for(mins(3));
}

/// Four idle nodes that are about to go, and pods that come meanwhile.
fn emptying() -> Sim {
    let mut sim = Sim::new(
        "groups: [{id: a, min: 1, max: 12, target: 5}, {id: b, max: 3, capacity: {cpu: \"16\", memory: 16Gi, pods: \"110\"}}]",
    )
    .with_config(|it| it.scale_down.delay_after_add = Duration::ZERO);
    sim.deploy("web", 1, "3");
    sim.run_for(mins(9));
    sim.deploy("late", 1, "12");
    sim
}

/// A node whose pods are about to move.
fn moving() -> Sim {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 12, target: 2}]");
    sim.deploy("filler", 1, "3");
    sim.deploy("blocker", 1, "1");
    sim.deploy("web", 4, "200m");
    sim.tick();
    sim.scale("blocker", 0);
    // For five minutes it is not looked at again whether pods find another place.
    sim.run_for(mins(14));
    sim
}

/// Only calls to the provider were kept from being made; taints, evictions and lifts went on.
#[test]
fn who_is_told_to_stop_begins_nothing_new() {
    interrupted_at_every_point(&emptying(), Interruption::StopAtPoint);
    interrupted_at_every_point(&moving(), Interruption::StopAtPoint);
}

/// Whether it still leads was asked once for all writes of a step, of which there may be hundreds.
#[test]
fn who_does_not_lead_any_more_writes_nothing() {
    interrupted_at_every_point(&emptying(), Interruption::LostAtPoint);
    interrupted_at_every_point(&moving(), Interruption::LostAtPoint);
}

/// The intent was saved first and the question asked then, so the next process waited a quarter of an
/// hour for nodes that nobody had asked for.
#[test]
fn who_is_told_to_stop_saves_no_intent_that_it_does_not_carry_out() {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]");
    sim.deploy("web", 4, "2");
    // The first reading is for the iteration, the second for the call.
    sim.interruption = Some(Interruption::StopAtRead(2));
    sim.tick();
    assert_eq!(sim.calls.len(), 1, "{}", sim.story());
    let kept = sim.saved.clone().unwrap();
    let saved = Registry::restore(sim.rules.clone(), kept.state.registry.as_bytes(), sim.now);
    assert_eq!(saved.unwrap().requests(&"a".into()).count(), 0);
    sim.interruption = None;
    sim.restart();
    sim.tick();
    assert_eq!(sim.calls("increase").len(), 1, "{}", sim.story());
}
