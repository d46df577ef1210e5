//! Waiting for a level: the only place in this crate that lets time pass.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often a level is looked at.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// What a look at the world showed.
#[derive(Debug)]
pub enum Level<T> {
    Reached(T),
    /// Not yet; the text says how things stand.
    Below(String),
}

/// The time left for something to happen, spent a poll at a time.
#[derive(Debug)]
pub struct Patience {
    what: String,
    bound: Duration,
    deadline: Instant,
    ticks: Interval,
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
    let mut patience = Patience::new(what, bound);
    loop {
        match probe().await? {
            Level::Reached(value) => return Ok(value),
            Level::Below(status) => patience.wait(&status).await?,
        }
    }
}

/// Lets time pass, for what shows only by what has not happened after a while.
///
/// # Errors
///
/// When twice the time has passed: the machine stood still meanwhile.
pub async fn pass(time: Duration) -> Result<()> {
    let began = Instant::now();
    wait_for("time to pass", 2 * time, async || {
        let elapsed = began.elapsed();
        Ok(if elapsed >= time { Level::Reached(()) } else { Level::Below(format!("{elapsed:?}")) })
    })
    .await
}

// === impl Patience ===

impl Patience {
    #[must_use]
    pub fn new(what: &str, bound: Duration) -> Self {
        let now = Instant::now();
        let mut ticks = interval_at(now + POLL_EVERY, POLL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { what: what.to_owned(), bound, deadline: now + bound, ticks }
    }

    /// Waits until it is time to look again.
    ///
    /// # Errors
    ///
    /// When the bound has passed.
    pub async fn wait(&mut self, status: &str) -> Result<()> {
        let Self { what, bound, .. } = self;
        ensure!(
            Instant::now() < self.deadline,
            "waited {bound:?} for {what}; last status: {status}"
        );
        self.ticks.tick().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

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
