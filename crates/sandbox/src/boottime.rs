//! The clock of deadlines, and the one by which people read logs. Nothing else in this crate asks
//! what time it is.

use std::{ops::Add, time::Duration};

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

/// Time since boot, counting suspension (`CLOCK_BOOTTIME`): never jumps, and means nothing on
/// another machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Boottime(pub Duration);

// === impl Boottime ===

impl Boottime {
    /// Later than everything.
    pub const NEVER: Self = Self(Duration::from_nanos(u64::MAX));

    /// What the machine's clock shows.
    #[must_use]
    pub fn now() -> Self {
        Self(since_start(clock_gettime(ClockId::Boottime)))
    }

    #[must_use]
    pub fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// At most what 64 bits hold, which is more than five centuries.
    #[must_use]
    pub fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long it is until then; nothing if it has passed.
    #[must_use]
    pub fn until(self, then: Self) -> Duration {
        then.0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Boottime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Since the epoch, as the machine believes: for people who read logs, never for decisions.
pub(crate) fn wall_time() -> Duration {
    since_start(clock_gettime(ClockId::Realtime))
}

/// A clock set before its own start counts as standing there.
fn since_start(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
