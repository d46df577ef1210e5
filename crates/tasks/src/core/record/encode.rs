//! From a task to the message that is kept.

use bytes::Bytes;
use jiff::Timestamp;
use prost::Message;

use super::{Attempt, Cause, Task, Usage};
use crate::core::id::NodeId;
use crate::core::status::{
    Canceled, Complete, Failed, FailedReason, Queued, QueuedReason, Running, Status,
};
use crate::core::time::Epoch;
use crate::wire;

// === impl Task ===

impl Task {
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.to_message().encode_to_vec().into()
    }

    #[must_use]
    pub fn to_message(&self) -> wire::Task {
        wire::Task {
            id: self.id.to_string(),
            schema: self.schema,
            spec: self.spec.clone(),
            spec_hash: Bytes::copy_from_slice(&self.spec_hash.0),
            status: Some(wire::Status { status: Some(self.status.to_message()) }),
            attempts: self.attempts.iter().map(Attempt::to_message).collect(),
            cluster_restarts: self.counters.cluster_restarts,
            start_failures: self.counters.start_failures,
            exit_retries: self.counters.exit_retries,
            write_id: self.write_id.to_string(),
            submitted_at_ms: self.submitted_at.as_millisecond(),
            submitted_by: self.submitted_by.clone(),
        }
    }
}

// === impl Attempt ===

impl Attempt {
    fn to_message(&self) -> wire::Attempt {
        wire::Attempt {
            number: self.number.0,
            node_id: self.node.to_string(),
            host_id: self.host.to_string(),
            node_name: self.node_name.clone(),
            fence: self.fence.0,
            start_ms: self.start.as_millisecond(),
            end_ms: self.end.map(Timestamp::as_millisecond),
            cause: self.cause.map_or(wire::attempt::Cause::Unspecified, Cause::to_message).into(),
            usage: Some(self.usage.to_message()),
        }
    }
}

// === impl Cause ===

impl Cause {
    fn to_message(self) -> wire::attempt::Cause {
        match self {
            Self::Exited => wire::attempt::Cause::Exited,
            Self::Canceled => wire::attempt::Cause::Canceled,
            Self::NodeLost => wire::attempt::Cause::NodeLost,
            Self::StartFailed => wire::attempt::Cause::StartFailed,
            Self::Timeout => wire::attempt::Cause::Timeout,
            Self::ScratchExceeded => wire::attempt::Cause::ScratchExceeded,
            Self::Drained => wire::attempt::Cause::Drained,
            Self::HandedBack => wire::attempt::Cause::HandedBack,
        }
    }
}

// === impl Usage ===

impl Usage {
    fn to_message(self) -> wire::Usage {
        wire::Usage { peak_memory_bytes: self.peak_memory_bytes, cpu_ms: self.cpu_ms }
    }
}

// === impl Status ===

impl Status {
    fn to_message(&self) -> wire::status::Status {
        match self {
            Self::Queued(queued) => wire::status::Status::Queued(queued.to_message()),
            Self::Running(running) => wire::status::Status::Running(running.to_message()),
            Self::Complete(complete) => wire::status::Status::Complete(complete.to_message()),
            Self::Canceled(canceled) => wire::status::Status::Canceled(canceled.to_message()),
            Self::Failed(failed) => wire::status::Status::Failed(failed.to_message()),
        }
    }
}

impl Queued {
    fn to_message(&self) -> wire::Queued {
        let reason = match self.reason {
            QueuedReason::Submitted => wire::queued::Reason::Submitted,
            QueuedReason::ExitRetry => wire::queued::Reason::ExitRetry,
            QueuedReason::StartFailed => wire::queued::Reason::StartFailed,
            QueuedReason::HandedBack => wire::queued::Reason::HandedBack,
            QueuedReason::NodeLost => wire::queued::Reason::NodeLost,
            QueuedReason::Drained => wire::queued::Reason::Drained,
        };
        let not_before_ms = self.not_before.map_or(0, Timestamp::as_millisecond);
        wire::Queued { not_before_ms, reason: reason.into() }
    }
}

impl Running {
    fn to_message(&self) -> wire::Running {
        wire::Running {
            node_id: self.node.to_string(),
            attempt: self.attempt.0,
            since_ms: self.since.as_millisecond(),
        }
    }
}

impl Complete {
    fn to_message(&self) -> wire::Complete {
        let Epoch(epoch) = self.epoch;
        wire::Complete {
            node_id: self.node.to_string(),
            exit_code: self.exit.code,
            signal: self.exit.signal,
            oom_killed: self.exit.is_oom_killed,
            usage: Some(self.usage.to_message()),
            epoch,
        }
    }
}

impl Canceled {
    fn to_message(&self) -> wire::Canceled {
        let Epoch(epoch) = self.epoch;
        wire::Canceled {
            node_id: optional_id(self.node),
            by: self.by.clone(),
            epoch,
            stopped_at_ms: self.stopped_at.map(Timestamp::as_millisecond),
        }
    }
}

impl Failed {
    fn to_message(&self) -> wire::Failed {
        let reason = match self.reason {
            FailedReason::NodeLost => wire::failed::Reason::NodeLost,
            FailedReason::StartFailed => wire::failed::Reason::StartFailed,
            FailedReason::Timeout => wire::failed::Reason::Timeout,
            FailedReason::ScratchExceeded => wire::failed::Reason::ScratchExceeded,
            FailedReason::Drained => wire::failed::Reason::Drained,
        };
        let Epoch(epoch) = self.epoch;
        wire::Failed {
            node_id: optional_id(self.node),
            reason: reason.into(),
            message: self.message.clone(),
            epoch,
        }
    }
}

fn optional_id(node: Option<NodeId>) -> String {
    node.map(|node| node.to_string()).unwrap_or_default()
}
