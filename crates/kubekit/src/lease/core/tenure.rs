//! Holding a Lease.

use std::time::Instant;

use super::Timings;

/// How long the holder of a Lease may act on it.
///
/// Everything counts from before the last successful request left: its answer may have come late,
/// and others began to wait no earlier than the server received it.
#[derive(Clone, Copy, Debug)]
pub struct Tenure {
    timings: Timings,
    renewed: Instant,
}

// === impl Tenure ===

impl Tenure {
    /// Begins when the request that took the Lease was sent at `sent`, and succeeded.
    #[must_use]
    pub fn begin(timings: Timings, sent: Instant) -> Self {
        Self { timings, renewed: sent }
    }

    /// A renewal sent at `sent` has succeeded.
    pub fn on_renewed(&mut self, sent: Instant) {
        debug_assert!(sent >= self.renewed, "renewals are sent one after the other");
        self.renewed = sent;
    }

    #[must_use]
    pub fn may_write(&self, now: Instant) -> bool {
        now < self.may_write_until()
    }

    #[must_use]
    pub fn may_write_until(&self) -> Instant {
        self.renewed + self.timings.write_until
    }

    #[must_use]
    pub fn is_renewal_due(&self, now: Instant) -> bool {
        now >= self.renewal_due_at()
    }

    #[must_use]
    pub fn renewal_due_at(&self) -> Instant {
        self.renewed + self.timings.renew_after
    }
}
