//! Killed before any write or call, the next one goes on: nothing is asked for twice, nothing goes early.

use crate::sim::{Sim, TICK, mins};

/// So many points are tried one by one; scenarios have fewer.
const POINTS_MAX: usize = 400;

/// Goes on with a story once for each write and call at which the process may die, with and without its
/// state.
fn at_every_point(story: &Sim, holds: impl Fn(&mut Sim, &str)) {
    let mut whole = story.fork();
    run(&mut whole);
    let points = whole.points;
    assert!((1..POINTS_MAX).contains(&points), "{points} points");
    for loses_state in [false, true] {
        for point in 1..=points {
            let mut sim = story.fork();
            (sim.dies_at, sim.loses_state) = (Some(point), loses_state);
            run(&mut sim);
            holds(&mut sim, &format!("killed at {point}, state lost: {loses_state}"));
        }
    }
}

fn run(sim: &mut Sim) {
    sim.run_for(mins(4));
}

#[test]
fn no_increase_is_made_twice() {
    let story = || {
        let mut sim = Sim::new("groups: [{id: a, max: 10}, {id: b, max: 10}]");
        sim.deploy("web", 4, "2");
        sim
    };
    at_every_point(&story(), |sim, when| {
        let size = sim.target("a") + sim.target("b");
        assert!(size <= 2, "{when}: {size}\n{}", sim.story());
        if !sim.loses_state {
            sim.run_until(mins(25), |sim| sim.running("web") == 4);
        }
        let size = sim.target("a") + sim.target("b");
        assert_eq!(size.max(2), 2, "{when}: {}", sim.story());
    });
}

#[test]
fn no_increase_with_a_lost_answer_is_made_twice() {
    let story = || {
        let mut sim = Sim::new(
            "groups: [{id: a, max: 10}]\nfaults: [{fault: timeout-after-effect, method: NodeGroupIncreaseSize, count: 1}]",
        );
        sim.deploy("web", 4, "2");
        sim
    };
    at_every_point(&story(), |sim, when| {
        assert!(sim.target("a") <= 2, "{when}: {}", sim.story());
    });
}

/// A story that ends with a node's removal, which takes from `unneeded` on ten minutes.
fn removal() -> Sim {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 12, target: 3}]");
    sim.deploy("web", 2, "3");
    sim.run_for(mins(9));
    sim
}

#[test]
fn no_node_goes_early_or_twice() {
    let mut whole = removal();
    run(&mut whole);
    let due = whole.calls("delete")[0].at;
    at_every_point(&removal(), |sim, when| {
        let deleted = sim.calls("delete");
        assert!(deleted.iter().all(|noted| noted.at >= due), "{when}: {}", sim.story());
        assert!(sim.target("a") >= 2, "{when}: {}", sim.story());
        sim.run_until(mins(25), |sim| sim.kube.nodes.len() == 2);
        assert_eq!((sim.target("a"), sim.running("web")), (2, 2), "{when}: {}", sim.story());
        sim.run_for(mins(1));
        let is_marked = |node: &k8s_openapi::api::core::v1::Node| {
            crate::sim::objects::has_taint(node, autoscaler::core::names::TO_BE_DELETED)
        };
        assert!(!sim.kube.nodes.values().any(is_marked), "{when}: {}", sim.story());
    });
}

/// A story that ends with the removal of a node whose one pod has to move first.
fn moving() -> Sim {
    let mut sim = super::with_a_pod_to_move();
    // For five minutes it is not looked at again whether the pod finds another place.
    sim.run_for(mins(14));
    sim
}

#[test]
fn no_pod_is_lost_and_no_node_goes_early_while_pods_move() {
    let story = moving();
    let mut whole = story.fork();
    run(&mut whole);
    assert_eq!(
        (whole.calls("evict").len(), whole.calls("delete").len()),
        (1, 1),
        "{}",
        whole.story()
    );
    let due = whole.calls("taint")[0].at;
    at_every_point(&story, |sim, when| {
        let deleted = sim.calls("delete");
        assert!(deleted.iter().all(|noted| noted.at >= due), "{when}: {}", sim.story());
        sim.run_until(mins(25), |sim| sim.kube.nodes.len() == 1);
        sim.run_for(mins(1));
        assert_eq!((sim.target("a"), sim.running("web")), (1, 1), "{when}: {}", sim.story());
        assert_eq!(sim.calls("delete").len(), 1, "{when}: {}", sim.story());
    });
}

/// A story that ends with a target lowered, in a group that has two nodes.
fn stockout() -> Sim {
    let mut sim =
        Sim::new("groups: [{id: a, max: 12, target: 2}]\nfaults: [{fault: stockout, group: a}]");
    sim.deploy("web", 6, "2");
    sim.run_for(mins(13));
    sim
}

#[test]
fn no_target_is_lowered_early_or_below_what_is_there() {
    let mut whole = stockout();
    let asked = whole.target("a");
    assert!(asked > 2, "{}", whole.story());
    run(&mut whole);
    let due = whole.calls("decrease")[0].at;
    assert_eq!(whole.target("a"), 2, "{}", whole.story());
    at_every_point(&stockout(), |sim, when| {
        let lowered = sim.calls("decrease");
        assert!(lowered.iter().all(|noted| noted.at >= due), "{when}: {}", sim.story());
        for _ in 0..mins(20).as_secs() / TICK.as_secs() {
            let target = sim.target("a");
            assert!((2..=asked).contains(&target), "{when}: {target}\n{}", sim.story());
            assert_eq!(sim.kube.nodes.len(), 2, "{when}: {}", sim.story());
            sim.tick();
        }
        let lowered = sim.calls("decrease").len();
        assert!(lowered >= 1, "{when}: never given up\n{}", sim.story());
    });
}

#[test]
fn saving_and_restoring_before_every_iteration_changes_no_decision() {
    for story in [removal(), stockout()] {
        let mut straight = story.fork();
        run(&mut straight);
        straight.run_for(mins(10));
        let mut restarted = story.fork();
        // Not while a node is being drained: that is begun anew by whoever comes after.
        for _ in 0..84 {
            restarted.restarts_always = restarted.memory.drains.is_empty();
            restarted.tick();
        }
        assert_eq!(straight.calls, restarted.calls);
    }
}
