//! The two times of a node: the wall clock, which others read too, and the time since boot, which
//! never jumps. Reads neither.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;

/// Time since boot, counting suspension (`CLOCK_BOOTTIME`). Means nothing on another machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boottime(pub Duration);

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub boot: Boottime,
    pub wall: Timestamp,
}

/// Unix seconds, as in the keys of ended tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

// === impl Boottime ===

impl Boottime {
    /// How long ago `earlier` was; nothing if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Boottime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Boottime {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

// === impl Epoch ===

impl Epoch {
    /// A clock set before 1970 counts as 1970: the key has no sign.
    #[must_use]
    pub fn of(at: Timestamp) -> Self {
        Self(u64::try_from(at.as_second()).unwrap_or(0))
    }
}

/// The moment after `at`, or the end of time: a `not_before` beyond it is never reached either way.
#[must_use]
pub fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// How long until `at`; nothing if it has passed.
#[must_use]
pub fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)
}
