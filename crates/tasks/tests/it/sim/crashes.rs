//! A crash at every step: the daemon dies after any of its commands, and the story goes on.

use super::seeds::seeds;
use super::{Plot, Violation, World, replay};

/// Each seed is lived through once per step, so a few are many lives.
const SEEDS_PER_RUN: u64 = 20;

#[test]
fn a_crash_at_every_step() {
    let all = seeds();
    let some = all.start..all.end.min(all.start + (all.end - all.start).div_ceil(SEEDS_PER_RUN));
    for seed in some {
        let quiet = Plot { seed, hosts: 3, tasks: 6, is_rough: false, crash_at: None, fault: None };
        let steps = live(quiet);
        for step in 0..steps {
            live(Plot { crash_at: Some(step), ..quiet });
        }
    }
}

/// How many steps the life had.
fn live(plot: Plot) -> usize {
    match World::new(plot).live() {
        Ok(steps) => steps,
        Err(Violation(what)) => {
            panic!("crash at {:?}: {what}\n{}", plot.crash_at, replay("crashes", plot.seed))
        }
    }
}
