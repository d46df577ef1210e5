//! Ends leases whose time is over.

use std::{sync::Arc, time::Duration};

use etcd_api::ApiError;
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::{Error, context::Context};

/// How often deadlines are looked at; a lease ends at most this much late.
const TICK: Duration = Duration::from_millis(250);

/// Leases ended per tick, so that a crowd of them does not hold up other writes.
const PER_TICK_MAX: usize = 1000;

/// Works until `shutdown`. An error of the only member is the end of its expiry.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) -> Result<(), Error> {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        let ended = end_expired(&context).await;
        // Where the writer's role comes and goes, its next holder gives every lease its time again.
        if context.standing.is_alone() {
            ended?;
        }
    }
}

async fn end_expired(context: &Context) -> Result<(), Error> {
    let expired = context.deadlines.lock().expired(Instant::now(), PER_TICK_MAX);
    let mut revoked: FuturesUnordered<_> =
        expired.into_iter().map(|id| context.sequencer.revoke(id, None)).collect();
    while let Some(revoked) = revoked.next().await {
        match revoked {
            Ok(_) => context.metrics.lease_expired(),
            // Its client revoked it in the meantime.
            Err(error) if error.api() == ApiError::LeaseNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
