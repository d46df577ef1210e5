//! Every change of a task, planned as one transaction: what must hold, what is written, and the task
//! as it will be. Plans only; who sends them settles them with the answer.
//!
//! Each plan compares the revision last read, rewrites the task, deletes the old status key and puts
//! the new one. What a plan compares beyond that is the fence: a node without its key cannot claim,
//! nobody requeues from a node that has its key, and a stale owner cannot complete.

mod batch;
mod cancel;
mod claim;
mod delete;
mod finish;
mod requeue;
mod settle;
mod submit;
mod touch;

use bytes::Bytes;
use jiff::Timestamp;

use super::id::{Revision, TaskId, WriteId};
use super::keys::Key;
use super::record::{Attempt, Cause, Record, SCHEMA, Task};
use super::status::Status;
use super::txn::{Compare, Op, Txn};

pub use batch::{BATCH_BYTES_MAX, BATCH_PLANS_MAX, Batch, BatchOutcome};
pub use cancel::{CANCEL_TRIES_MAX, CancelRefused, CancelStep, cancel};
pub use claim::{Claimant, claim};
pub use delete::delete;
pub use finish::{Ending, Finished, finish};
pub use requeue::requeue;
pub use settle::{ConcurrentTaskModErr, Lost, SettleError, Settled};
pub use submit::{Submission, SubmitError, Submitted, resubmitted, submit};
pub use touch::{Touch, touch};

/// When a change is made and how its writer will recognise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub now: Timestamp,
    pub write_id: WriteId,
}

/// A change of one task that is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub id: TaskId,
    pub txn: Txn,
    pub after: After,
}

/// What the store has once the plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The task, and when it was created; not known where the plan creates it.
    Task(Box<Task>, Option<Revision>),
    Deleted,
}

/// Why a task cannot be changed in this way. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error("{id} has schema {schema}, newer than {SCHEMA}: only newer nodes change it")]
    NewerSchema { id: TaskId, schema: u32 },
    #[error("{id} is {status} already")]
    SameStatus { id: TaskId, status: &'static str },
    #[error("{id} is {from} and cannot become {to}")]
    NotFrom { id: TaskId, from: &'static str, to: &'static str },
    #[error("{id} does not belong to this node")]
    NotOwner { id: TaskId },
    #[error("{id} is not to be started before {not_before}")]
    TooEarly { id: TaskId, not_before: Timestamp },
    #[error("{id} has a spec that cannot be read")]
    Spec {
        id: TaskId,
        #[source]
        source: super::spec::SpecError,
    },
}

// === impl Plan ===

impl Plan {
    /// Replaces a task by what `change` makes of it. The status key follows the status.
    fn rewrite(
        before: &Record,
        write_id: WriteId,
        change: impl FnOnce(&mut Task),
    ) -> Result<Self, TransitionError> {
        let (id, schema) = (before.id(), before.task.schema);
        if schema > SCHEMA {
            return Err(TransitionError::NewerSchema { id, schema });
        }
        let mut task = before.task.clone();
        change(&mut task);
        task.write_id = write_id;
        let (old, new) = (before.task.status.key(id), task.status.key(id));
        let mut then = vec![Op::Put(Key::Task(id), task.encode())];
        if old != new {
            then.push(Op::Delete(Key::Status(old)));
            then.push(Op::Put(Key::Status(new), Bytes::new()));
        }
        let compares = vec![Compare::ModifiedAt(Key::Task(id), before.modified)];
        let txn = Txn { compares, then, otherwise: vec![Op::Get(Key::Task(id))] };
        Ok(Self { id, txn, after: After::Task(Box::new(task), Some(before.created)) })
    }

    fn also(mut self, compare: Compare) -> Self {
        self.txn.compares.push(compare);
        self
    }

    /// The task as it will be.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        match &self.after {
            After::Task(task, _) => Some(task),
            After::Deleted => None,
        }
    }

    #[must_use]
    pub fn write_id(&self) -> Option<WriteId> {
        self.task().map(|task| task.write_id)
    }
}

// === impl Attempt ===

impl Attempt {
    fn end(&mut self, cause: Cause, at: Timestamp) {
        debug_assert!(self.cause.is_none(), "an attempt ends once");
        self.cause = Some(cause);
        self.end = Some(at);
    }
}

/// Final is final, and a change to the same status changes nothing.
fn leaving(task: &Task, to: &'static str) -> Result<(), TransitionError> {
    let (id, from) = (task.id, task.status.as_str());
    if from == to {
        return Err(TransitionError::SameStatus { id, status: from });
    }
    if task.status.is_final() {
        return Err(TransitionError::NotFrom { id, from, to });
    }
    Ok(())
}

/// The attempt of a running task, which is always the last one.
fn last_attempt(task: &mut Task) -> &mut Attempt {
    task.attempts.last_mut().expect("a task that runs has an attempt: records are read so")
}

/// A task at its end.
fn ended(task: &mut Task, status: Status, cause: Cause, at: Timestamp) {
    last_attempt(task).end(cause, at);
    task.status = status;
}
