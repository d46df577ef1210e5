//! Submit: a task comes into being, in the queue.

use bytes::Bytes;
use prost::Message;

use super::{After, Plan, Stamp};
use crate::core::id::TaskId;
use crate::core::keys::Key;
use crate::core::record::{
    AUTHOR_BYTES_MAX, Counters, GROWTH_BYTES_MAX, Record, SCHEMA, SpecHash, TASK_BYTES_MAX, Task,
    cut,
};
use crate::core::spec::{Spec, SpecError};
use crate::core::status::{Queued, QueuedReason, Status};
use crate::core::txn::{Compare, Op, Txn};
use crate::wire;

/// What somebody wants to run.
#[derive(Clone, Debug)]
pub struct Submission {
    pub spec: wire::TaskSpec,
    /// Used if the spec has no idempotency key.
    pub fresh_id: TaskId,
    pub by: String,
}

/// Why a task is not even sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("the spec is refused")]
    Spec(#[source] SpecError),
    #[error("the task has {bytes} bytes; at most {max} are allowed")]
    TooLarge { bytes: usize, max: usize },
    #[error("the idempotency key belongs to {id}, which was submitted with another spec")]
    OtherSpec { id: TaskId },
}

/// What a lost submit found: the same task, from an earlier submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub id: TaskId,
}

pub fn submit(submission: Submission, stamp: Stamp) -> Result<Plan, SubmitError> {
    let encoded = Bytes::from(submission.spec.encode_to_vec());
    let spec = Spec::new(submission.spec).map_err(SubmitError::Spec)?;
    let id = match spec.idempotency_key.as_str() {
        "" => submission.fresh_id,
        key => TaskId::of_key(key),
    };
    let status = Status::Queued(Queued { not_before: None, reason: QueuedReason::Submitted });
    let task = Task {
        id,
        schema: SCHEMA,
        spec_hash: SpecHash::of(&encoded),
        spec: encoded,
        status,
        attempts: Vec::new(),
        counters: Counters::default(),
        write_id: stamp.write_id,
        submitted_at: stamp.now,
        submitted_by: cut(&submission.by, AUTHOR_BYTES_MAX),
    };
    Plan::create(task)
}

/// Decides a submit that found its id taken. A repeated submit meets its own record.
pub fn resubmitted(plan: &Plan, found: &Record) -> Result<Submitted, SubmitError> {
    let id = found.id();
    let is_same = plan.task().is_some_and(|task| task.spec_hash == found.task.spec_hash);
    if is_same { Ok(Submitted { id }) } else { Err(SubmitError::OtherSpec { id }) }
}

// === impl Plan ===

impl Plan {
    fn create(task: Task) -> Result<Self, SubmitError> {
        let (id, encoded) = (task.id, task.encode());
        let max = TASK_BYTES_MAX - GROWTH_BYTES_MAX;
        if encoded.len() > max {
            return Err(SubmitError::TooLarge { bytes: encoded.len(), max });
        }
        let status = Key::Status(task.status.key(id));
        let txn = Txn {
            compares: vec![Compare::Absent(Key::Task(id))],
            then: vec![Op::Put(Key::Task(id), encoded), Op::Put(status, Bytes::new())],
            otherwise: vec![Op::Get(Key::Task(id))],
        };
        Ok(Self { id, txn, after: After::Task(Box::new(task), None) })
    }
}
