//! What is done: the agent's commands, and what the shell does now and then of its own.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Owner;
use crate::core::agent::{Command, Event};
use crate::node::{machine, runs};

/// How often the machine is measured. Pressure is an average over 10 s.
const MEASURE_EVERY: Duration = Duration::from_secs(1);
/// How often directories of attempts are looked through.
const SWEEP_EVERY: Duration = Duration::from_mins(10);
/// How long logs outlive their task.
const LOGS_KEPT_FOR: Duration = Duration::from_hours(1);

/// When what is done now and then is done next.
#[derive(Debug)]
pub(super) struct Due {
    measure: Instant,
    sweep: Instant,
}

// === impl Due ===

impl Due {
    pub(super) fn new(now: Instant) -> Self {
        Self { measure: now, sweep: now + SWEEP_EVERY }
    }

    pub(super) fn next(&self) -> Instant {
        self.measure.min(self.sweep)
    }
}

// === impl Owner ===

impl Owner {
    pub(super) fn carry_out(&mut self, command: Command) {
        let sender = self.parts.sender.clone();
        let host = self.parts.runs.host();
        match command {
            Command::Register(node) => {
                let registered = sender.register(node, self.parts.agent.timing(), host.clone());
                self.work.spawn(registered);
            }
            // The keeper does so by itself.
            Command::KeepAlive(_) => {}
            Command::Revoke(lease) => self.work.spawn(sender.revoke(lease)),
            Command::SetDeadline(at) => {
                self.deadline = at;
                runs::set_deadline(host, at);
            }
            Command::Send { token, txn } => self.work.spawn(sender.send(token, txn)),
            Command::Start(start) => {
                let run = self.parts.runs.start(&start);
                self.work.spawn(run);
            }
            Command::Stop { task, attempt, grace } => self.parts.runs.stop(task, attempt, grace),
            Command::Left => {
                tracing::info!("the node has left");
                self.has_left = true;
            }
        }
    }

    pub(super) fn do_chores(&mut self) {
        let now = Instant::now();
        if self.due.measure <= now {
            self.due.measure = now + MEASURE_EVERY;
            self.measure();
        }
        if self.due.sweep <= now {
            self.due.sweep = now + SWEEP_EVERY;
            self.sweep();
        }
    }

    fn measure(&mut self) {
        let data_dir = self.parts.data_dir.clone();
        self.work.spawn_blocking(move || match machine::measure(&data_dir) {
            Ok(machine) => Event::Measured(machine),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the machine is not measured");
                Event::Tick
            }
        });
    }

    /// Removes what is left of attempts whose tasks are gone. Not before all tasks are known.
    fn sweep(&mut self) {
        if !self.lists.is_complete() {
            return;
        }
        let tasks = self.parts.agent.cache().tasks();
        let known: BTreeSet<Uuid> = tasks.map(|task| task.id.0).collect();
        let host = self.parts.runs.host().clone();
        self.work.spawn(async move {
            match host.sweep(move |task| known.contains(&task), LOGS_KEPT_FOR).await {
                Ok(removed) => tracing::debug!(removed, "directories without a task"),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "directories without a task cannot be removed");
                }
            }
            Event::Tick
        });
    }

    /// The store has these results, or does not want them.
    pub(super) fn forget_recorded(&mut self) {
        let agent = &self.parts.agent;
        let is_unrecorded = |task, attempt| agent.is_unrecorded(task, attempt);
        for id in self.parts.runs.take_recorded(is_unrecorded) {
            let host = self.parts.runs.host().clone();
            self.work.spawn(async move {
                if let Err(error) = host.forget(id).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, attempt = %id, "a result that is recorded stays");
                }
                Event::Tick
            });
        }
    }
}
