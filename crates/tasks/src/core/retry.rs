//! How often a task is put back into the queue, and how long it waits there. Counts; changes nothing.

use std::time::Duration;

use super::spec::BACKOFF_MAX;

/// A task that takes its node down with it must not take down the cluster.
pub const CLUSTER_RESTARTS_MAX: u32 = 5;
/// "Never started" is retried this often: the next node may have what this one lacks.
pub const START_FAILURES_MAX: u32 = 3;
/// Short, because another node is tried first.
pub const START_BACKOFF: Duration = Duration::from_secs(1);

/// How long to wait before try `number` (from 1): `first`, doubled for each further one.
#[must_use]
pub fn backoff(first: Duration, number: u32) -> Duration {
    let doubled = 2_u32.checked_pow(number.saturating_sub(1));
    doubled.and_then(|times| first.checked_mul(times)).unwrap_or(BACKOFF_MAX).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_doubles_up_to_its_bound() {
        let waits = |first: u64| {
            [1, 2, 3, 4, 5, 6, 100]
                .map(|number| backoff(Duration::from_secs(first), number).as_secs())
        };
        assert_eq!(waits(10), [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(waits(300), [300; 7]);
        assert_eq!(waits(0)[..6], [0; 6]);
    }
}
