//! A task as the store keeps it. Reads and writes the message, and refuses what it cannot keep whole;
//! never changes a status.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::id::{AttemptNumber, Fence, HostId, IdError, NodeId, Revision, TaskId, WriteId};
use super::keys::{Key, KeyError};
use super::spec::{Spec, SpecError};
use super::status::Status;

/// The newest schema this version knows. It neither claims nor rewrites a task of a newer one:
/// fields it does not know would be lost.
pub const SCHEMA: u32 = 1;

pub const TASK_BYTES_MAX: usize = 64 << 10;
/// What attempts and a final status can add to a task after it was submitted.
pub const GROWTH_BYTES_MAX: usize = 6 << 10;
/// Older attempts are forgotten; their logs can still be asked for by number.
pub const ATTEMPTS_KEPT_MAX: usize = 10;
/// Longer explanations are cut, since a task must not outgrow its bound.
pub const MESSAGE_BYTES_MAX: usize = 1024;
/// Longer names of people and nodes are cut.
pub const AUTHOR_BYTES_MAX: usize = 128;

/// A task and where it stands in the store's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub task: Task,
    /// The compare of every change.
    pub modified: Revision,
    /// The place in the queue, within one priority.
    pub created: Revision,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub schema: u32,
    /// As it was submitted, never encoded again.
    pub spec: Bytes,
    pub spec_hash: SpecHash,
    pub status: Status,
    /// The last few, oldest first.
    pub attempts: Vec<Attempt>,
    pub counters: Counters,
    pub write_id: WriteId,
    pub submitted_at: Timestamp,
    pub submitted_by: String,
}

/// How often a task was put back into the queue, and what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub cluster_restarts: u32,
    pub start_failures: u32,
    pub exit_retries: u32,
}

/// One run of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub number: AttemptNumber,
    pub node: NodeId,
    pub host: HostId,
    pub node_name: String,
    /// 0 only in a claim that is not yet in the store.
    pub fence: Fence,
    pub start: Timestamp,
    pub end: Option<Timestamp>,
    /// Not set: it goes on, as far as is known.
    pub cause: Option<Cause>,
    pub usage: Usage,
}

/// Why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Exited,
    Canceled,
    NodeLost,
    StartFailed,
    Timeout,
    ScratchExceeded,
    Drained,
    HandedBack,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub peak_memory_bytes: u64,
    pub cpu_ms: u64,
}

/// SHA-256 of an encoded spec.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpecHash([u8; 32]);

/// Why a key-value is no task. None of these heals by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("the key is none of ours")]
    Key(#[source] KeyError),
    #[error("{0} is not the key of a task")]
    NotATask(Key),
    #[error("{id} cannot be read as a task")]
    Unparsable {
        id: TaskId,
        #[source]
        source: prost::DecodeError,
    },
    #[error("{key} holds the task {id}")]
    MismatchedId { key: TaskId, id: TaskId },
    #[error("{id} has schema {schema}, newer than {SCHEMA}, and cannot be read")]
    Newer { id: TaskId, schema: u32 },
    #[error("{id} has no {field}")]
    Missing { id: TaskId, field: &'static str },
    #[error("{id}: {field} is no id")]
    Id {
        id: TaskId,
        field: &'static str,
        #[source]
        source: IdError,
    },
    #[error("{id}: {field} is {value}, which means nothing")]
    Value { id: TaskId, field: &'static str, value: i64 },
    #[error("{id}: the spec does not have the hash it was submitted with")]
    SpecHash { id: TaskId },
}

// === impl Record ===

impl Record {
    /// A task as it was written at `modified`. A claim learns its fence here.
    #[must_use]
    pub fn new(mut task: Task, modified: Revision, created: Revision) -> Self {
        let is_running = task.status.running().is_some();
        if let Some(last) = task.attempts.last_mut().filter(|last| last.fence == Fence(0))
            && is_running
        {
            last.fence = Fence(modified.0);
        }
        Self { task, modified, created }
    }

    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id
    }
}

// === impl Task ===

impl Task {
    pub fn decode_spec(&self) -> Result<Spec, SpecError> {
        Spec::decode(&self.spec)
    }

    #[must_use]
    pub fn last_attempt(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The number of the attempt that a claim would begin.
    #[must_use]
    pub fn next_attempt(&self) -> AttemptNumber {
        self.attempts.last().map_or(AttemptNumber::FIRST, |last| last.number.next())
    }

    /// Where the task could not be started; such hosts come last.
    pub fn failed_hosts(&self) -> impl Iterator<Item = HostId> + '_ {
        let failed = self.attempts.iter().filter(|each| each.cause == Some(Cause::StartFailed));
        failed.map(|attempt| attempt.host)
    }
}

// === impl SpecHash ===

impl SpecHash {
    #[must_use]
    pub fn of(spec: &[u8]) -> Self {
        Self(Sha256::digest(spec).into())
    }
}

impl fmt::Debug for SpecHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

/// `text`, cut at a character so that it has at most `max` bytes.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    text[..text.floor_char_boundary(max)].to_owned()
}
