//! From what is kept to a task. A field that is missing or means nothing is an error, never a guess.

use std::str::FromStr;

use etcd_api::mvccpb::KeyValue;
use jiff::Timestamp;
use prost::Message;

use super::{Attempt, Cause, Counters, Record, RecordError, SCHEMA, SpecHash, Task, Usage};
use crate::core::id::{AttemptNumber, Fence, IdError, NodeId, Revision, TaskId};
use crate::core::keys::Key;
use crate::core::status::{
    Canceled, Complete, Exit, Failed, FailedReason, Queued, QueuedReason, Running, Status,
};
use crate::core::time::Epoch;
use crate::wire;

type Result<T> = std::result::Result<T, RecordError>;

/// Names the task that an error is about.
#[derive(Clone, Copy)]
struct Reader {
    id: TaskId,
}

// === impl Record ===

impl Record {
    /// Reads what is kept under the key of a task.
    pub fn decode(kv: &KeyValue) -> Result<Self> {
        let id = match Key::parse(kv.key()).map_err(RecordError::Key)? {
            Key::Task(id) => id,
            other => return Err(RecordError::NotATask(other)),
        };
        let message = wire::Task::decode(kv.value());
        let message = message.map_err(|source| RecordError::Unparsable { id, source })?;
        let schema = message.schema;
        // What a newer version means by a field is not for this one to say.
        let newer = |error| match error {
            RecordError::Value { .. } | RecordError::Missing { .. } if schema > SCHEMA => {
                RecordError::Newer { id, schema }
            }
            other => other,
        };
        let task = Reader { id }.task(message).map_err(newer)?;
        Ok(Self::new(task, Revision(kv.mod_revision()), Revision(kv.create_revision())))
    }
}

// === impl Reader ===

impl Reader {
    fn task(self, message: wire::Task) -> Result<Task> {
        let id = self.id("id", &message.id)?;
        if id != self.id {
            return Err(RecordError::MismatchedId { key: self.id, id });
        }
        self.required("schema", (message.schema > 0).then_some(()))?;
        let spec_hash = SpecHash::of(&message.spec);
        if message.spec_hash[..] != spec_hash.0 {
            return Err(RecordError::SpecHash { id });
        }
        let status = self.required("status", message.status.and_then(|status| status.status))?;
        let attempts = message.attempts.iter().map(|attempt| self.attempt(attempt));
        let task = Task {
            id,
            schema: message.schema,
            spec: message.spec,
            spec_hash,
            status: self.status(status)?,
            attempts: attempts.collect::<Result<_>>()?,
            counters: Counters {
                cluster_restarts: message.cluster_restarts,
                start_failures: message.start_failures,
                exit_retries: message.exit_retries,
            },
            write_id: self.id("write_id", &message.write_id)?,
            submitted_at: self.time("submitted_at_ms", message.submitted_at_ms)?,
            submitted_by: message.submitted_by,
        };
        self.check_running(&task)?;
        Ok(task)
    }

    /// The attempt that runs is the last one; whoever ends it relies on that.
    fn check_running(self, task: &Task) -> Result<()> {
        let Some(running) = task.status.running() else { return Ok(()) };
        let last = task.last_attempt();
        let is_last = last.is_some_and(|last| {
            last.number == running.attempt && last.node == running.node && last.cause.is_none()
        });
        self.required("attempt that runs", is_last.then_some(()))
    }

    fn status(self, status: wire::status::Status) -> Result<Status> {
        Ok(match status {
            wire::status::Status::Queued(queued) => Status::Queued(self.queued(&queued)?),
            wire::status::Status::Running(running) => Status::Running(self.running(&running)?),
            wire::status::Status::Complete(complete) => Status::Complete(self.complete(&complete)?),
            wire::status::Status::Canceled(canceled) => Status::Canceled(self.canceled(canceled)?),
            wire::status::Status::Failed(failed) => Status::Failed(self.failed(failed)?),
        })
    }

    fn queued(self, queued: &wire::Queued) -> Result<Queued> {
        let reason = match wire::queued::Reason::try_from(queued.reason) {
            Ok(wire::queued::Reason::Submitted) => QueuedReason::Submitted,
            Ok(wire::queued::Reason::ExitRetry) => QueuedReason::ExitRetry,
            Ok(wire::queued::Reason::StartFailed) => QueuedReason::StartFailed,
            Ok(wire::queued::Reason::HandedBack) => QueuedReason::HandedBack,
            Ok(wire::queued::Reason::NodeLost) => QueuedReason::NodeLost,
            Ok(wire::queued::Reason::Drained) => QueuedReason::Drained,
            Err(_) => return Err(self.value("queued.reason", queued.reason)),
        };
        let millis = Some(queued.not_before_ms).filter(|millis| *millis != 0);
        let not_before =
            millis.map(|millis| self.time("queued.not_before_ms", millis)).transpose()?;
        Ok(Queued { not_before, reason })
    }

