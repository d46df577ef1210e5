//! Vigils over many Leases at once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{Sighting, Verdict, Vigil};

/// Remembers since when each refused Lease has looked as it does, between one attempt and the next.
#[derive(Debug)]
pub struct Vigils {
    duration: Duration,
    max: usize,
    by_name: HashMap<String, Vigil>,
}

// === impl Vigils ===

impl Vigils {
    /// Watches over at most `max` Leases.
    #[must_use]
    pub fn new(duration: Duration, max: usize) -> Self {
        Self { duration, max, by_name: HashMap::new() }
    }

    /// Takes note of a look at a Lease, and tells whether it may be taken over.
    pub fn on_seen(&mut self, name: &str, seen: Sighting, now: Instant) -> Verdict {
        if let Some(vigil) = self.by_name.get_mut(name) {
            vigil.on_seen(seen, now);
            return vigil.verdict(now);
        }
        let vigil = Vigil::begin(self.duration, seen, now);
        let verdict = vigil.verdict(now);
        if verdict != Verdict::TakeOver {
            self.make_room(now);
            self.by_name.insert(name.to_owned(), vigil);
        }
        verdict
    }

    /// The Lease is ours, or gone.
    pub fn forget(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// Who asks often keeps its vigil fresh; one that lapsed long ago was asked about no more.
    /// Forgetting too much costs a duration of waiting, nothing else.
    fn make_room(&mut self, now: Instant) {
        if self.by_name.len() < self.max {
            return;
        }
        let grace = self.duration;
        self.by_name.retain(|_, vigil| now < vigil.lapses_at() + grace);
        if self.by_name.len() >= self.max {
            self.by_name.clear();
        }
    }
}
