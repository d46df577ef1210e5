//! Ends that are not recorded yet. They are kept until the store has decided about them, whatever
//! becomes of the registration meanwhile.

use std::time::Duration;

use super::Agent;
use super::writes::{Purpose, WantedFor};
use crate::core::id::{AttemptNumber, TaskId};
use crate::core::record::{Record, Usage};
use crate::core::status::Status;
use crate::core::time::{Boottime, Now};
use crate::core::transition::{
    Ending, Finished, Plan, SettleError, Settled, Stamp, Touch, TransitionError, finish, touch,
};

/// How long after a task could not be read, or not be changed by this version, that is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Unrecorded {
    finished: Finished,
    /// The task as last read; not known of those found at the start.
    record: Option<Record>,
    /// Set while its task cannot be read or changed: from when on that is tried again. The end stays on
    /// disk, so nothing else waits for it.
    stuck_until: Option<Boottime>,
}

// === impl Unrecorded ===

impl Unrecorded {
    pub(super) fn found(finished: Finished) -> Self {
        Self { finished, record: None, stuck_until: None }
    }

    pub(super) fn known(finished: Finished, record: Record) -> Self {
        Self { finished, record: Some(record), stuck_until: None }
    }

    pub(super) fn attempt(&self) -> AttemptNumber {
        self.finished.attempt
    }
}

// === impl Agent ===

impl Agent {
    /// Sends what is not under way.
    pub(super) fn record_endings(&mut self, now: Now) {
        let mut next = None;
        let mut idle = Vec::new();
        for (&(id, attempt), unrecorded) in &self.unrecorded {
            match unrecorded.stuck_until.filter(|at| *at > now.boot) {
                Some(at) => next = Some(next.unwrap_or(at).min(at)),
                None if self.writes.is_recording(id, attempt) => {}
                None => idle.push((id, attempt)),
            }
        }
        if let Some(at) = next {
            self.wake_by(at);
        }
        for (id, attempt) in idle {
            match self.unrecorded[&(id, attempt)].record.is_some() {
                true => self.record_ending(now, id, attempt),
                false => self.read(id, WantedFor::Finish(attempt)),
            }
        }
    }

    fn record_ending(&mut self, now: Now, id: TaskId, attempt: AttemptNumber) {
        let stamp = Stamp { now: now.wall, write_id: self.ids.write() };
        let Some(unrecorded) = self.unrecorded.get(&(id, attempt)) else { return };
        let Some(record) = &unrecorded.record else { return };
        match finish(record, &unrecorded.finished, stamp) {
            Ok(plan) => {
                let purpose = Purpose::Finish { plan: Box::new(plan.clone()), attempt };
                self.send(plan.txn, purpose);
            }
            // A newer version made of it what this one cannot change.
            Err(TransitionError::NewerSchema { .. } | TransitionError::Spec { .. }) => {
                self.on_stuck(now, id, attempt);
            }
            // The task is another's, or has ended: there is nothing to record.
            Err(
                TransitionError::SameStatus { .. }
                | TransitionError::NotFrom { .. }
                | TransitionError::NotOwner { .. }
                | TransitionError::TooEarly { .. },
            ) => self.discard(now, id, attempt),
        }
    }

    /// Whether ends are to be recorded that could be.
    pub(super) fn has_ends_to_record(&self) -> bool {
        self.unrecorded.values().any(|unrecorded| unrecorded.stuck_until.is_none())
    }

    /// Nothing was decided about the end, so it is kept, and the task read again before long.
    fn on_stuck(&mut self, now: Now, id: TaskId, attempt: AttemptNumber) {
        if let Some(unrecorded) = self.unrecorded.get_mut(&(id, attempt)) {
            unrecorded.record = None;
            unrecorded.stuck_until = Some(now.boot + TRY_AGAIN_AFTER);
            self.wake_by(now.boot + TRY_AGAIN_AFTER);
        }
    }

    pub(super) fn on_finished(
        &mut self,
        now: Now,
        plan: &Plan,
        attempt: AttemptNumber,
        settled: Result<Settled, SettleError>,
    ) {
        match settled {
            Ok(Settled::Won(_)) => drop(self.unrecorded.remove(&(plan.id, attempt))),
            Ok(Settled::Lost(lost)) => {
                self.on_read_for_finish(now, plan.id, attempt, Ok(lost.found));
            }
            Err(error) => self.on_read_for_finish(now, plan.id, attempt, Err(error)),
        }
    }

    /// Decides anew with the task as it is now. Only a task that is gone needs no end any more.
    pub(super) fn on_read_for_finish(
        &mut self,
        now: Now,
        id: TaskId,
        attempt: AttemptNumber,
        found: Result<Option<Record>, SettleError>,
    ) {
        match found {
            Ok(Some(record)) => {
                let Some(unrecorded) = self.unrecorded.get_mut(&(id, attempt)) else { return };
                unrecorded.record = Some(record);
                unrecorded.stuck_until = None;
                self.record_ending(now, id, attempt);
            }
            Ok(None) => drop(self.unrecorded.remove(&(id, attempt))),
            Err(SettleError::Answer(_) | SettleError::Found(_)) => self.on_stuck(now, id, attempt),
        }
    }

    fn discard(&mut self, now: Now, id: TaskId, attempt: AttemptNumber) {
        let discarded = self.unrecorded.remove(&(id, attempt));
        let Some(Unrecorded { finished, record, .. }) = discarded else { return };
        self.on_read_for_touch(now, record, attempt, finished.usage);
    }

    /// What an earlier process was about to stop, if somebody had canceled it.
    pub(super) fn tell_stopped(&mut self) {
        for (id, attempt, usage) in std::mem::take(&mut self.stopped) {
            self.read(id, WantedFor::Touch(attempt, usage));
        }
    }

    /// A canceled attempt of ours has stopped: says when, and what it used, once.
    pub(super) fn on_read_for_touch(
        &mut self,
        now: Now,
        record: Option<Record>,
        attempt: AttemptNumber,
        usage: Usage,
    ) {
        let Some(record) = record else { return };
        let Status::Canceled(canceled) = &record.task.status else { return };
        let host = self.profile.node.host;
        let last = record.task.last_attempt();
        let is_ours = last.is_some_and(|last| last.host == host && last.number == attempt);
        if !is_ours || canceled.stopped_at.is_some() {
            return;
        }
        let added = Touch { host, usage, stopped_at: Some(now.wall) };
        if let Ok(plan) = touch(&record, added, self.ids.write()) {
            self.send(plan.txn, Purpose::Touch);
        }
    }

    /// The store says that a task runs here, and this node knows nothing of it. Whatever the reason,
    /// it was never started.
    pub(super) fn on_read_for_unknown(&mut self, now: Now, record: Option<Record>) {
        let Some(record) = record else { return };
        let Some(running) = record.task.status.running().cloned() else { return };
        let id = record.id();
        let is_mine = self.node_id() == Some(running.node);
        if !is_mine || self.knows(id) {
            return;
        }
        let finished = Finished {
            node: running.node,
            attempt: running.attempt,
            ending: Ending::NeverStarted { message: "it was claimed and not started".to_owned() },
            usage: Usage::default(),
        };
        self.unrecorded.insert((id, running.attempt), Unrecorded::known(finished, record));
        self.record_ending(now, id, running.attempt);
    }

    /// Whether the node has something to do with a task that runs under its name.
    pub(super) fn knows(&self, id: TaskId) -> bool {
        self.attempts.contains_key(&id)
            || self.unrecorded.keys().any(|(of, _)| *of == id)
            || self.writes.concerns(id)
    }
}
