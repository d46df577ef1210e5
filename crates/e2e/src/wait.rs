//! Waiting for a level: the only place in this crate that lets time pass.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often a level is looked at.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// What a look at the world showed.
#[derive(Debug)]
pub enum Level<T> {
    Reached(T),
    /// Not yet; the text says how things stand.
    Below(String),
}

/// Polls until the level is reached, and returns what reached it.
///
/// # Errors
///
/// When `bound` has passed, with the last status; or at once when the probe itself fails.
pub async fn wait_for<T>(
    what: &str,
    bound: Duration,
    mut probe: impl AsyncFnMut() -> Result<Level<T>>,
) -> Result<T> {
    let deadline = Instant::now() + bound;
    let mut ticks = interval(POLL_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match probe().await? {
            Level::Reached(value) => return Ok(value),
            Level::Below(status) if Instant::now() >= deadline => {
                bail!("waited {bound:?} for {what}; last status: {status}")
            }
            Level::Below(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_status_is_reported() {
        let mut looks = 0;
        let outcome = wait_for("a miracle", Duration::from_millis(50), async || {
            looks += 1;
            Ok(Level::<()>::Below(format!("look {looks}")))
        });
        let error = outcome.await.unwrap_err().to_string();
        assert_eq!(error, "waited 50ms for a miracle; last status: look 4");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_probe_ends_the_wait_at_once() {
        let began = Instant::now();
        let outcome: Result<()> =
            wait_for("a reply", Duration::from_secs(9), async || bail!("the child is gone")).await;
        assert_eq!(outcome.unwrap_err().to_string(), "the child is gone");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
