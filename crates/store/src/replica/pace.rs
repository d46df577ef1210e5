//! How often a follower looks at the journal when nobody tells it to. Only decides.

use std::time::Duration;

/// Where looks find what nobody told of: the way from the writer is broken, and is made up for.
const WAIT_MIN: Duration = Duration::from_millis(5);
/// Where they find nothing: the writer tells, or does not write.
const WAIT_MAX: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(super) struct Pace {
    wait: Duration,
}

// === impl Pace ===

impl Default for Pace {
    fn default() -> Self {
        Self { wait: WAIT_MAX }
    }
}

impl Pace {
    pub(super) fn wait(&self) -> Duration {
        self.wait
    }

    /// After a look that nobody asked for, and that found news or did not.
    pub(super) fn on_own_look(&mut self, has_found: bool) {
        self.wait = if has_found { WAIT_MIN } else { (self.wait * 2).min(WAIT_MAX) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_told_of_is_looked_for_more_often() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(), WAIT_MAX);
        pace.on_own_look(true);
        assert_eq!(pace.wait(), WAIT_MIN);
        let mut waits = Vec::new();
        for _ in 0..4 {
            pace.on_own_look(false);
            waits.push(pace.wait().as_millis());
        }
        assert_eq!(waits, [10, 20, 25, 25]);
    }
}
