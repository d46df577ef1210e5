//! The promises hold whatever happens.

use std::ops::Range;

use super::{Plot, Violation, World, replay};

/// How many seeds are looked at if nobody asks for more.
const SEEDS_DEFAULT: u64 = 40;
/// And if the tests are to run at length.
const SEEDS_FULL: u64 = 1000;

pub(super) fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match (number("SIM_SEED"), number("SIM_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(seeds)) => 0..seeds,
        (None, None) if std::env::var_os("WINDLASS_TEST_FULL").is_some() => 0..SEEDS_FULL,
        (None, None) => 0..SEEDS_DEFAULT,
    }
}

#[test]
fn promises_hold_in_rough_seas() {
    check(true);
}

/// Nothing happens to the cluster but that its clocks differ, so nobody idles while a task waits.
#[test]
fn promises_hold_in_calm_seas() {
    check(false);
}

fn check(is_rough: bool) {
    for seed in seeds() {
        let hosts = 2 + usize::try_from(seed % 4).expect("small");
        let plot = Plot { seed, hosts, tasks: 16, is_rough, crash_at: None, fault: None };
        if let Err(Violation(what)) = World::new(plot).live() {
            panic!("{what}\n{}", replay("seeds", seed));
        }
    }
}
