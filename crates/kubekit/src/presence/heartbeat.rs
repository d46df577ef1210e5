//! Our own Lease: created, kept, and removed at the end.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::lease::call::Leases;
use crate::lease::object::{self, Claim};
use crate::lease::{self, WallClock};

pub(super) struct Heartbeat {
    leases: Leases,
    name: String,
    claim: Claim,
    renew_every: Duration,
    clock: WallClock,
    /// As last written by us.
    lease: Option<Lease>,
    is_failing: bool,
}

// === impl Heartbeat ===

impl Heartbeat {
    pub(super) fn new(
        leases: Leases,
        name: String,
        claim: Claim,
        renew_every: Duration,
        clock: WallClock,
    ) -> Self {
        Self { leases, name, claim, renew_every, clock, lease: None, is_failing: false }
    }

    pub(super) async fn run(mut self, shutdown: &CancellationToken) {
        let mut ticks = tokio::time::interval(self.renew_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return self.leave().await,
                _ = ticks.tick() => {}
            }
            match self.beat().await {
                Ok(()) => self.is_failing = false,
                Err(error) => self.on_failure(&error),
            }
        }
    }

    /// One sign of life. Nobody else writes our Lease, so what stands in the way, such as a renewal
    /// whose answer was lost, is written over.
    async fn beat(&mut self) -> Result<(), lease::Error> {
        let now = (self.clock)();
        if let Some(lease) = self.lease.take() {
            self.lease = self.leases.replace(&object::renew(lease, now)).await?;
        }
        if self.lease.is_none() {
            self.lease = self.leases.create(&self.claim.create(&self.name, now)).await?;
        }
        if self.lease.is_none()
            && let Some(found) = self.leases.read(&self.name).await?
        {
            self.lease = self.leases.replace(&self.claim.take_over(found, now)).await?;
        }
        Ok(())
    }

    async fn leave(self) {
        let Some(lease) = &self.lease else { return };
        if let Err(error) = self.leases.delete(lease).await {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(lease = self.name, error, "others will notice our end by our silence");
        }
    }

    /// A row of failures is one to whoever reads the log.
    fn on_failure(&mut self, error: &lease::Error) {
        let error: &dyn std::error::Error = error;
        if self.is_failing {
            tracing::debug!(lease = self.name, error, "still no sign of life");
        } else {
            tracing::warn!(lease = self.name, error, "cannot give a sign of life, trying again");
        }
        self.is_failing = true;
    }
}
