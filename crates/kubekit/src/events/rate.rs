//! How many Events a second.

use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(1);

/// Allows so many within each second.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: u32,
    window: Option<Instant>,
    used: u32,
}

// === impl Rate ===

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self { per_second, window: None, used: 0 }
    }

    /// Whether one more is allowed now; if so, it counts.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        if self.window.is_none_or(|window| now >= window + WINDOW) {
            self.window = Some(now);
            self.used = 0;
        }
        let is_allowed = self.used < self.per_second;
        self.used += u32::from(is_allowed);
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_share_and_no_more() {
        let start = tokio::time::Instant::now().into_std();
        let mut rate = Rate::new(10);
        let mut allowed = |at_ms: u64, asked: usize| {
            let now = start + Duration::from_millis(at_ms);
            (0..asked).filter(|_| rate.allows(now)).count()
        };
        assert_eq!(allowed(0, 4), 4);
        assert_eq!(allowed(900, 100), 6);
        assert_eq!(allowed(999, 1), 0);
        assert_eq!(allowed(1000, 100), 10);
        // What was not used is not saved.
        assert_eq!(allowed(60_000, 100), 10);
    }
}
