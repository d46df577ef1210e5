//! Which step comes next. Everything follows from the seed and from what the stores answered, so
//! a seed and a number of steps replay a run.

mod auth;
mod keys;
mod kv;
mod lease;
mod others;
mod watch;

use std::collections::VecDeque;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::step::Step;

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Everything but auth.
    Open,
    /// Users, roles and tokens, with reads and writes that are allowed or not.
    Guarded,
}

/// The stores' state as far as it makes requests interesting.
#[derive(Clone, Copy, Debug)]
pub struct World {
    pub revision: i64,
    pub compacted: i64,
}

pub struct Generator {
    rng: StdRng,
    profile: Profile,
    world: World,
    /// Steps that belong together and come next.
    planned: VecDeque<Step>,
    /// Ids of leases that were granted and not revoked.
    leases: Vec<i64>,
    next_lease: i64,
    /// How many leases the server named.
    chosen_leases: i64,
    /// Who holds locks and leads, by lease: a second claim would wait for ever.
    holders: Vec<others::Holder>,
}

// === impl World ===

impl Default for World {
    fn default() -> Self {
        Self { revision: 1, compacted: 0 }
    }
}

// === impl Generator ===

impl Generator {
    #[must_use]
    pub fn new(seed: u64, profile: Profile) -> Self {
        let mut generator = Self {
            rng: StdRng::seed_from_u64(seed),
            profile,
            world: World::default(),
            planned: VecDeque::new(),
            leases: Vec::new(),
            next_lease: 1000,
            chosen_leases: 0,
            holders: Vec::new(),
        };
        if profile == Profile::Guarded {
            generator.plan_guard();
        }
        generator
    }

    /// Takes note of what both stores answered.
    pub fn on_answer(&mut self, world: World) {
        self.world = world;
    }

    pub fn next_step(&mut self) -> Step {
        if let Some(step) = self.planned.pop_front() {
            return step;
        }
        match self.profile {
            Profile::Open => self.open_step(),
            Profile::Guarded => self.guarded_step(),
        }
    }

    fn open_step(&mut self) -> Step {
        match self.below(100) {
            0..58 => self.kv_step(),
            58..72 => self.lease_step(),
            72..88 => self.watch_step(),
            88..92 => self.compact_step(),
            92..96 => self.maintenance_step(),
            96 => self.cluster_step(),
            _ => self.claim_step(),
        }
    }

    fn guarded_step(&mut self) -> Step {
        match self.below(100) {
            0..45 => self.kv_step(),
            45..55 => self.lease_step(),
            55..60 => self.watch_step(),
            60..62 => self.compact_step(),
            62..66 => self.maintenance_step(),
            _ => self.auth_step(),
        }
    }

    /// A number below the bound.
    fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    /// True once in so many times.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// A revision that exists, existed, never was, or is still to come.
    fn any_revision(&mut self) -> i64 {
        let World { revision, compacted } = self.world;
        match self.below(10) {
            0 => revision + 1 + self.below(5) as i64,
            1 => compacted,
            2 => compacted - 1,
            3 => -(self.below(3) as i64),
            4 => revision,
            _ => self.rng.random_range(compacted.min(revision)..=revision),
        }
    }
}
