//! How long objects are on their way, and how often what happens to them. For metrics alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::object::ObjectName;
use crate::core::sharder::{Event, News, Sharder};
use crate::kubernetes::RingStatus;
use crate::sharder::metrics::{MoveReason, RingMetrics};

/// Journeys that are timed at once; of more, only the number is known.
const JOURNEYS_MAX: usize = 10_000;

pub(super) struct Journeys {
    metrics: RingMetrics,
    /// Seen without an owner, and since when.
    unassigned: BTreeMap<ObjectName, Instant>,
    /// To be given up, and since when.
    draining: BTreeMap<ObjectName, Instant>,
    /// About to be taken from an owner that did not give them up.
    forced: BTreeSet<ObjectName>,
}

// === impl Journeys ===

impl Journeys {
    pub(super) fn new(metrics: RingMetrics) -> Self {
        Self {
            metrics,
            unassigned: BTreeMap::new(),
            draining: BTreeMap::new(),
            forced: BTreeSet::new(),
        }
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Unassigned { object, .. } => {
                if let Some(began) = self.draining.remove(&object.name) {
                    self.metrics.on_moved(MoveReason::Drained);
                    self.metrics.on_given_up(began.elapsed());
                }
                begin(&mut self.unassigned, &object.name);
            }
            Event::NotUnassigned(name) => {
                self.unassigned.remove(name);
            }
            Event::Standby => {
                self.unassigned.clear();
                self.draining.clear();
                self.forced.clear();
            }
            _ => {}
        }
    }

    pub(super) fn on_drain(&mut self, name: &ObjectName) {
        begin(&mut self.draining, name);
    }

    pub(super) fn on_drained(&self) {
        self.metrics.on_drained();
    }

    pub(super) fn on_news(&mut self, news: &News) {
        match news {
            News::Assigned { object } => {
                let waited = self.unassigned.remove(object).map(|began| began.elapsed());
                self.metrics.on_assigned(waited);
            }
            News::Moved { object, .. } => {
                self.draining.remove(object);
                let is_forced = self.forced.remove(object);
                let reason = if is_forced { MoveReason::Forced } else { MoveReason::Departed };
                self.metrics.on_moved(reason);
            }
            News::Forced { object, .. } => {
                self.forced.insert(object.clone());
            }
            _ => {}
        }
    }

    pub(super) fn on_pass(&self, took: Duration) {
        self.metrics.on_pass(took);
    }

    /// What can be read off a state, as often as the status is looked at.
    pub(super) fn on_status(&self, status: &RingStatus, core: &Sharder, epoch: u64) {
        self.metrics.set_members(status);
        self.metrics.set_traffic(core.traffic().unassigned, core.on_their_way());
        self.metrics.set_table(epoch, core.imbalance());
    }
}

fn begin(journeys: &mut BTreeMap<ObjectName, Instant>, name: &ObjectName) {
    if journeys.len() < JOURNEYS_MAX {
        journeys.entry(name.clone()).or_insert_with(Instant::now);
    }
}
