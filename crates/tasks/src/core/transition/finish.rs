//! The owner's word on an attempt: complete, failed, or back into the queue.

use std::time::Duration;

use super::{Plan, Stamp, TransitionError, ended, last_attempt};
use crate::core::id::{AttemptNumber, NodeId, TaskId};
use crate::core::keys::{Key, StatusKey};
use crate::core::record::{Cause, Counters, MESSAGE_BYTES_MAX, Record, Usage, cut};
use crate::core::retry::{START_BACKOFF, START_FAILURES_MAX, backoff};
use crate::core::spec::Spec;
use crate::core::status::{Complete, Exit, Failed, FailedReason, Queued, QueuedReason, Status};
use crate::core::time::{Epoch, later};
use crate::core::txn::Compare;

/// How an attempt ended, as its owner attests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The command came to its end, well or not.
    Exited(Exit),
    TimedOut,
    ScratchExceeded,
    /// No instruction of the command was executed.
    NeverStarted {
        message: String,
    },
    /// Claimed, but given up before any instruction of the command was executed.
    HandedBack,
    /// Stopped so that the node can leave.
    Drained,
}

/// The end of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The registration that claimed; the node may have another one by now.
    pub node: NodeId,
    pub attempt: AttemptNumber,
    pub ending: Ending,
    pub usage: Usage,
}

/// Records the end of an attempt: complete, failed, or queued again while tries are left.
pub fn finish(before: &Record, finished: &Finished, stamp: Stamp) -> Result<Plan, TransitionError> {
    let id = before.id();
    check_owner(before, finished)?;
    let spec = before.task.decode_spec().map_err(|source| TransitionError::Spec { id, source })?;
    let plan = Plan::rewrite(before, stamp.write_id, |task| {
        last_attempt(task).usage = finished.usage;
        let status = finished.status_after(&mut task.counters, &spec, stamp);
        ended(task, status, finished.ending.cause(), stamp.now);
    })?;
    Ok(plan.also(owned_by(finished.node, id)))
}

pub(super) fn owned_by(node: NodeId, id: TaskId) -> Compare {
    Compare::Exists(Key::Status(StatusKey::Running(node, id)))
}

fn check_owner(before: &Record, finished: &Finished) -> Result<(), TransitionError> {
    let id = before.id();
    let Some(running) = before.task.status.running() else {
        let (from, to) = (before.task.status.as_str(), "ended");
        return Err(TransitionError::NotFrom { id, from, to });
    };
    if running.node != finished.node || running.attempt != finished.attempt {
        return Err(TransitionError::NotOwner { id });
    }
    Ok(())
}

// === impl Finished ===

impl Finished {
    /// What the task becomes. Counts the tries that it uses up.
    fn status_after(&self, counters: &mut Counters, spec: &Spec, stamp: Stamp) -> Status {
        let queued = |reason, wait: Duration| {
            let not_before = (!wait.is_zero()).then(|| later(stamp.now, wait));
            Status::Queued(Queued { not_before, reason })
        };
        match &self.ending {
            Ending::Exited(exit) if exit.is_failure() && counters.exit_retries < spec.retries => {
                counters.exit_retries += 1;
                queued(QueuedReason::ExitRetry, backoff(spec.backoff, counters.exit_retries))
            }
            Ending::Exited(exit) => self.complete(*exit, stamp),
            Ending::NeverStarted { .. } if counters.start_failures < START_FAILURES_MAX => {
                counters.start_failures += 1;
                queued(QueuedReason::StartFailed, backoff(START_BACKOFF, counters.start_failures))
            }
            Ending::NeverStarted { message } => {
                self.failed(FailedReason::StartFailed, message, stamp)
            }
            Ending::HandedBack => queued(QueuedReason::HandedBack, Duration::ZERO),
            Ending::Drained if spec.restart_on_cluster_error => {
                queued(QueuedReason::Drained, Duration::ZERO)
            }
            Ending::Drained => self.failed(FailedReason::Drained, "its node was drained", stamp),
            Ending::TimedOut => self.failed(FailedReason::Timeout, "it ran too long", stamp),
            Ending::ScratchExceeded => {
                self.failed(FailedReason::ScratchExceeded, "it wrote too much scratch", stamp)
            }
        }
    }

    fn complete(&self, exit: Exit, stamp: Stamp) -> Status {
        let (node, usage) = (self.node, self.usage);
        Status::Complete(Complete { node, exit, usage, epoch: Epoch::of(stamp.now) })
    }

    fn failed(&self, reason: FailedReason, message: &str, stamp: Stamp) -> Status {
        Status::Failed(Failed {
            node: Some(self.node),
            reason,
            message: cut(message, MESSAGE_BYTES_MAX),
            epoch: Epoch::of(stamp.now),
        })
    }
}

// === impl Ending ===

impl Ending {
    fn cause(&self) -> Cause {
        match self {
            Self::Exited(_) => Cause::Exited,
            Self::TimedOut => Cause::Timeout,
            Self::ScratchExceeded => Cause::ScratchExceeded,
            Self::NeverStarted { .. } => Cause::StartFailed,
            Self::HandedBack => Cause::HandedBack,
            Self::Drained => Cause::Drained,
        }
    }
}
