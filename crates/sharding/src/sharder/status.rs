//! What a Ring's status says, and when it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::conditions::{Facts, conditions, whole_seconds};
use super::plan::Arrangement;
use crate::core::membership::{Member, State};
use crate::core::names::InstanceId;
use crate::core::partition::{Slots, Table};
use crate::core::sharder::Traffic;
use crate::core::spec::Partitioning;
use crate::kubernetes::{MemberStatus, RingStatus};

/// A status is written at most so often, unless the table has changed.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// All that a status is made from.
pub(super) struct Picture<'a> {
    pub(super) arrangement: &'a Arrangement,
    pub(super) members: &'a [Member],
    pub(super) table: Option<&'a Table>,
    pub(super) objects: Option<&'a BTreeMap<InstanceId, u64>>,
    pub(super) imbalance: Option<f64>,
    pub(super) traffic: &'a Traffic,
    pub(super) partitioning: &'a Partitioning,
    /// What stands there; what has not changed keeps its date.
    pub(super) before: &'a RingStatus,
    pub(super) now: Timestamp,
}

/// When the next status may be written.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    written_at: Option<Instant>,
    is_urgent: bool,
    is_writing: bool,
}

/// The table is written by itself, and is not part of it.
pub(super) fn status(picture: &Picture<'_>) -> RingStatus {
    let Picture { arrangement, members, table, objects, traffic, before, now, .. } = *picture;
    let slots = table.and_then(Table::slots);
    let ready = members.iter().filter(|member| member.standing.state == State::Ready).count();
    let imbalance = picture.imbalance.map(|ratio| (ratio * 100.0).round() / 100.0);
    let facts = Facts {
        problems: &arrangement.problems,
        fencing: &arrangement.fencing,
        traffic,
        is_working: arrangement.work.is_some(),
        instances: members.len(),
        ready,
        members: table.map_or(0, |table| table.members().len()),
        slots: slots.map(Slots::count),
        objects: objects.map(|objects| objects.values().sum()),
        imbalance,
        imbalance_max_percent: picture.partitioning.max_imbalance_percent,
    };
    RingStatus {
        observed_generation: arrangement.generation,
        instances: members.len(),
        ready,
        members: members.iter().map(|member| member_status(picture, member)).collect(),
        table: None,
        moving: traffic.moving,
        imbalance,
        resources: Vec::new(),
        conditions: conditions(&facts, arrangement.generation, (&before.conditions, now)),
    }
}

fn member_status(picture: &Picture<'_>, member: &Member) -> MemberStatus {
    let state = member.standing.state.as_str();
    let mut before = picture.before.members.iter();
    let same = before.find(|it| it.id == member.id && it.state == state);
    let slots = picture.table.and_then(Table::slots);
    MemberStatus {
        id: member.id.clone(),
        namespace: member.namespace.clone().unwrap_or_default(),
        state: state.to_owned(),
        weight: member.weight,
        slots: slots.map_or(0, |slots| slots.held_by(&member.id)),
        objects: picture.objects.and_then(|it| it.get(&member.id)).copied().unwrap_or(0),
        since: same.map_or_else(|| whole_seconds(picture.now), |it| it.since.clone()),
    }
}

// === impl Throttle ===

impl Throttle {
    /// The next one need not wait.
    pub(super) fn hurry(&mut self) {
        self.is_urgent = true;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        let is_late = self.written_at.is_none_or(|at| now.duration_since(at) >= WRITE_EVERY);
        !self.is_writing && (self.is_urgent || is_late)
    }

    pub(super) fn on_sent(&mut self) {
        (self.is_writing, self.is_urgent) = (true, false);
    }

    /// Written, or there was nothing to write.
    pub(super) fn on_written(&mut self, now: Instant) {
        if !std::mem::take(&mut self.is_writing) {
            self.is_urgent = false;
        }
        self.written_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_every_ten_seconds_unless_it_is_urgent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut throttle = Throttle::default();
        assert!(throttle.is_due(at(0)));
        throttle.on_sent();
        assert!(!throttle.is_due(at(20)), "one at a time");
        throttle.on_written(at(20));
        assert!(!throttle.is_due(at(29)) && throttle.is_due(at(30)));
        throttle.hurry();
        assert!(throttle.is_due(at(21)));
    }

    #[test]
    fn what_became_urgent_meanwhile_is_written_next() {
        let now = Instant::now();
        let mut throttle = Throttle::default();
        throttle.on_sent();
        throttle.hurry();
        throttle.on_written(now);
        assert!(throttle.is_due(now));
        throttle.on_written(now);
        assert!(!throttle.is_due(now), "there was nothing to write");
    }
}
