//! The two clocks: one that never jumps and means nothing elsewhere, and the wall clock, which others
//! read too. Reads neither.

use std::ops::Add;
use std::time::Duration;

use jiff::Timestamp;

/// Time on a monotonic clock that counts suspension (`CLOCK_BOOTTIME` where it exists).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Duration);

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub mono: Moment,
    pub wall: Timestamp,
}

// === impl Moment ===

impl Moment {
    /// How long ago `earlier` was; nothing if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// How long until `at`; nothing if it has passed.
#[must_use]
pub fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// The moment after `at`, or the end of time: what lies beyond is never reached either way.
#[must_use]
pub fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
