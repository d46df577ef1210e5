//! Attempts on this machine: started, stopped, listened to, and forgotten once their end is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sandbox::{AttemptId, Ended, Exit as Exited, Host, Outcome, Stopper};

use super::order::Surroundings;
use crate::clock::Clock;
use crate::core::agent::{Event, Report, Start};
use crate::core::id::{AttemptNumber, TaskId};
use crate::core::record::Usage;
use crate::core::status::Exit;
use crate::core::time::Boottime;
use crate::core::transition::Ending;
use crate::metrics::Metrics;

/// See the module.
pub(super) struct Runs {
    host: Host,
    surroundings: Surroundings,
    clock: Clock,
    metrics: Metrics,
    live: BTreeMap<AttemptId, Stopper>,
    /// Their results are on disk until the store has them.
    ended: BTreeSet<AttemptId>,
}

// === impl Runs ===

impl Runs {
    pub(super) fn new(
        host: Host,
        surroundings: Surroundings,
        clock: Clock,
        metrics: Metrics,
    ) -> Self {
        let (live, ended) = (BTreeMap::new(), BTreeSet::new());
        Self { host, surroundings, clock, metrics, live, ended }
    }

    /// Attempts of which an earlier process left a result.
    pub(super) fn with_results(self, ended: Vec<AttemptId>) -> Self {
        Self { ended: ended.into_iter().collect(), ..self }
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Starts an attempt; the future tells its end.
    pub(super) fn start(&mut self, start: &Start) -> impl Future<Output = Event> + Send + use<> {
        let (task, attempt) = (start.task, start.attempt);
        let reported = move |report| Event::Reported { task, attempt, report };
        let begun = self.surroundings.order(start).map(|order| self.host.start(order));
        if let Ok(attempt) = &begun {
            self.live.insert(attempt.id(), attempt.stopper());
        }
        let (clock, metrics) = (self.clock, self.metrics.clone());
        async move {
            match begun {
                Ok(attempt) => reported(listen(attempt, clock, metrics).await),
                Err(error) => {
                    let message = format!("its spec cannot be read: {error}");
                    let ending = Ending::NeverStarted { message };
                    reported(Report::Ended(ending, Usage::default()))
                }
            }
        }
    }

    /// What has ended by itself meanwhile is not there to be stopped.
    pub(super) fn stop(&self, task: TaskId, attempt: AttemptNumber, grace: Duration) {
        if let Some(stopper) = self.live.get(&named(task, attempt)) {
            stopper.stop(grace);
        }
    }

    pub(super) fn has_live(&self) -> bool {
        !self.live.is_empty()
    }

    pub(super) fn stop_all(&self) {
        self.live.values().for_each(|stopper| stopper.stop(Duration::ZERO));
    }

    pub(super) fn on_reported(&mut self, task: TaskId, attempt: AttemptNumber) {
        let id = named(task, attempt);
        self.live.remove(&id);
        self.ended.insert(id);
    }

    /// Attempts whose end the store has, or does not want. Their results can go.
    pub(super) fn take_recorded(
        &mut self,
        is_unrecorded: impl Fn(TaskId, AttemptNumber) -> bool,
    ) -> Vec<AttemptId> {
        let is_done = |id: &AttemptId| !is_unrecorded(TaskId(id.task), AttemptNumber(id.number));
        self.ended.extract_if(.., is_done).collect()
    }
}

fn named(task: TaskId, attempt: AttemptNumber) -> AttemptId {
    AttemptId { task: task.0, number: attempt.0 }
}

/// Waits for the end.
///
/// # Panics
///
/// If there is none: whoever watched the attempt has panicked itself, and whether anything still runs is
/// not known. The node must not go on then; its next start kills what is left.
async fn listen(mut attempt: sandbox::Attempt, clock: Clock, metrics: Metrics) -> Report {
    let asked = clock.boot();
    let mut started = None;
    loop {
        match attempt.next().await.expect("an attempt tells its end") {
            sandbox::Event::Created => {}
            sandbox::Event::Started => {
                let now = clock.boot();
                metrics.on_started(now.since(asked));
                started = Some(now);
            }
            sandbox::Event::Ended(ended) => {
                if let Some(started) = started {
                    metrics.on_ended(clock.boot().since(started));
                }
                metrics.on_log(ended.log.bytes, ended.log.dropped_bytes);
                if matches!(ended.outcome, Outcome::Exited { is_oom_killed: true, .. }) {
                    metrics.on_oom();
                }
                return report(ended);
            }
        }
    }
}

/// The sandbox's word in the agent's.
pub(super) fn report(ended: Ended) -> Report {
    let cpu_ms = u64::try_from(ended.usage.cpu.as_millis()).unwrap_or(u64::MAX);
    let usage = Usage { peak_memory_bytes: ended.usage.peak_memory_bytes, cpu_ms };
    let ending = match ended.outcome {
        Outcome::Exited { exit, is_oom_killed } => {
            let (code, signal) = match exit {
                Exited::Code(code) => (code, 0),
                Exited::Signal(signal) => (0, signal),
            };
            Ending::Exited(Exit { code, signal, is_oom_killed })
        }
        Outcome::TimedOut => Ending::TimedOut,
        Outcome::ScratchExceeded => Ending::ScratchExceeded,
        Outcome::NeverStarted { reason } => Ending::NeverStarted { message: reason },
        Outcome::Stopped => return Report::Stopped(usage),
        Outcome::StoppedBeforeStart => return Report::StoppedBeforeStart,
    };
    Report::Ended(ending, usage)
}

/// Moves the moment by which everything that runs must be dead.
pub(super) fn set_deadline(host: &Host, at: Boottime) {
    host.deadline().set(sandbox::Boottime(at.0));
}
