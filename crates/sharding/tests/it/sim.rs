//! Two sharders and several instances, each with the real core, over an API server with
//! compare-and-swap and watches of any lag, in virtual time: messages are delayed and lost, processes
//! are paused, cut off and killed. Every step is told to the history, which must stay whole; when the
//! faults end, everything must come to rest.
//!
//! `SIM_SEEDS=n` looks at more seeds, `SIM_SEED=n` at one.

mod calm;
mod fault;
mod process;
mod seeded_bugs;
mod seeds;
mod server;
mod sharders;
mod world;

use self::fault::Fault;
use self::world::World;

/// How much happens to a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) seed: u64,
    pub(crate) instances: usize,
    pub(crate) objects: usize,
    /// Whether messages are delayed and lost, and processes paused, cut off and killed, at random.
    pub(crate) is_rough: bool,
    pub(crate) is_fenced: bool,
    pub(crate) fault: Option<Fault>,
}

fn replay(test: &str, seed: u64) -> String {
    format!("seed {seed}; again: SIM_SEED={seed} cargo test -p sharding --test it -- sim::{test}")
}
