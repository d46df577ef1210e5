//! Two instances never both act: a leader that slept past its lease wakes while another leads.

use std::time::Duration;

use crate::sim::Sim;

/// Longer than a lease, shorter than what is waited for after a call of unknown outcome.
const NAP: Duration = Duration::from_mins(1);

/// Longer than both.
const SLEEP: Duration = Duration::from_mins(8);

/// More writes and calls than one iteration has here.
const POINTS_MAX: usize = 60;

/// At each write and call of the next iteration, the leader falls asleep, another takes over for so
/// long, and it wakes.
fn asleep_at_every_point(
    story: impl Fn() -> Sim,
    span: Duration,
    holds: impl Fn(&mut Sim, &str),
) -> usize {
    let mut points = 0;
    for point in 1..POINTS_MAX {
        let mut sim = story();
        let before = sim.points;
        sim.advance();
        let slept = sim.iterate_asleep(before + point, |sim| sim.run_for(span));
        if !slept {
            break;
        }
        // Who is asleep just before a call has asked whether it leads, and calls when it wakes.
        if span > NAP && sim.is_before_a_call(before + point) {
            continue;
        }
        points += 1;
        sim.run_for(SLEEP);
        holds(&mut sim, &format!("asleep at {point} for {span:?}"));
    }
    points
}

fn growing() -> Sim {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]");
    sim.deploy("web", 4, "2");
    sim
}

#[test]
fn a_leader_that_wakes_asks_for_nothing_that_the_next_has_asked_for() {
    for span in [NAP, SLEEP] {
        let points = asleep_at_every_point(growing, span, |sim, when| {
            let asked = sim.calls("increase");
            assert_eq!(asked.len(), 1, "{when}: {}", sim.story());
            assert_eq!((sim.target("a"), sim.running("web")), (2, 4), "{when}: {}", sim.story());
        });
        assert!(points >= 2, "{points} points");
    }
}
