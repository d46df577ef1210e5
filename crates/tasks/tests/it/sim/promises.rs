//! What must hold after every step, and what at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tasks::core::id::{Fence, NodeId, Revision, TaskId};
use tasks::core::keys::StatusKey;
use tasks::core::record::Record;
use tasks::core::status::{FailedReason, Status};

use super::Violation;
use super::host::Host;
use crate::store::Store;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Promises {
    checked_at: Revision,
    /// Since when every task that will be submitted has ended.
    over_since: Option<Duration>,
    pub(crate) expected: usize,
    running: BTreeSet<(NodeId, TaskId)>,
    ends: BTreeMap<TaskId, StatusKey>,
    starts: BTreeMap<TaskId, Vec<Fence>>,
    /// How often the runtime could not start a task.
    pub(crate) start_failures: BTreeMap<TaskId, u32>,
    pub(crate) flagged: BTreeSet<TaskId>,
    pub(crate) canceled: BTreeSet<TaskId>,
}

// === impl Promises ===

impl Promises {
    /// A command begins.
    pub(crate) fn on_start(&mut self, task: TaskId, fence: Fence) -> Result<(), Violation> {
        let starts = self.starts.entry(task).or_default();
        let grows = starts.last().is_none_or(|last| *last < fence);
        Violation::unless(grows, || format!("{task}: fence {fence:?} after {starts:?}"))?;
        starts.push(fence);
        let is_allowed = starts.len() == 1 || self.flagged.contains(&task);
        Violation::unless(is_allowed, || format!("{task} is started again"))
    }

    /// Since when all is said and done.
    pub(crate) fn over_since(&self) -> Option<Duration> {
        self.over_since
    }

    pub(crate) fn check(
        &mut self,
        store: &Store,
        hosts: &[Host],
        now: Duration,
    ) -> Result<(), Violation> {
        Self::check_overlap(hosts)?;
        if store.revision() == self.checked_at {
            return Ok(());
        }
        self.checked_at = store.revision();
        let snapshot = store.snapshot();
        let findings = snapshot.check(&Default::default());
        Violation::unless(findings.is_empty(), || format!("fsck: {findings:?}"))?;
        self.check_claims(&snapshot.statuses, &snapshot.nodes)?;
        for record in snapshot.tasks.values().flatten() {
            self.check_task(record)?;
        }
        if self.ends.len() == self.expected {
            self.over_since.get_or_insert(now);
        }
        Ok(())
    }

    fn check_overlap(hosts: &[Host]) -> Result<(), Violation> {
        let mut live = BTreeMap::new();
        for (task, fence) in hosts.iter().flat_map(|host| host.runtime.live()) {
            let other = live.insert(task, fence);
            Violation::unless(other.is_none(), || {
                format!("{task} runs twice: {fence:?} and {other:?}")
            })?;
        }
        Ok(())
    }

    /// Whoever claims is registered at that very revision.
    fn check_claims(
        &mut self,
        statuses: &BTreeSet<StatusKey>,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<(), Violation> {
        let running = statuses.iter().filter_map(|key| match key {
            StatusKey::Running(node, task) => Some((*node, *task)),
            _ => None,
        });
        let running: BTreeSet<_> = running.collect();
        for (node, task) in running.difference(&self.running) {
            let is_registered = nodes.contains(node);
            Violation::unless(is_registered, || format!("{task} is claimed by {node}, gone"))?;
        }
        self.running = running;
        Ok(())
    }

    fn check_task(&mut self, record: &Record) -> Result<(), Violation> {
        let (id, task) = (record.id(), &record.task);
        if task.status.is_final() {
            let key = task.status.key(id);
            let first = *self.ends.entry(id).or_insert(key);
            Violation::unless(first == key, || format!("{first} became {key}"))?;
        } else if let Some(first) = self.ends.get(&id) {
            return Err(Violation(format!("{first} became {}", task.status.as_str())));
        }
        let failures = self.start_failures.get(&id).copied().unwrap_or(0);
        let is_true = task.counters.start_failures <= failures;
        Violation::unless(is_true, || format!("{id} was started and is said not to have been"))
    }

    /// When the faults are over and time has passed.
    pub(crate) fn check_end(&self, store: &Store) -> Result<(), Violation> {
        let snapshot = store.snapshot();
        for record in snapshot.tasks.values().flatten() {
            let (id, status) = (record.id(), &record.task.status);
            Violation::unless(status.is_final(), || format!("{id} stays {status:?}"))?;
            let excuses = match status {
                Status::Canceled(_) => self.canceled.contains(&id),
                Status::Failed(failed) => match failed.reason {
                    FailedReason::NodeLost => true,
                    FailedReason::StartFailed => self.start_failures.contains_key(&id),
                    _ => false,
                },
                _ => false,
            };
            let is_started = self.starts.contains_key(&id);
            Violation::unless(is_started || excuses, || format!("{id} never started: {status:?}"))?;
        }
        Ok(())
    }
}
