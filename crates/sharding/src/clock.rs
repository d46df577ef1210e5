//! The two clocks of the core, read in one place. The one that never jumps also counts while the machine
//! sleeps: a Lease that ended meanwhile has ended.

use std::time::Duration;

use kubekit::lease::WallClock;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use crate::core::time::{Moment, Now};

/// `CLOCK_MONOTONIC` stands still while the machine is suspended.
#[cfg(target_os = "linux")]
const MONOTONIC: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const MONOTONIC: ClockId = ClockId::Monotonic;

pub(crate) fn now(wall: WallClock) -> Now {
    let since_boot = Duration::try_from(clock_gettime(MONOTONIC));
    let mono = Moment(since_boot.expect("a machine has not run for less than nothing"));
    Now { mono, wall: wall() }
}

/// A moment of the runtime's clock on the core's.
pub(crate) fn moment(at: Instant, now: Now) -> Moment {
    now.mono + at.saturating_duration_since(Instant::now())
}
