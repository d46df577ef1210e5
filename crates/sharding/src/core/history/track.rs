//! One object through time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{Breach, Labels, Violation, Worker};
use crate::core::names::InstanceId;
use crate::core::object::Uid;

#[derive(Clone, Debug)]
pub(super) struct Track {
    parent: Option<Uid>,
    labels: Labels,
    /// The last that it had, now or before.
    last_owner: Option<InstanceId>,
    unassigned_since: Option<Timestamp>,
    moves: usize,
    work: BTreeMap<Worker, Work>,
}

/// A reconcile that has begun and, as far as is known, not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Its process was stopped from outside; it may never go on.
    is_hanging: bool,
    /// Another has begun since. It must never go on.
    is_superseded: bool,
    /// The object was taken from it by force: what it does is the fence's business.
    is_excused: bool,
}

// === impl Track ===

impl Track {
    pub(super) fn new(parent: Option<Uid>, now: Timestamp) -> Self {
        Self {
            parent,
            labels: Labels::default(),
            last_owner: None,
            unassigned_since: Some(now),
            moves: 0,
            work: BTreeMap::new(),
        }
    }

    pub(super) fn parent(&self) -> Option<&Uid> {
        self.parent.as_ref()
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(super) fn unassigned_since(&self) -> Option<Timestamp> {
        self.unassigned_since
    }

    pub(super) fn moves(&self) -> usize {
        self.moves
    }

    pub(super) fn note(&mut self, labels: Labels, now: Timestamp) {
        match &labels.shard {
            None => self.unassigned_since = self.unassigned_since.or(Some(now)),
            Some(owner) => {
                self.unassigned_since = None;
                let before = self.last_owner.replace(owner.clone());
                self.moves += usize::from(before.is_some_and(|before| before != *owner));
            }
        }
        self.labels = labels;
    }

    pub(super) fn on_began(&mut self, object: &Uid, worker: &Worker) -> Result<(), Violation> {
        self.check_alone(object, worker)?;
        for (_, work) in self.work.iter_mut().filter(|(other, _)| *other != worker) {
            work.is_superseded = true;
        }
        self.work.insert(worker.clone(), Work::default());
        Ok(())
    }

    pub(super) fn on_stepped(&mut self, object: &Uid, worker: &Worker) -> Result<(), Violation> {
        let Some(work) = self.work.get_mut(worker) else { return Ok(()) };
        work.is_hanging = false;
        if work.is_superseded && !work.is_excused {
            return Err(Violation::new(object, Breach::Revenant(worker.clone())));
        }
        if work.is_excused { Ok(()) } else { self.check_alone(object, worker) }
    }

    pub(super) fn on_ended(&mut self, worker: &Worker) {
        self.work.remove(worker);
    }

    pub(super) fn on_stopped(&mut self, worker: &Worker) {
        if let Some(work) = self.work.get_mut(worker) {
            work.is_hanging = true;
        }
    }

    /// Somebody of the instance who works on the object.
    pub(super) fn busy(&self, id: &InstanceId) -> Option<Worker> {
        let mut of_instance = self.work.iter().filter(|(worker, _)| worker.id == *id);
        of_instance.find(|(_, work)| !work.is_hanging).map(|(worker, _)| worker.clone())
    }

    pub(super) fn excuse(&mut self, id: &InstanceId) {
        for (_, work) in self.work.iter_mut().filter(|(worker, _)| worker.id == *id) {
            work.is_excused = true;
        }
    }

    pub(super) fn check_assigned(
        &self,
        object: &Uid,
        now: Timestamp,
        patience: Duration,
    ) -> Result<(), Violation> {
        let since = self.unassigned_since.map(|since| super::super::time::until(since, now));
        match since.filter(|since| *since > patience) {
            Some(since) => {
                let for_ms = since.as_millis();
                Err(Violation::new(object, Breach::Unassigned { for_ms }))
            }
            None => Ok(()),
        }
    }

    fn check_alone(&self, object: &Uid, one: &Worker) -> Result<(), Violation> {
        let others = self.work.iter().filter(|(other, _)| *other != one);
        let mut at_work = others.filter(|(_, work)| !work.is_hanging && !work.is_excused);
        match at_work.next() {
            Some((other, _)) => {
                let (one, other) = (one.clone(), other.clone());
                Err(Violation::new(object, Breach::Overlap { one, other }))
            }
            None => Ok(()),
        }
    }
}
