//! Cancel: nobody wants the task any more. Its owner, if it has one, sees the change and stops it.

use super::{Plan, Stamp, TransitionError};
use crate::core::id::TaskId;
use crate::core::record::{AUTHOR_BYTES_MAX, Record, cut};
use crate::core::status::{Canceled, Status};
use crate::core::time::Epoch;

/// Lost races after which a cancel gives up: the task changes faster than it can be read.
pub const CANCEL_TRIES_MAX: usize = 5;

/// What is left to do for a cancel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelStep {
    /// Somebody has canceled it before: a success.
    Done,
    Write(Plan),
}

/// Why a task cannot be canceled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelRefused {
    #[error("{id} is {status} already")]
    Ended { id: TaskId, status: &'static str },
    #[error("the task cannot be changed")]
    Transition(#[source] TransitionError),
}

pub fn cancel(before: &Record, by: &str, stamp: Stamp) -> Result<CancelStep, CancelRefused> {
    let node = match &before.task.status {
        Status::Canceled(_) => return Ok(CancelStep::Done),
        Status::Complete(_) | Status::Failed(_) => {
            let (id, status) = (before.id(), before.task.status.as_str());
            return Err(CancelRefused::Ended { id, status });
        }
        Status::Queued(_) => None,
        Status::Running(running) => Some(running.node),
    };
    // The attempt ends when its owner says so, not now.
    let plan = Plan::rewrite(before, stamp.write_id, |task| {
        task.status = Status::Canceled(Canceled {
            node,
            by: cut(by, AUTHOR_BYTES_MAX),
            epoch: Epoch::of(stamp.now),
            stopped_at: None,
        });
    });
    plan.map(CancelStep::Write).map_err(CancelRefused::Transition)
}
