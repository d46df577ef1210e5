//! How long a Lease lasts, for those who hold it and those who wait for it.

use std::time::Duration;

/// The times of one kind of Lease, equal for all who compete for it.
///
/// `renew_after < write_until < duration`: there is time to renew before writing ends, and writing
/// has ended before anybody may take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// Others wait this long without a sign of the holder before they take over.
    pub duration: Duration,
    /// The holder renews this long after it began its last successful renewal.
    pub renew_after: Duration,
    /// The holder starts no write later than this after it began its last successful renewal.
    pub write_until: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
}

/// Why times were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTimings {
    #[error("a Lease renewed every {renew_after:?} cannot end its writes after {write_until:?}")]
    NoTimeToRenew { renew_after: Duration, write_until: Duration },
    #[error("a Lease of {duration:?} must end its writes before that, not after {write_until:?}")]
    NoTimeToStop { write_until: Duration, duration: Duration },
    #[error("requests need time to be answered")]
    NoTimeToAnswer,
}

// === impl Timings ===

impl Timings {
    /// For locks held during a few requests.
    pub const LOCK: Self = Self {
        duration: Duration::from_secs(10),
        renew_after: Duration::from_secs(3),
        write_until: Duration::from_secs(6),
        request_timeout: Duration::from_secs(2),
    };

    /// For a leadership held for as long as the process lives; the times Kubernetes' own
    /// components use.
    pub const LEADER: Self = Self {
        duration: Duration::from_secs(15),
        renew_after: Duration::from_secs(2),
        write_until: Duration::from_secs(10),
        request_timeout: Duration::from_secs(2),
    };

    pub fn validate(&self) -> Result<(), InvalidTimings> {
        let Self { duration, renew_after, write_until, request_timeout } = *self;
        if renew_after >= write_until {
            return Err(InvalidTimings::NoTimeToRenew { renew_after, write_until });
        }
        if write_until >= duration {
            return Err(InvalidTimings::NoTimeToStop { write_until, duration });
        }
        if request_timeout.is_zero() {
            return Err(InvalidTimings::NoTimeToAnswer);
        }
        Ok(())
    }
}
