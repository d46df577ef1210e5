//! The clock that instances and witnesses share: the machine's, monotonic, the same in all processes.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// Time since some moment that is the same for all processes of the machine.
#[must_use]
pub fn monotonic() -> Duration {
    let time = Duration::try_from(clock_gettime(ClockId::Monotonic));
    time.expect("a monotonic clock begins at nothing")
}

/// What the wall clock said at that moment, if it was never set since.
#[must_use]
pub fn epoch() -> Timestamp {
    Timestamp::now().checked_sub(monotonic()).unwrap_or(Timestamp::UNIX_EPOCH)
}
