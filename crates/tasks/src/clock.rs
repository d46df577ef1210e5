//! The two clocks of a node. Reads them; decides nothing by them.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use crate::core::time::{Boottime, Now};

/// Tells the time. The wall clock is whatever the process goes by; the time since boot is the
/// kernel's, because other processes compare with it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: fn() -> Timestamp,
}

// === impl Clock ===

impl Clock {
    #[must_use]
    pub fn new(wall: fn() -> Timestamp) -> Self {
        Self { wall }
    }

    #[must_use]
    pub fn now(&self) -> Now {
        Now { boot: self.boot(), wall: self.wall() }
    }

    #[must_use]
    pub fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    #[must_use]
    pub fn boot(&self) -> Boottime {
        let now = clock_gettime(ClockId::Boottime);
        Boottime(Duration::try_from(now).expect("time since boot is never negative"))
    }
}
