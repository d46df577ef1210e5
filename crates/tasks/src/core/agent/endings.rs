//! Ends that are not recorded yet. They are kept until the store has decided about them, whatever
//! becomes of the registration meanwhile.

use super::Agent;
use super::writes::{Purpose, WantedFor};
use crate::core::id::{AttemptNumber, TaskId};
use crate::core::record::{Record, Usage};
use crate::core::status::Status;
use crate::core::time::Now;
use crate::core::transition::{
    Ending, Finished, Plan, SettleError, Settled, Stamp, Touch, finish, touch,
};

#[derive(Debug)]
pub(super) struct Unrecorded {
    finished: Finished,
    /// The task as last read; not known of those found at the start.
    record: Option<Record>,
}

// === impl Unrecorded ===

impl Unrecorded {
    pub(super) fn found(finished: Finished) -> Self {
        Self { finished, record: None }
    }

    pub(super) fn known(finished: Finished, record: Record) -> Self {
        Self { finished, record: Some(record) }
    }

    pub(super) fn attempt(&self) -> AttemptNumber {
        self.finished.attempt
    }
}

// === impl Agent ===

impl Agent {
    /// Sends what is not under way.
    pub(super) fn record_endings(&mut self, now: Now) {
        let is_idle =
            |(id, attempt): &&(TaskId, AttemptNumber)| !self.writes.is_recording(*id, *attempt);
        let idle: Vec<_> = self.unrecorded.keys().filter(is_idle).copied().collect();
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
            // The task is another's, or has ended: there is nothing to record.
            Err(_) => self.discard(now, id, attempt),
        }
    }

    pub(super) fn on_finished(
        &mut self,
        now: Now,
        plan: &Plan,
        attempt: AttemptNumber,
        settled: Result<Settled, SettleError>,
    ) {
        let key = (plan.id, attempt);
        match settled {
            Ok(Settled::Won(_)) => drop(self.unrecorded.remove(&key)),
            Ok(Settled::Lost(lost)) => self.on_read_for_finish(now, plan.id, attempt, lost.found),
            // Read anew: the answer said nothing.
            Err(_) => {
                if let Some(unrecorded) = self.unrecorded.get_mut(&key) {
                    unrecorded.record = None;
                }
            }
        }
    }

    /// Decides anew with the task as it is now.
    pub(super) fn on_read_for_finish(
        &mut self,
        now: Now,
        id: TaskId,
        attempt: AttemptNumber,
        record: Option<Record>,
    ) {
        let Some(unrecorded) = self.unrecorded.get_mut(&(id, attempt)) else { return };
        let is_gone = record.is_none();
        unrecorded.record = record;
        if is_gone {
            self.unrecorded.remove(&(id, attempt));
        } else {
            self.record_ending(now, id, attempt);
        }
    }

    fn discard(&mut self, now: Now, id: TaskId, attempt: AttemptNumber) {
        let discarded = self.unrecorded.remove(&(id, attempt));
        let record = discarded.and_then(|unrecorded| unrecorded.record);
        self.on_read_for_touch(now, record);
    }

    /// A canceled task of ours has stopped: says when, once.
    pub(super) fn on_read_for_touch(&mut self, now: Now, record: Option<Record>) {
        let Some(record) = record else { return };
        let Status::Canceled(canceled) = &record.task.status else { return };
        let last = record.task.last_attempt();
        let Some(last) = last.filter(|last| last.host == self.profile.node.host) else { return };
        if canceled.stopped_at.is_some() {
            return;
        }
        let added = Touch { host: last.host, usage: last.usage, stopped_at: Some(now.wall) };
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
