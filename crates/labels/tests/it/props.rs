//! Properties of everything that can happen to a node: births, edits, deaths, watchers that come
//! and go, two processors that see old states and crash after any command.
//!
//! A failure names its seed; give that one to [`SEEDS`] to see it alone.

mod cluster;
mod crash_points;
mod in_order;
mod life;
mod model;
mod permutations;
mod processor;
mod seeded_bugs;
mod stories;
mod unreadable;
mod watchers;

use std::ops::Range;

use chance::Chance;

use self::{
    life::{Life, Order},
    processor::Fault,
};

/// What a life does against its promises.
#[derive(Debug)]
pub(crate) struct Violation(String);

/// How many lives each property looks at.
const SEEDS: Range<u64> = 0..400;

// === impl Violation ===

impl Violation {
    fn unless(holds: bool, what: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(what())) }
    }
}

/// Every life of this order keeps its promises.
#[track_caller]
fn check_all(order: Order) {
    for seed in SEEDS {
        if let Err(Violation(what)) = Life::new(Chance::new(seed), order, None).live() {
            panic!("seed {seed}: {what}");
        }
    }
}

/// The first seed whose life breaks a promise because of the fault.
fn first_broken(order: Order, fault: Fault) -> Option<(u64, Violation)> {
    let life = |seed| Life::new(Chance::new(seed), order, Some(fault)).live();
    SEEDS.into_iter().find_map(|seed| life(seed).err().map(|violation| (seed, violation)))
}
