//! The states of a task: what each waits for and what moves it on. Moving it is the work of
//! [`transition`](super::transition).

use jiff::Timestamp;

use super::id::{AttemptNumber, NodeId, TaskId};
use super::keys::{End, StatusKey};
use super::record::Usage;
use super::time::Epoch;

/// Where a task is. Everything but `Queued` and `Running` is final: recorded once, never changed
/// but for what its owner adds to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Waits for a node with room, and for `not_before` if it is set. A claim moves it on, or a cancel.
    Queued(Queued),
    /// Belongs to one registration of one node, and waits for the attempt's end. The owner moves it
    /// on; a cancel; or, once that registration is gone from the store, any other node.
    Running(Running),
    /// The command came to an end by itself, whatever its exit code. Waits to be removed.
    Complete(Complete),
    /// Somebody did not want it any more. Its owner, if it had one, stops what runs and adds when it
    /// stopped. Then waits to be removed.
    Canceled(Canceled),
    /// There will be no end to record. Waits to be removed.
    Failed(Failed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Set for a backoff alone: what may start at once waits for nobody's clock. Whoever claims reads
    /// it by a clock of its own, which may be behind the one it was set by.
    pub not_before: Option<Timestamp>,
    pub reason: QueuedReason,
}

/// Why a task is in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuedReason {
    Submitted,
    ExitRetry,
    StartFailed,
    HandedBack,
    NodeLost,
    Drained,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    pub node: NodeId,
    pub attempt: AttemptNumber,
    pub since: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete {
    pub node: NodeId,
    pub exit: Exit,
    pub usage: Usage,
    pub epoch: Epoch,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: i32,
    /// 0: it exited by itself.
    pub signal: i32,
    pub is_oom_killed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canceled {
    /// Where it ran, if it did.
    pub node: Option<NodeId>,
    pub by: String,
    pub epoch: Epoch,
    pub stopped_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub node: Option<NodeId>,
    pub reason: FailedReason,
    pub message: String,
    pub epoch: Epoch,
}

/// Why there is no end to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedReason {
    NodeLost,
    StartFailed,
    Timeout,
    ScratchExceeded,
    Drained,
}

// === impl Status ===

impl Status {
    /// The one status key a task has.
    #[must_use]
    pub fn key(&self, id: TaskId) -> StatusKey {
        match self {
            Self::Queued(_) => StatusKey::Queued(id),
            Self::Running(running) => StatusKey::Running(running.node, id),
            Self::Complete(complete) => StatusKey::Ended(End::Complete, complete.epoch, id),
            Self::Canceled(canceled) => StatusKey::Ended(End::Canceled, canceled.epoch, id),
            Self::Failed(failed) => StatusKey::Ended(End::Failed, failed.epoch, id),
        }
    }

    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Complete(_) | Self::Canceled(_) | Self::Failed(_))
    }

    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Queued(_) => "queued",
            Self::Running(_) => "running",
            Self::Complete(_) => End::Complete.as_str(),
            Self::Canceled(_) => End::Canceled.as_str(),
            Self::Failed(_) => End::Failed.as_str(),
        }
    }

    #[must_use]
    pub fn running(&self) -> Option<&Running> {
        match self {
            Self::Running(running) => Some(running),
            _ => None,
        }
    }
}

// === impl Exit ===

impl Exit {
    /// What a retry is for: the command ended, but not well.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.code != 0 || self.signal != 0
    }
}
