//! Which fault strikes, and how often it has struck. The only place where chance is drawn.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use registry::GroupId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::after;
use crate::scenario::{Fault, Kind};

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    seed: u64,
    started: Timestamp,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    fault: Fault,
    hits: u32,
    /// Each draw is another one.
    draws: u64,
}

/// Where something happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) group: Option<&'a GroupId>,
    pub(super) zone: Option<&'a str>,
}

/// A fault, by its line in the script.
pub(super) type FaultIndex = usize;

// === impl Ledger ===

impl Ledger {
    pub(super) fn new(seed: u64, started: Timestamp, faults: &[Fault]) -> Self {
        let entry = |fault: &Fault| Entry { fault: fault.clone(), hits: 0, draws: 0 };
        Self { seed, started, entries: faults.iter().map(entry).collect() }
    }

    /// A number that depends on what it is for and on the seed, and on nothing drawn before.
    pub(super) fn draw(&self, purpose: &str, number: u64) -> u64 {
        let mut bytes = purpose.as_bytes().to_vec();
        bytes.extend(number.to_le_bytes());
        xxh3_64_with_seed(&bytes, self.seed)
    }

    /// The faults that are on and of a kind that is wanted, and what is wanted of them.
    pub(super) fn active<T>(
        &self,
        now: Timestamp,
        wanted: impl Fn(&Kind) -> Option<T>,
    ) -> Vec<(FaultIndex, T)> {
        let on = self.entries.iter().enumerate().filter(|(_, entry)| self.is_on(entry, now));
        on.filter_map(|(index, entry)| Some((index, wanted(&entry.fault.kind)?))).collect()
    }

    /// The first fault that is on here, whatever its number.
    pub(super) fn find<T>(
        &self,
        now: Timestamp,
        place: Place<'_>,
        wanted: impl Fn(&Kind) -> Option<T>,
    ) -> Option<T> {
        let mut active = self.active(now, wanted).into_iter();
        active.find(|(index, _)| self.covers(*index, place)).map(|(_, found)| found)
    }

    /// The first fault that strikes here.
    pub(super) fn strike<T>(
        &mut self,
        now: Timestamp,
        place: Place<'_>,
        wanted: impl Fn(&Kind) -> Option<T>,
    ) -> Option<T> {
        let active = self.active(now, wanted).into_iter();
        let mut here = active.filter(|(index, _)| self.covers(*index, place)).collect::<Vec<_>>();
        let position = here.iter().position(|(index, _)| self.hit(*index))?;
        Some(here.swap_remove(position).1)
    }

    pub(super) fn covers(&self, index: FaultIndex, place: Place<'_>) -> bool {
        let Fault { group, zone, .. } = &self.entries[index].fault;
        let has_group = group.as_ref().is_none_or(|group| place.group == Some(group));
        has_group && zone.as_deref().is_none_or(|zone| place.zone == Some(zone))
    }

    /// Whether the fault strikes whom it could.
    pub(super) fn hit(&mut self, index: FaultIndex) -> bool {
        let drawn = self.draw(&format!("fault {index}"), self.entries[index].draws);
        let Entry { fault, hits, draws } = &mut self.entries[index];
        if *hits >= fault.count {
            return false;
        }
        *draws += 1;
        let is_hit = drawn.is_multiple_of(fault.one_in);
        *hits += u32::from(is_hit);
        is_hit
    }

    /// How long the fault has been on.
    pub(super) fn running_for(&self, index: FaultIndex, now: Timestamp) -> Duration {
        self.elapsed(now).unwrap_or_default().saturating_sub(self.entries[index].fault.window.start)
    }

    /// When faults begin and end, and those that come and go next do so.
    pub(super) fn edges(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        self.entries.iter().zip(0..).flat_map(move |(entry, index)| {
            let Range { start, end } = entry.fault.window;
            let turn = match entry.fault.kind {
                Kind::Flapping { every } => {
                    let turns = self.running_for(index, now).as_nanos() / every.as_nanos();
                    let turns = u32::try_from(turns + 1).unwrap_or(u32::MAX);
                    Some(start.saturating_add(every.saturating_mul(turns)))
                }
                _ => None,
            };
            [Some(start), Some(end), turn].into_iter().flatten().map(|at| after(self.started, at))
        })
    }

    fn is_on(&self, entry: &Entry, now: Timestamp) -> bool {
        self.elapsed(now).is_some_and(|elapsed| entry.fault.window.contains(&elapsed))
    }

    /// Before the beginning nothing goes wrong.
    fn elapsed(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(now.duration_since(self.started)).ok()
    }
}
