//! The promises hold whatever happens.

use std::ops::Range;

use super::{Plot, World, replay};

/// How many seeds are looked at if nobody asks for more.
const SEEDS_DEFAULT: u64 = 40;

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(seeds)) => 0..seeds,
        (None, None) => 0..SEEDS_DEFAULT,
    }
}

#[track_caller]
fn check(is_fenced: bool) {
    for seed in seeds() {
        let instances = 2 + usize::try_from(seed % 4).expect("small");
        let plot = Plot { seed, instances, objects: 14, is_rough: true, is_fenced, fault: None };
        if let Err(what) = World::new(plot).live() {
            panic!("{what}\n{}", replay("seeds", seed));
        }
    }
}

#[test]
fn promises_hold_in_rough_seas() {
    check(false);
}

#[test]
fn promises_hold_behind_a_fence() {
    check(true);
}
