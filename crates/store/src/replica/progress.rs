//! When to say how far the reading of a journal is. Only decides.

use std::time::Duration;

use tokio::time::Instant;

/// Nothing is served meanwhile, so whoever waits for it sees that it goes on.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Progress {
    changes: u64,
    told: Instant,
}

// === impl Progress ===

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self { changes: 0, told: now }
    }

    /// Counts a change; how many there were, if it is time to tell.
    pub(super) fn on_change(&mut self, now: Instant) -> Option<u64> {
        self.changes += 1;
        let is_due = now.duration_since(self.told) >= TELL_EVERY;
        is_due.then(|| {
            self.told = now;
            self.changes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_once_a_second() {
        let start = Instant::now();
        let mut progress = Progress::new(start);
        let told: Vec<u64> = (1..=35)
            .filter_map(|tenth| progress.on_change(start + Duration::from_millis(100) * tenth))
            .collect();
        assert_eq!(told, [10, 20, 30]);
    }
}
