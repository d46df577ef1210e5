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
            Event::Standby => self.forget(),
            _ => {}
        }
    }

    /// It may have been asked for before, and have stayed after all.
    pub(super) fn on_drain(&mut self, name: &ObjectName) {
        self.draining.remove(name);
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
    pub(super) fn on_status(&mut self, status: &RingStatus, core: &Sharder, epoch: u64) {
        // Of what was deleted on its way nobody is told.
        if core.on_their_way() == 0 {
            self.forget();
        }
        self.metrics.set_members(status);
        self.metrics.set_traffic(core.traffic().unassigned, core.on_their_way());
        self.metrics.set_table(epoch, core.imbalance());
    }

    fn forget(&mut self) {
        self.unassigned.clear();
        self.draining.clear();
        self.forced.clear();
    }
}

fn begin(journeys: &mut BTreeMap<ObjectName, Instant>, name: &ObjectName) {
    if journeys.len() < JOURNEYS_MAX {
        journeys.entry(name.clone()).or_insert_with(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::core::object::{GroupKind, Object, Uid, Version};
    use crate::sharder::metrics::Metrics;

    /// An object that stayed, as its next owner had left, and was asked for again a day later, was told
    /// to have taken a day to be given up.
    #[tokio::test(start_paused = true)]
    async fn an_object_is_timed_from_when_it_was_last_asked_for() {
        let mut registry = Registry::default();
        let mut journeys = Journeys::new(Metrics::new(&mut registry).of_ring("sites"));
        let kind = GroupKind::new("", "Secret");
        let name = ObjectName { kind, namespace: None, name: "x".to_owned() };
        journeys.on_drain(&name);
        tokio::time::advance(Duration::from_secs(86_400)).await;
        journeys.on_drain(&name);
        tokio::time::advance(Duration::from_secs(2)).await;
        let (uid, version) = (Uid("u".to_owned()), Version("5".to_owned()));
        let object = Object { name, uid, version, shard: None, drain: None, controller: None };
        let object = Box::new(object);
        journeys.on_event(&Event::Unassigned { object, is_listed: false });
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("drain_seconds_sum{ring=\"sites\"} 2.0"), "{text}");
    }
}
