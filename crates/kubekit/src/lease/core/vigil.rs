//! Waiting for a holder's next word.

use std::time::{Duration, Instant};

use super::Sighting;

/// Watches over one Lease that somebody else holds.
///
/// The time of the first sighting counts, not the one written in the Lease: whoever has only just
/// looked has to wait a full duration, however old the Lease says it is.
#[derive(Clone, Debug)]
pub struct Vigil {
    duration: Duration,
    seen: Sighting,
    since: Instant,
}

/// Whether a Lease that exists may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody holds it, or its holder has been silent for too long. Taking it must be refused if it
    /// was written since the sighting.
    TakeOver,
    /// Its holder may still be at work; ask again then, at the earliest.
    Wait { until: Instant },
}

// === impl Vigil ===

impl Vigil {
    /// Begins with a first sighting. `duration` is the shortest wait; a holder who states a longer
    /// one is believed.
    #[must_use]
    pub fn begin(duration: Duration, seen: Sighting, now: Instant) -> Self {
        Self { duration, seen, since: now }
    }

    /// Takes note of one more look.
    pub fn on_seen(&mut self, seen: Sighting, now: Instant) {
        if self.seen != seen {
            self.seen = seen;
            self.since = now;
        }
    }

    #[must_use]
    pub fn verdict(&self, now: Instant) -> Verdict {
        let until = self.lapses_at();
        if self.seen.holder.is_none() || now >= until {
            Verdict::TakeOver
        } else {
            Verdict::Wait { until }
        }
    }

    /// When the holder's silence has lasted too long.
    #[must_use]
    pub fn lapses_at(&self) -> Instant {
        self.since + self.duration.max(self.seen.stated_duration.unwrap_or_default())
    }

    #[must_use]
    pub fn seen(&self) -> &Sighting {
        &self.seen
    }
}
