//! Delete: an ended task is forgotten, with its status key.

use super::{After, Plan, TransitionError};
use crate::core::id::{Revision, TaskId};
use crate::core::keys::{Key, StatusKey};
use crate::core::txn::{Compare, Op, Txn};

/// Needs no record, only what every node knows of it: its status key and its revision.
pub fn delete(status: StatusKey, modified: Revision) -> Result<Plan, TransitionError> {
    let id: TaskId = status.task();
    let from = match status {
        StatusKey::Ended(..) => None,
        StatusKey::Queued(_) => Some("queued"),
        StatusKey::Running(..) => Some("running"),
    };
    if let Some(from) = from {
        return Err(TransitionError::NotFrom { id, from, to: "deleted" });
    }
    let txn = Txn {
        compares: vec![Compare::ModifiedAt(Key::Task(id), modified)],
        then: vec![Op::Delete(Key::Task(id)), Op::Delete(Key::Status(status))],
        otherwise: vec![Op::Get(Key::Task(id))],
    };
    Ok(Plan { id, txn, after: After::Deleted })
}
