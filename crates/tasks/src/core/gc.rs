//! Which ended tasks are forgotten. One node does it, chosen by [`rank::chosen`](super::rank::chosen).

use std::time::Duration;

use super::id::TaskId;
use super::time::Epoch;

pub const GC_EVERY: Duration = Duration::from_mins(1);
/// How long an ended task can be asked for.
pub const KEPT_FOR: Duration = Duration::from_hours(24);
/// However young, no more than this many ended tasks are kept.
pub const KEPT_MAX: usize = 100_000;
/// What one round forgets at most; the rest is left to the next, so that claims get their turn.
pub const ROUND_MAX: usize = 10_000;
/// The name by which the node that does it is chosen.
pub const CHORE: &str = "gc";

/// The ended tasks to forget, of all in order of their end, oldest first: those that ended before
/// `before`, and the oldest beyond the newest `kept_max`.
pub fn choose(
    ended: impl ExactSizeIterator<Item = (Epoch, TaskId)>,
    before: Epoch,
    kept_max: usize,
) -> impl Iterator<Item = TaskId> {
    let surplus = ended.len().saturating_sub(kept_max);
    let is_due =
        move |(index, (epoch, _)): &(usize, (Epoch, TaskId))| *index < surplus || *epoch < before;
    ended.enumerate().take_while(is_due).take(ROUND_MAX).map(|(_, (_, id))| id)
}

/// What ended before this is old, at `now`.
#[must_use]
pub fn horizon(now: Epoch) -> Epoch {
    Epoch(now.0.saturating_sub(KEPT_FOR.as_secs()))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[track_caller]
    fn check(epochs: &[u64], before: u64, kept_max: usize, forgotten: usize) {
        let numbered = (0..).zip(epochs).map(|(number, epoch)| (Epoch(*epoch), number));
        let ended: Vec<_> =
            numbered.map(|(epoch, n)| (epoch, TaskId(Uuid::from_u128(n)))).collect();
        let chosen: Vec<TaskId> = choose(ended.iter().copied(), Epoch(before), kept_max).collect();
        let oldest: Vec<TaskId> = ended.iter().take(forgotten).map(|(_, id)| *id).collect();
        assert_eq!(chosen, oldest);
    }

    #[test]
    fn gc_removes_old_finished_tasks() {
        check(&[], 100, 10, 0);
        check(&[98, 99, 100, 101], 100, 10, 2);
        check(&[100, 101, 102], 100, 1, 2);
        check(&[1, 2, 102], 100, 1, 2);
        check(&[100], 100, 10, 0);
        check(&vec![1; ROUND_MAX + 1], 100, 10, ROUND_MAX);
    }

    #[test]
    fn a_day_is_kept() {
        assert_eq!(horizon(Epoch(100_000)), Epoch(100_000 - 86_400));
        assert_eq!(horizon(Epoch(5)), Epoch(0));
    }
}
