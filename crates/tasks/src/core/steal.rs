//! When a node takes a task it could run: the nearest at once, others later, so that most claims are
//! made by one node only. And how many it takes at once when there is more than enough.

mod meter;

use std::time::Duration;

use super::id::{NodeId, TaskId};
use super::rank::unit_hash;

pub use meter::{STEP_MAX, STEP_MIN, STEP_START, StepMeter};

/// How much later a fully loaded node comes than an empty one.
pub const LOAD_DELAY: Duration = Duration::from_millis(10);
/// Nodes of this rank and beyond come at random times after the others: waiting `step` for each of
/// hundreds of nodes would leave a task lying if the first ones are full.
pub const RANK_STEPS_MAX: usize = 4;
/// What one request may claim. Bounded so that one node does not empty the queue before others look.
pub const CLAIMS_PER_REQUEST_MAX: usize = 32;
/// A backlog this many times what fits here now is plenty for everybody.
pub const BACKLOG_FACTOR: usize = 2;

/// What decides how long a node waits before it takes a task.
#[derive(Clone, Copy, Debug)]
pub struct Approach {
    pub rank: usize,
    /// The largest share of the node's capacity that is reserved.
    pub load: f64,
    pub step: Duration,
}

// === impl Approach ===

impl Approach {
    /// From seeing the queued task to claiming it.
    #[must_use]
    pub fn delay(&self, task: TaskId, node: NodeId) -> Duration {
        let steps = u32::try_from(self.rank.min(RANK_STEPS_MAX)).expect("a few steps");
        let by_rank = self.step * steps;
        let by_load = if self.rank > 0 { LOAD_DELAY.mul_f64(self.load) } else { Duration::ZERO };
        let is_far = self.rank >= RANK_STEPS_MAX;
        let spread = if is_far { unit_hash(task.0.as_bytes(), node) } else { 0.0 };
        by_rank + by_load + self.step.mul_f64(spread)
    }
}

/// How many tasks to claim in one request, given what fits now and how many wait: one at a time
/// while they are scarce.
#[must_use]
pub fn claims_at_once(fits: usize, backlog: usize) -> usize {
    let is_plenty = backlog > fits.saturating_mul(BACKLOG_FACTOR);
    if is_plenty { fits.min(CLAIMS_PER_REQUEST_MAX) } else { fits.min(1) }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn delay_ms(rank: usize, load: f64) -> f64 {
        let approach = Approach { rank, load, step: Duration::from_millis(10) };
        let (task, node) = (TaskId(Uuid::from_u128(1)), NodeId(Uuid::from_u128(2)));
        approach.delay(task, node).as_secs_f64() * 1000.0
    }

    #[test]
    fn the_nearest_comes_at_once_and_the_loaded_come_later() {
        for (rank, load, expected) in
            [(0, 0.0, 0.0), (0, 1.0, 0.0), (1, 0.0, 10.0), (1, 0.5, 15.0), (3, 1.0, 40.0)]
        {
            assert!((delay_ms(rank, load) - expected).abs() < 1e-6, "rank {rank}, load {load}");
        }
    }

    #[test]
    fn the_far_ones_are_spread_over_one_step() {
        let far = delay_ms(4, 0.0);
        assert!((40.0..50.0).contains(&far) && (far - 40.0).abs() > f64::EPSILON, "{far}");
        assert!((delay_ms(400, 0.0) - far).abs() < 1e-9, "beyond four, rank adds nothing");
    }

    #[test]
    fn claims_are_bundled_only_when_there_is_plenty() {
        for (fits, backlog, expected) in
            [(0, 100, 0), (3, 6, 1), (3, 7, 3), (40, 80, 1), (40, 81, 32), (1, 0, 1)]
        {
            assert_eq!(claims_at_once(fits, backlog), expected, "{fits} of {backlog}");
        }
    }
}