    fn running(self, running: &wire::Running) -> Result<Running> {
        Ok(Running {
            node: self.id("running.node_id", &running.node_id)?,
            attempt: AttemptNumber(running.attempt),
            since: self.time("running.since_ms", running.since_ms)?,
        })
    }

    fn complete(self, complete: &wire::Complete) -> Result<Complete> {
        Ok(Complete {
            node: self.id("complete.node_id", &complete.node_id)?,
            exit: Exit {
                code: complete.exit_code,
                signal: complete.signal,
                is_oom_killed: complete.oom_killed,
            },
            usage: usage(complete.usage.as_ref()),
            epoch: Epoch(complete.epoch),
        })
    }

    fn canceled(self, canceled: wire::Canceled) -> Result<Canceled> {
        let stopped_at = canceled.stopped_at_ms;
        Ok(Canceled {
            node: self.optional_node("canceled.node_id", &canceled.node_id)?,
            by: canceled.by,
            epoch: Epoch(canceled.epoch),
            stopped_at: stopped_at
                .map(|millis| self.time("canceled.stopped_at_ms", millis))
                .transpose()?,
        })
    }

    fn failed(self, failed: wire::Failed) -> Result<Failed> {
        let reason = match wire::failed::Reason::try_from(failed.reason) {
            Ok(wire::failed::Reason::NodeLost) => FailedReason::NodeLost,
            Ok(wire::failed::Reason::StartFailed) => FailedReason::StartFailed,
            Ok(wire::failed::Reason::Timeout) => FailedReason::Timeout,
            Ok(wire::failed::Reason::ScratchExceeded) => FailedReason::ScratchExceeded,
            Ok(wire::failed::Reason::Drained) => FailedReason::Drained,
            Ok(wire::failed::Reason::Unspecified) | Err(_) => {
                return Err(self.value("failed.reason", failed.reason));
            }
        };
        Ok(Failed {
            node: self.optional_node("failed.node_id", &failed.node_id)?,
            reason,
            message: failed.message,
            epoch: Epoch(failed.epoch),
        })
    }

    fn attempt(self, attempt: &wire::Attempt) -> Result<Attempt> {
        let end = attempt.end_ms.map(|millis| self.time("attempts.end_ms", millis)).transpose()?;
        Ok(Attempt {
            number: AttemptNumber(attempt.number),
            node: self.id("attempts.node_id", &attempt.node_id)?,
            host: self.id("attempts.host_id", &attempt.host_id)?,
            node_name: attempt.node_name.clone(),
            fence: Fence(attempt.fence),
            start: self.time("attempts.start_ms", attempt.start_ms)?,
            end,
            cause: self.cause(attempt.cause)?,
            usage: usage(attempt.usage.as_ref()),
        })
    }

    fn cause(self, cause: i32) -> Result<Option<Cause>> {
        Ok(Some(match wire::attempt::Cause::try_from(cause) {
            Ok(wire::attempt::Cause::Unspecified) => return Ok(None),
            Ok(wire::attempt::Cause::Exited) => Cause::Exited,
            Ok(wire::attempt::Cause::Canceled) => Cause::Canceled,
            Ok(wire::attempt::Cause::NodeLost) => Cause::NodeLost,
            Ok(wire::attempt::Cause::StartFailed) => Cause::StartFailed,
            Ok(wire::attempt::Cause::Timeout) => Cause::Timeout,
            Ok(wire::attempt::Cause::ScratchExceeded) => Cause::ScratchExceeded,
            Ok(wire::attempt::Cause::Drained) => Cause::Drained,
            Ok(wire::attempt::Cause::HandedBack) => Cause::HandedBack,
            Err(_) => return Err(self.value("attempts.cause", cause)),
        }))
    }

    fn optional_node(self, field: &'static str, text: &str) -> Result<Option<NodeId>> {
        if text.is_empty() { Ok(None) } else { self.id(field, text).map(Some) }
    }

    fn id<T: FromStr<Err = IdError>>(self, field: &'static str, text: &str) -> Result<T> {
        if text.is_empty() {
            return Err(RecordError::Missing { id: self.id, field });
        }
        text.parse().map_err(|source| RecordError::Id { id: self.id, field, source })
    }

    fn time(self, field: &'static str, millis: i64) -> Result<Timestamp> {
        let time = Timestamp::from_millisecond(millis);
        time.ok().ok_or(RecordError::Value { id: self.id, field, value: millis })
    }

    fn required<T>(self, field: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or(RecordError::Missing { id: self.id, field })
    }

    fn value(self, field: &'static str, value: i32) -> RecordError {
        RecordError::Value { id: self.id, field, value: value.into() }
    }
}

/// Nothing used is what nobody measured.
fn usage(usage: Option<&wire::Usage>) -> Usage {
    usage.map_or_else(Usage::default, |usage| Usage {
        peak_memory_bytes: usage.peak_memory_bytes,
        cpu_ms: usage.cpu_ms,
    })
}
