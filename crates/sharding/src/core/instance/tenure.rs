//! How long an instance may believe that it holds its Lease.
//!
//! Everything counts from before the last successful renewal left, on a clock that counts suspension:
//!
//! | of D | |
//! |---|---|
//! | 1/5 | the next renewal, and the longest a request may take |
//! | 2/3 | the deadline: every reconcile stops |
//! | 1 | the sharder gives it nothing new |
//! | 2 | the sharder takes the Lease |

use std::time::Duration;

use crate::core::time::Moment;

const RENEWALS: u32 = 5;

#[derive(Clone, Copy, Debug)]
pub struct Tenure {
    duration: Duration,
    /// When the last successful renewal was sent.
    renewed: Option<Moment>,
}

// === impl Tenure ===

impl Tenure {
    /// Of somebody who holds nothing yet.
    #[must_use]
    pub fn none(duration: Duration) -> Self {
        Self { duration, renewed: None }
    }

    /// A write that was sent at `sent` has succeeded.
    pub fn on_renewed(&mut self, sent: Moment) {
        self.renewed = self.renewed.max(Some(sent));
    }

    #[must_use]
    pub fn renew_every(&self) -> Duration {
        self.duration / RENEWALS
    }

    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.renewed.map(|renewed| renewed + self.duration * 2 / 3)
    }

    #[must_use]
    pub fn is_valid(&self, now: Moment) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }
}
