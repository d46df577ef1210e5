//! Waiting for a level, within a bound: the only place here that lets time pass.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

/// Longer than anything here should take: a test that would wait for ever fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The moment by which whoever asks now has lost patience.
pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// Looks until there is something to see.
#[track_caller]
pub(crate) fn until<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = soon();
        loop {
            ticks.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
            assert!(Instant::now() < deadline, "{caller}: waited for {what} in vain");
        }
    }
}
