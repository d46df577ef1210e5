//! Tasks as they are printed: for people as tables and lines, for programs as JSON with the same
//! names.

mod explained;
mod status;
mod table;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use tasks::{
    client::Error,
    core::spec::{Network, Scratch, Spec},
    wire::{self, attempt::Cause},
};

use super::connect;
use crate::report::Failure;

pub(in crate::commands) use explained::{
    Explained, Finding, Removed, Why, explanation_text, findings_text,
};
pub(in crate::commands) use status::{State, TIMEOUT};
pub(crate) use table::{age, shortened};
pub(in crate::commands) use table::{table, text};

/// All there is to say of a task.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Described {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) state: State,
    pub(crate) command: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) priority: i32,
    pub(crate) submitted_at: Timestamp,
    pub(super) submitted_by: String,
    pub(super) attempts: Vec<Attempt>,
    pub(super) cluster_restarts: u32,
    pub(super) start_failures: u32,
    pub(super) exit_retries: u32,
    /// Absent if this version cannot read it.
    pub(in crate::commands) limits: Option<Limits>,
    pub(super) create_revision: i64,
    pub(super) mod_revision: i64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Attempt {
    pub(super) number: u32,
    pub(super) node: String,
    pub(super) node_id: String,
    pub(super) host_id: String,
    pub(super) fence: i64,
    pub(super) start: Timestamp,
    pub(super) end: Option<Timestamp>,
    pub(super) cause: Option<&'static str>,
    pub(super) peak_memory_bytes: u64,
    pub(super) cpu_ms: u64,
}

/// What the task may use.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Limits {
    pub(super) cpu_millis: u64,
    pub(in crate::commands) memory_bytes: u64,
    pub(super) pids: u64,
    pub(super) scratch_bytes: u64,
    pub(super) scratch: &'static str,
    pub(super) network: &'static str,
    pub(super) user: String,
    pub(super) rootfs: String,
    pub(super) workdir: String,
    pub(super) timeout_ms: Option<u64>,
    pub(super) retries: u32,
    pub(super) restart_on_cluster_error: bool,
}

// === impl Described ===

impl Described {
    pub(in crate::commands) fn of(view: wire::TaskView) -> Result<Self, Failure> {
        Self::read(view).map_err(connect::failure)
    }

    pub(crate) fn read(view: wire::TaskView) -> Result<Self, Error> {
        let missing = |what| Error::Incomplete { what };
        let task = view.task.ok_or_else(|| missing("the task"))?;
        let status = task.status.and_then(|status| status.status);
        let status = status.ok_or_else(|| missing("the status of the task"))?;
        let spec = Spec::decode(&task.spec).ok();
        let argv = |spec: &Spec| [&spec.command].into_iter().chain(&spec.args).cloned().collect();
        let last_node = task.attempts.last().map(|attempt| attempt.node_name.clone());
        Ok(Self {
            id: task.id,
            name: spec.as_ref().map(|spec| spec.name.clone()).unwrap_or_default(),
            state: State::of(status, last_node),
            command: spec.as_ref().map(argv).unwrap_or_default(),
            labels: spec.as_ref().map(|spec| spec.labels.clone()).unwrap_or_default(),
            priority: spec.as_ref().map_or(0, |spec| spec.priority),
            submitted_at: moment(task.submitted_at_ms),
            submitted_by: task.submitted_by,
            attempts: task.attempts.into_iter().map(Attempt::of).collect(),
            cluster_restarts: task.cluster_restarts,
            start_failures: task.start_failures,
            exit_retries: task.exit_retries,
            limits: spec.as_ref().map(Limits::of),
            create_revision: view.create_revision,
            mod_revision: view.mod_revision,
        })
    }

    /// Whether there is an attempt after this one, or may still be.
    pub(in crate::commands) fn may_have_attempt_after(&self, number: u32) -> bool {
        let has_later = self.attempts.last().is_some_and(|last| last.number > number);
        has_later || !self.state.is_final()
    }
}

// === impl Attempt ===

impl Attempt {
    fn of(attempt: wire::Attempt) -> Self {
        let cause = cause(attempt.cause());
        let usage = attempt.usage.unwrap_or_default();
        Self {
            number: attempt.number,
            node: attempt.node_name,
            node_id: attempt.node_id,
            host_id: attempt.host_id,
            fence: attempt.fence,
            start: moment(attempt.start_ms),
            end: attempt.end_ms.map(moment),
            cause,
            peak_memory_bytes: usage.peak_memory_bytes,
            cpu_ms: usage.cpu_ms,
        }
    }
}

fn cause(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Unspecified => None,
        Cause::Exited => Some("exited"),
        Cause::Canceled => Some("canceled"),
        Cause::NodeLost => Some("node lost"),
        Cause::StartFailed => Some("start failed"),
        Cause::Timeout => Some("timeout"),
        Cause::ScratchExceeded => Some("scratch exceeded"),
        Cause::Drained => Some("drained"),
        Cause::HandedBack => Some("handed back"),
    }
}

// === impl Limits ===

impl Limits {
    fn of(spec: &Spec) -> Self {
        let timeout = spec.timeout.map(|timeout| timeout.as_millis());
        Self {
            cpu_millis: spec.resources.cpu_millis,
            memory_bytes: spec.limits.memory_bytes,
            pids: spec.limits.pids,
            scratch_bytes: spec.limits.scratch_bytes,
            scratch: match spec.resources.scratch {
                Scratch::Memory => "memory",
                Scratch::Disk => "disk",
            },
            network: match spec.network {
                Network::None => "none",
                Network::Host => "host",
            },
            user: format!("{}:{}", spec.user.uid, spec.user.gid),
            rootfs: spec.rootfs.clone(),
            workdir: spec.workdir.clone(),
            timeout_ms: timeout.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
            retries: spec.retries,
            restart_on_cluster_error: spec.restart_on_cluster_error,
        }
    }
}

/// What is no time is the beginning of time: a clock was wrong, and that shows.
pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// When a queued task may start; `None`: at once, so nobody is shown the beginning of time.
pub(super) fn backoff_end(not_before_ms: i64) -> Option<Timestamp> {
    (not_before_ms != 0).then(|| moment(not_before_ms))
}

#[cfg(test)]
mod tests {
    use tasks::wire::status::Status;

    use super::*;

    /// A node that is drained gives back what it had just taken, without a log. `run` took that for the
    /// last attempt, and printed nothing of those that followed.
    #[test]
    fn an_attempt_without_a_log_need_not_be_the_last() {
        let task = |status: Status, attempts: &[u32]| {
            let attempt = |number: &u32| wire::Attempt { number: *number, ..Default::default() };
            let status = Some(wire::Status { status: Some(status) });
            let attempts = attempts.iter().map(attempt).collect();
            let task = wire::Task { status, attempts, ..Default::default() };
            Described::read(wire::TaskView { task: Some(task), ..Default::default() }).unwrap()
        };
        let queued = || Status::Queued(wire::Queued::default());
        let complete = || Status::Complete(wire::Complete::default());
        for (status, attempts, expected) in [
            (queued(), &[1][..], true),
            (queued(), &[], true),
            (complete(), &[1, 2], true),
            (complete(), &[1], false),
            (complete(), &[], false),
        ] {
            let may = task(status.clone(), attempts).may_have_attempt_after(1);
            assert_eq!(may, expected, "{status:?}, {attempts:?}");
        }
    }
}
