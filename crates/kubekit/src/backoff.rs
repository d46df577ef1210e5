//! How long to wait before trying again. Decides only; whoever tries does the waiting and draws the
//! randomness.

use std::time::Duration;

/// Waits that double from one failure to the next, up to a bound.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
}

// === impl Backoff ===

impl Backoff {
    /// Waits of `first` to `max`.
    #[must_use]
    pub fn new(first: Duration, max: Duration) -> Self {
        debug_assert!(first <= max, "the first wait is the shortest");
        Self { first, max, failures: 0 }
    }

    /// The wait after one more failure, between half and all of what is due: `jitter`, in 0..=1,
    /// says where. So those who failed together do not come back together.
    pub fn on_failure(&mut self, jitter: f64) -> Duration {
        debug_assert!((0.0..=1.0).contains(&jitter), "jitter is a share");
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        let due = self.first.saturating_mul(factor).min(self.max);
        self.failures = self.failures.saturating_add(1);
        due.mul_f64(0.5 + jitter / 2.0)
    }

    /// The next failure is the first one again.
    pub fn on_success(&mut self) {
        self.failures = 0;
    }

    /// Failures since the last success.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_ms(backoff: &mut Backoff, jitter: f64, count: usize) -> Vec<u128> {
        (0..count).map(|_| backoff.on_failure(jitter).as_millis()).collect()
    }

    #[test]
    fn waits_double_up_to_the_bound() {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        let waits = waits_ms(&mut backoff, 1.0, 9);
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn a_success_begins_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        waits_ms(&mut backoff, 1.0, 5);
        backoff.on_success();
        assert_eq!(backoff.failures(), 0);
        assert_eq!(waits_ms(&mut backoff, 1.0, 2), [100, 200]);
    }

    #[test]
    fn jitter_shortens_by_half_at_most() {
        let mut backoff = Backoff::new(Duration::from_millis(1000), Duration::from_millis(1000));
        assert_eq!(backoff.on_failure(0.0).as_millis(), 500);
        assert_eq!(backoff.on_failure(0.5).as_millis(), 750);
    }

    #[test]
    fn a_lifetime_of_failures_stays_at_the_bound() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        let last = waits_ms(&mut backoff, 1.0, 200).pop();
        assert_eq!(last, Some(10_000));
    }
}
