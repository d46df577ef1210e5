//! How long a group is left alone after a failure. Starts by itself, ends by time; success does not
//! shorten it, since the next failure is then as likely as the last.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::BackoffTimes;
use crate::time::later;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    pub until: Timestamp,
    pub duration: Duration,
    pub last_failure: Timestamp,
    pub code: String,
    pub message: String,
}

// === impl Backoff ===

impl Backoff {
    /// What a failure makes of an earlier one. Inside its window it only lasts longer: several nodes
    /// failing together are one failure.
    pub(crate) fn after(
        earlier: Option<&Self>,
        (code, message): (&str, &str),
        now: Timestamp,
        times: &BackoffTimes,
    ) -> Self {
        let remembered = earlier.filter(|earlier| !earlier.is_forgotten(now, times));
        let duration = match remembered {
            None => times.initial,
            Some(earlier) if earlier.is_on(now) => earlier.duration,
            Some(earlier) => earlier.duration.saturating_mul(2).min(times.max),
        };
        Self {
            until: later(now, duration),
            duration,
            last_failure: now,
            code: code.to_owned(),
            message: message.to_owned(),
        }
    }

    #[must_use]
    pub fn is_on(&self, now: Timestamp) -> bool {
        now < self.until
    }

    pub(crate) fn is_forgotten(&self, now: Timestamp, times: &BackoffTimes) -> bool {
        now >= later(self.last_failure, times.reset) && !self.is_on(now)
    }
}
