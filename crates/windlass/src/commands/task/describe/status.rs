//! Where a task is, and what that means to who waits for it.

use jiff::Timestamp;
use serde::Serialize;
use tasks::wire::{failed, queued, status::Status};

use super::{backoff_end, moment};

/// Where a task is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum State {
    Queued {
        /// Set for a backoff.
        not_before: Option<Timestamp>,
        reason: &'static str,
    },
    Running {
        node: Option<String>,
        node_id: String,
        attempt: u32,
        since: Timestamp,
    },
    Complete {
        node: Option<String>,
        exit_code: i32,
        /// 0: it exited by itself.
        signal: i32,
        oom_killed: bool,
        peak_memory_bytes: u64,
        cpu_ms: u64,
        ended_at: Timestamp,
    },
    Canceled {
        node: Option<String>,
        by: String,
        ended_at: Timestamp,
        stopped_at: Option<Timestamp>,
    },
    Failed {
        node: Option<String>,
        reason: &'static str,
        message: String,
        ended_at: Timestamp,
    },
}

// === impl State ===

impl State {
    /// `last_node` is the name of the node of the last attempt.
    pub(super) fn of(status: Status, last_node: Option<String>) -> Self {
        match status {
            Status::Queued(queued) => Self::Queued {
                not_before: backoff_end(queued.not_before_ms),
                reason: queued_reason(queued.reason()),
            },
            Status::Running(running) => Self::Running {
                node: last_node,
                attempt: running.attempt,
                since: moment(running.since_ms),
                node_id: running.node_id,
            },
            Status::Complete(complete) => {
                let usage = complete.usage.unwrap_or_default();
                Self::Complete {
                    node: last_node,
                    exit_code: complete.exit_code,
                    signal: complete.signal,
                    oom_killed: complete.oom_killed,
                    peak_memory_bytes: usage.peak_memory_bytes,
                    cpu_ms: usage.cpu_ms,
                    ended_at: second(complete.epoch),
                }
            }
            Status::Canceled(canceled) => Self::Canceled {
                // One that was never taken was nowhere.
                node: last_node.filter(|_| !canceled.node_id.is_empty()),
                by: canceled.by,
                ended_at: second(canceled.epoch),
                stopped_at: canceled.stopped_at_ms.map(moment),
            },
            Status::Failed(failed) => Self::Failed {
                node: last_node.filter(|_| !failed.node_id.is_empty()),
                reason: failed_reason(failed.reason()),
                ended_at: second(failed.epoch),
                message: failed.message,
            },
        }
    }

    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Queued { .. } | Self::Running { .. })
    }

    /// Whether the command was run and said that all is well.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Complete { exit_code: 0, signal: 0, .. })
    }

    /// Whether something of it may still run although it was canceled.
    pub(crate) fn is_stopping(&self) -> bool {
        matches!(self, Self::Canceled { node: Some(_), stopped_at: None, .. })
    }

    /// In one word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Queued { .. } => "queued",
            Self::Running { .. } => "running",
            Self::Complete { .. } => "complete",
            Self::Canceled { .. } => "canceled",
            Self::Failed { .. } => "failed",
        }
    }

    /// What the word leaves open.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Queued { reason, .. } => (*reason).to_owned(),
            Self::Running { attempt, .. } => format!("attempt {attempt}"),
            Self::Complete { oom_killed: true, .. } => "killed for want of memory".to_owned(),
            Self::Complete { signal: 0, exit_code, .. } => format!("exit code {exit_code}"),
            Self::Complete { signal, .. } => format!("signal {signal}"),
            Self::Canceled { by, .. } => format!("by {by}"),
            Self::Failed { reason, .. } => (*reason).to_owned(),
        }
    }

    pub(crate) fn node(&self) -> Option<&str> {
        match self {
            Self::Queued { .. } => None,
            Self::Running { node, .. }
            | Self::Complete { node, .. }
            | Self::Canceled { node, .. }
            | Self::Failed { node, .. } => node.as_deref(),
        }
    }
}

fn queued_reason(reason: queued::Reason) -> &'static str {
    match reason {
        queued::Reason::Submitted => "submitted",
        queued::Reason::ExitRetry => "to be retried",
        queued::Reason::StartFailed => "could not be started",
        queued::Reason::HandedBack => "handed back",
        queued::Reason::NodeLost => "its node was lost",
        queued::Reason::Drained => "its node was drained",
    }
}

pub(in crate::commands) const TIMEOUT: &str = "timeout";

fn failed_reason(reason: failed::Reason) -> &'static str {
    match reason {
        failed::Reason::Unspecified => "unknown reason",
        failed::Reason::NodeLost => "node lost",
        failed::Reason::StartFailed => "start failed",
        failed::Reason::Timeout => TIMEOUT,
        failed::Reason::ScratchExceeded => "scratch exceeded",
        failed::Reason::Drained => "drained",
    }
}

fn second(epoch: u64) -> Timestamp {
    let seconds = i64::try_from(epoch).ok();
    seconds.and_then(|at| Timestamp::from_second(at).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}
