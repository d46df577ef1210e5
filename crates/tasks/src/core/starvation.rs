//! A task that small ones keep overtaking gets room kept for it, by the one node nearest to it.

use std::time::Duration;

use super::amounts::Amounts;
use super::id::TaskId;
use super::time::Boottime;

/// Waiting longer than this, though it could run, a task is starving.
pub const STARVING_AFTER: Duration = Duration::from_secs(30);

/// A queued task that could run on this node.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub task: TaskId,
    pub demand: Amounts,
    /// Since when it could have been taken, as far as this node knows.
    pub since: Boottime,
    pub rank: usize,
}

/// The task to keep room for: the first in the queue that starves and that this node is nearest to.
/// One at a time, or all room would be kept and none used.
#[must_use]
pub fn starving(
    now: Boottime,
    queue: impl IntoIterator<Item = Waiting>,
) -> Option<(TaskId, Amounts)> {
    let starves =
        |waiting: &Waiting| waiting.rank == 0 && now.since(waiting.since) >= STARVING_AFTER;
    let first = queue.into_iter().find(starves)?;
    Some((first.task, first.demand))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_first_that_waits_too_long_at_its_nearest_node() {
        let second = |seconds| Boottime(Duration::from_secs(seconds));
        let waiting = |number, since, rank| Waiting {
            task: TaskId(Uuid::from_u128(number)),
            demand: Amounts::default(),
            since: second(since),
            rank,
        };
        let queue = [waiting(1, 20, 0), waiting(2, 0, 1), waiting(3, 10, 0), waiting(4, 0, 0)];
        let at = |seconds| starving(second(seconds), queue).map(|(task, _)| task.0.as_u128());
        assert_eq!(at(29), None);
        assert_eq!(at(30), Some(4));
        assert_eq!(at(40), Some(3));
        assert_eq!(at(50), Some(1));
    }
}
