//! What runs here: started after a claim, stopped when it is not wanted or not ours any more.

use std::time::Duration;

use super::endings::Unrecorded;
use super::writes::WantedFor;
use super::{Agent, Command, Report, Start};
use crate::core::cache::Phase;
use crate::core::id::{AttemptNumber, NodeId, TaskId};
use crate::core::keys::End;
use crate::core::record::{Record, Usage};
use crate::core::time::Now;
use crate::core::transition::{Ending, Finished};

/// An attempt with processes, or about to have some.
#[derive(Debug)]
pub(super) struct Attempt {
    record: Record,
    number: AttemptNumber,
    grace: Duration,
    stopping: Option<Stopping>,
}

/// Why an attempt is being stopped, and so what its end means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    /// Somebody canceled it; when it stopped is added to the task.
    Canceled,
    /// The task is not this node's any more: nothing is to be said about it.
    NotOurs,
    /// The node leaves: the task is put back or fails.
    Drained,
}

// === impl Agent ===

impl Agent {
    /// A claim is won: run it, unless the node is leaving or not registered by now.
    pub(super) fn on_won(&mut self, now: Now, record: Record) {
        let (id, task) = (record.id(), &record.task);
        let Some(last) = task.last_attempt() else { return self.ledger.release(id) };
        if self.drain.is_some() || self.held_claimant(now).is_none() {
            let finished = Finished {
                node: last.node,
                attempt: last.number,
                ending: Ending::HandedBack,
                usage: Usage::default(),
            };
            self.ledger.release(id);
            let unrecorded = Unrecorded::known(finished, record);
            drop(self.unrecorded.insert((id, unrecorded.attempt()), unrecorded));
            return;
        }
        let start = Start {
            task: id,
            attempt: last.number,
            node: last.node,
            fence: last.fence,
            spec: task.spec.clone(),
        };
        let grace = task.decode_spec().map_or(Duration::ZERO, |spec| spec.grace);
        let attempt = Attempt { number: last.number, record, grace, stopping: None };
        self.commands.push(Command::Start(Box::new(start)));
        self.attempts.insert(id, attempt);
    }

    /// Looks at what the store says of each attempt, if it says something newer than the claim.
    pub(super) fn stop_what_is_not_ours(&mut self) {
        let stops: Vec<(TaskId, Stopping)> = self
            .attempts
            .iter()
            .filter(|(_, attempt)| attempt.stopping.is_none())
            .filter_map(|(id, attempt)| Some((*id, self.reason_to_stop(*id, attempt)?)))
            .collect();
        for (id, reason) in stops {
            let with_grace = reason == Stopping::Canceled;
            self.stop(id, reason, with_grace);
        }
    }

    fn reason_to_stop(&self, id: TaskId, attempt: &Attempt) -> Option<Stopping> {
        let claimed = attempt.record.modified;
        match self.cache.task(id) {
            None if self.cache.tasks_at() > claimed => Some(Stopping::NotOurs),
            None => None,
            Some(summary) if summary.modified <= claimed => None,
            Some(summary) => match summary.phase {
                Phase::Running { node, attempt: number } => {
                    let is_ours = Some(node) == owner(&attempt.record) && number == attempt.number;
                    (!is_ours).then_some(Stopping::NotOurs)
                }
                Phase::Ended(End::Canceled, _) => Some(Stopping::Canceled),
                Phase::Ended(..) | Phase::Queued { .. } => Some(Stopping::NotOurs),
            },
        }
    }

    pub(super) fn kill_all(&mut self) {
        let running: Vec<TaskId> = self.attempts.keys().copied().collect();
        running.into_iter().for_each(|id| self.stop(id, Stopping::NotOurs, false));
    }

    pub(super) fn stop_for_drain(&mut self) {
        let running = self.attempts.iter().filter(|(_, attempt)| attempt.stopping.is_none());
        let running: Vec<TaskId> = running.map(|(id, _)| *id).collect();
        running.into_iter().for_each(|id| self.stop(id, Stopping::Drained, true));
    }

    /// The first reason counts for what is recorded, the shortest grace for when it dies. A drain
    /// that ends in a fence has nothing to record: others decide then.
    fn stop(&mut self, task: TaskId, reason: Stopping, with_grace: bool) {
        let Some(attempt) = self.attempts.get_mut(&task) else { return };
        attempt.stopping = match attempt.stopping {
            Some(Stopping::Drained) | None => Some(reason),
            earlier => earlier,
        };
        let grace = if with_grace { attempt.grace } else { Duration::ZERO };
        self.commands.push(Command::Stop { task, attempt: attempt.number, grace });
    }

    pub(super) fn on_reported(&mut self, id: TaskId, number: AttemptNumber, report: Report) {
        let is_known = self.attempts.get(&id).is_some_and(|attempt| attempt.number == number);
        let Some(attempt) = is_known.then(|| self.attempts.remove(&id)).flatten() else { return };
        self.ledger.release(id);
        let (drained, usage) = match report {
            // What ended by itself has a result, whatever was wanted of it meanwhile.
            Report::Ended(ending, usage) => return self.note_end(attempt, ending, usage),
            Report::Stopped(usage) => (Ending::Drained, usage),
            Report::StoppedBeforeStart => (Ending::HandedBack, Usage::default()),
        };
        match attempt.stopping {
            Some(Stopping::Drained) => self.note_end(attempt, drained, usage),
            Some(Stopping::Canceled) => self.read(id, WantedFor::Touch(number, usage)),
            Some(Stopping::NotOurs) => {}
            // Only the deadline kills what the agent did not: it has slept through it.
            None => self.fence(),
        }
    }

    fn note_end(&mut self, attempt: Attempt, ending: Ending, usage: Usage) {
        let Some(node) = owner(&attempt.record) else { return };
        let finished = Finished { node, attempt: attempt.number, ending, usage };
        let key = (attempt.record.id(), attempt.number);
        self.unrecorded.insert(key, Unrecorded::known(finished, attempt.record));
    }
}

/// The registration that claimed it.
fn owner(record: &Record) -> Option<NodeId> {
    record.task.last_attempt().map(|last| last.node)
}
