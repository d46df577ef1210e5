//! Who of many is still there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::{Sighting, Verdict, Vigil};

/// The members of a group, each with a Lease it keeps renewing. One counts as gone when its Lease
/// is gone, was given back, or has not changed for its duration by our own clock.
#[derive(Debug)]
pub struct Roster {
    duration: Duration,
    members: BTreeMap<String, Vigil>,
}

// === impl Roster ===

impl Roster {
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self { duration, members: BTreeMap::new() }
    }

    /// These Leases exist and no others.
    pub fn on_listed(
        &mut self,
        listed: impl IntoIterator<Item = (String, Sighting)>,
        now: Instant,
    ) {
        let mut before = std::mem::take(&mut self.members);
        for (name, seen) in listed {
            if let Some(vigil) = before.remove(&name) {
                self.members.insert(name.clone(), vigil);
            }
            self.on_seen(name, seen, now);
        }
    }

    /// This Lease exists, as seen.
    pub fn on_seen(&mut self, name: String, seen: Sighting, now: Instant) {
        match self.members.get_mut(&name) {
            Some(vigil) => vigil.on_seen(seen, now),
            None => {
                self.members.insert(name, Vigil::begin(self.duration, seen, now));
            }
        }
    }

    pub fn on_deleted(&mut self, name: &str) {
        self.members.remove(name);
    }

    #[must_use]
    pub fn live(&self, now: Instant) -> BTreeSet<String> {
        let live = self.members.iter().filter(|(_, vigil)| is_live(vigil, now));
        live.map(|(name, _)| name.clone()).collect()
    }

    /// When the next of the living will be gone, should it stay silent.
    #[must_use]
    pub fn next_lapse(&self, now: Instant) -> Option<Instant> {
        let live = self.members.values().filter(|vigil| is_live(vigil, now));
        live.map(Vigil::lapses_at).min()
    }

    /// Leases of members that have been gone for this long and did not clean up, with the resource
    /// version they were last seen at.
    #[must_use]
    pub fn left_behind(&self, gone_for: Duration, now: Instant) -> Vec<(String, String)> {
        let gone = self.members.iter().filter(|(_, vigil)| now >= vigil.lapses_at() + gone_for);
        gone.map(|(name, vigil)| (name.clone(), vigil.seen().resource_version.clone())).collect()
    }
}

fn is_live(vigil: &Vigil, now: Instant) -> bool {
    vigil.verdict(now) != Verdict::TakeOver
}
