//! What must hold after every step, and what at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tasks::core::id::{Fence, NodeId, Revision, TaskId};
use tasks::core::keys::StatusKey;
use tasks::core::record::Record;
use tasks::core::status::{FailedReason, QueuedReason, Status};

use super::Violation;
use super::host::Host;
use crate::store::Store;

/// How long a host with nothing to do may leave a task lying in a calm sea: enough to start a daemon
/// and to register it.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Promises {
    checked_at: Revision,
    /// Since when every task that will be submitted has ended.
    over_since: Option<Duration>,
    pub(crate) expected: usize,
    /// Whether nothing but crashes happens to the cluster.
    pub(crate) is_quiet: bool,
    /// Since when tasks lie in the queue that may start at once.
    waiting: BTreeMap<TaskId, Duration>,
    /// When each host was last seen with something to do, or without a daemon.
    busy: BTreeMap<u32, Duration>,
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
        self.check_idle(hosts, now)?;
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
            self.note_waiting(record, now);
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

    /// Every host can run every task of these tests, whatever its clock says.
    fn check_idle(&mut self, hosts: &[Host], now: Duration) -> Result<(), Violation> {
        if !self.is_quiet {
            return Ok(());
        }
        let is_busy = |host: &&Host| host.daemon.is_none() || !host.runtime.processes.is_empty();
        self.busy.extend(hosts.iter().filter(is_busy).map(|host| (host.number, now)));
        let Some((task, since)) = self.waiting.iter().min_by_key(|(_, since)| **since) else {
            return Ok(());
        };
        for host in hosts {
            let busy = self.busy.get(&host.number).copied().unwrap_or_default();
            let is_idle = now > IDLE_MAX + busy.max(*since);
            Violation::unless(!is_idle, || format!("host {} leaves {task} lying", host.number))?;
        }
        Ok(())
    }

    fn note_waiting(&mut self, record: &Record, now: Duration) {
        match &record.task.status {
            Status::Queued(queued)
                if !matches!(
                    queued.reason,
                    QueuedReason::ExitRetry | QueuedReason::StartFailed
                ) =>
            {
                self.waiting.entry(record.id()).or_insert(now);
            }
            _ => drop(self.waiting.remove(&record.id())),
        }
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
