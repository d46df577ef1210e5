//! Several real agents over one store, in virtual time: messages are delayed, lost and overtake each
//! other, daemons are paused and killed, machines die. After every step the promises must hold; when
//! the faults end, everything must come to its end.
//!
//! `SIM_SEEDS=n` looks at more seeds, `SIM_SEED=n` at one, `WINDLASS_TEST_FULL=1` at a thousand.

mod crashes;
mod fault;
mod host;
mod promises;
mod runtime;
mod seeded_bugs;
mod seeds;
mod world;

use self::fault::Fault;
use self::world::World;

/// What breaks a promise.
#[derive(Debug)]
pub(crate) struct Violation(String);

// === impl Violation ===

impl Violation {
    fn unless(holds: bool, what: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(what())) }
    }
}

/// How much happens to a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    pub(crate) tasks: usize,
    /// Whether messages are delayed and lost, and hosts paused, cut off and crashed, at random.
    pub(crate) is_rough: bool,
    /// The daemon dies while it carries out its so manieth answer.
    pub(crate) crash_at: Option<usize>,
    pub(crate) fault: Option<Fault>,
}

fn replay(test: &str, seed: u64) -> String {
    format!("seed {seed}; again: SIM_SEED={seed} cargo test -p tasks --test it -- sim::{test}")
}
