//! Ends leases whose time is over.

use std::{sync::Arc, time::Duration};

use etcd_api::ApiError;
use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::{Error, context::Context, lease::Deadlines, metrics::Metrics, sequencer::Sequencer};

/// How often deadlines are looked at; a lease ends at most this much late, and a crowd of them as soon
/// as the writer gets to it.
const TICK: Duration = Duration::from_millis(250);

/// Leases that are ended together. Other writes come between them and the next ones.
const TOGETHER_MAX: usize = 1000;

/// What it takes to end leases.
struct Ending<'a> {
    deadlines: &'a Mutex<Deadlines>,
    sequencer: &'a Sequencer,
    metrics: &'a Metrics,
}

/// Works until `shutdown`. An error of the only member is the end of its expiry.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) -> Result<(), Error> {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        let ending = Ending {
            deadlines: &context.deadlines,
            sequencer: &context.sequencer,
            metrics: &context.metrics,
        };
        let ended = ending.run(&shutdown).await;
        // Where the writer's role comes and goes, its next holder gives every lease its time again.
        if context.standing.is_alone() {
            ended?;
        }
    }
}

// === impl Ending ===

impl Ending<'_> {
    /// Ends what has expired. The rest waits for the next tick if the writer has much to do.
    async fn run(&self, shutdown: &CancellationToken) -> Result<(), Error> {
        let mut is_more = true;
        while is_more && !shutdown.is_cancelled() {
            is_more = self.end_some().await? == TOGETHER_MAX && self.sequencer.has_room();
        }
        Ok(())
    }

    /// Returns how many there were.
    async fn end_some(&self) -> Result<usize, Error> {
        let expired = self.deadlines.lock().expired(Instant::now(), TOGETHER_MAX);
        let count = expired.len();
        let mut revoked: FuturesUnordered<_> =
            expired.into_iter().map(|id| self.sequencer.revoke(id, None)).collect();
        while let Some(revoked) = revoked.next().await {
            match revoked {
                Ok(_) => self.metrics.lease_expired(),
                // Its client revoked it in the meantime.
                Err(error) if error.api() == ApiError::LeaseNotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use mvcc::{LeaseId, Revision};
    use prometheus_client::registry::Registry;
    use tokio::sync::mpsc;

    use super::*;
    use crate::{metrics::Proposals, sequencer::Command};

    const LEASES: i64 = 100_000;

    /// Leases that end at the same moment, as after a restart, were ended a thousand per tick: the last
    /// of 100,000 was 25 seconds late.
    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_leases_ends_a_thousand_per_tick() {
        let deadlines = Mutex::new(Deadlines::default());
        (0..LEASES).for_each(|id| deadlines.lock().grant(LeaseId(id), 2, Instant::now()));
        tokio::time::advance(Duration::from_secs(2)).await;
        let expired_at = Instant::now();

        let sequencer = Sequencer::new(true, Proposals::default());
        let (commands, mut queue) = mpsc::channel(100);
        sequencer.seat(commands);
        let writer = async move {
            while let Some(command) = queue.recv().await {
                let Command::Revoke { reply, caller: None, .. } = command else { continue };
                reply.send(Ok(Revision(1))).expect("somebody waits");
            }
        };
        let metrics = Metrics::new(&mut Registry::default());
        let ending = Ending { deadlines: &deadlines, sequencer: &sequencer, metrics: &metrics };
        let shutdown = CancellationToken::new();
        tokio::select! {
            ended = ending.run(&shutdown) => ended.expect("none fails"),
            () = writer => unreachable!("the sequencer is there"),
        }
        assert_eq!(deadlines.lock().expired(Instant::now(), 1), []);
        assert_eq!(Instant::now(), expired_at, "nothing was waited for");
    }
}
