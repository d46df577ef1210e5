//! The runtime of one host: processes that start, end, are killed, and die at the deadline whether
//! the daemon lives or not. Results that were written survive the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use tasks::core::agent::{Report, Start};
use tasks::core::id::{AttemptNumber, Fence, NodeId, TaskId};
use tasks::core::record::Usage;
use tasks::core::time::Boottime;
use tasks::core::transition::{Ending, Finished};

pub(crate) type ProcessId = (TaskId, AttemptNumber);

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) node: NodeId,
    pub(crate) fence: Fence,
    pub(crate) is_live: bool,
    /// From the first command to stop it on, it ends without a result.
    pub(crate) is_stopping: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Runtime {
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    /// The shared page: when everything dies unless the daemon moves it on.
    pub(crate) deadline: Boottime,
    /// Ends on disk.
    pub(crate) results: BTreeMap<ProcessId, Finished>,
}

// === impl Runtime ===

impl Runtime {
    pub(crate) fn prepare(&mut self, start: &Start) {
        let process =
            Process { node: start.node, fence: start.fence, is_live: false, is_stopping: false };
        let before = self.processes.insert((start.task, start.attempt), process);
        assert!(before.is_none(), "an attempt is started once");
    }

    /// Whether the command really begins. It does not after the deadline, nor after a stop.
    pub(crate) fn begin(&mut self, id: ProcessId, now: Boottime) -> Option<bool> {
        let deadline = self.deadline;
        let process = self.processes.get_mut(&id)?;
        process.is_live = now < deadline && !process.is_stopping;
        Some(process.is_live)
    }

    /// The process is gone, and its result, if it has one, on disk.
    pub(crate) fn end(&mut self, id: ProcessId, ending: Option<Ending>) -> Option<Report> {
        let process = self.processes.remove(&id)?;
        let usage = Usage { peak_memory_bytes: 1, cpu_ms: 1 };
        let Some(ending) = ending.filter(|_| !process.is_stopping) else {
            let stopped = Report::Stopped(usage);
            return Some(if process.is_live { stopped } else { Report::StoppedBeforeStart });
        };
        let (node, attempt) = (process.node, id.1);
        let finished = Finished { node, attempt, ending: ending.clone(), usage };
        self.results.insert(id, finished);
        Some(Report::Ended(ending, usage))
    }

    /// Everything that is to be killed now, each within the time that killing takes.
    pub(crate) fn stop_all(&mut self) -> Vec<ProcessId> {
        self.processes.values_mut().for_each(|process| process.is_stopping = true);
        self.processes.keys().copied().collect()
    }

    /// What a new daemon finds: results, and processes that it kills before anything else.
    pub(crate) fn clear(&mut self) -> Vec<(TaskId, Finished)> {
        self.processes.clear();
        let results = std::mem::take(&mut self.results);
        results.into_iter().map(|((task, _), finished)| (task, finished)).collect()
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (TaskId, Fence)> + '_ {
        let live = self.processes.iter().filter(|(_, process)| process.is_live);
        live.map(|((task, _), process)| (*task, process.fence))
    }
}

/// How long killing takes at most, a little under what is allowed.
pub(crate) const KILL_MAX: Duration = Duration::from_millis(900);
