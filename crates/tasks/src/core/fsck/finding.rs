//! One thing that does not hold, and what mends it.

use std::time::Duration;

use bytes::Bytes;

use crate::core::id::{NodeId, Revision, TaskId};
use crate::core::keys::{Key, KeyError, StatusKey};
use crate::core::record::RecordError;
use crate::core::txn::{Compare, Op, Txn};

/// What is wrong. Only status keys are mended, and only from records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    #[error("a key is none of ours")]
    Stray(#[source] KeyError),
    #[error("task {id} cannot be read")]
    Unreadable {
        id: TaskId,
        #[source]
        source: RecordError,
    },
    #[error("{key} is missing")]
    NoStatusKey { key: StatusKey, modified: Revision },
    #[error("{key} is not what its task says")]
    WrongStatusKey { key: StatusKey, modified: Revision },
    #[error("{key} belongs to no task")]
    NoTask { key: StatusKey },
    #[error("task {id} runs on {node}, which is gone for {} s", .gone_for.as_secs())]
    Lost { id: TaskId, node: NodeId, gone_for: Duration },
}

// === impl Finding ===

impl Finding {
    /// The key that the finding is about.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Stray(KeyError::Foreign(key) | KeyError::Malformed { key, .. }) => key.clone(),
            Self::Unreadable { id, .. } => Key::Task(*id).to_string(),
            Self::NoStatusKey { key, .. }
            | Self::WrongStatusKey { key, .. }
            | Self::NoTask { key } => key.to_string(),
            Self::Lost { id, node, .. } => StatusKey::Running(*node, *id).to_string(),
        }
    }

    /// What makes the status keys say what the record says; `None` where that is not the trouble.
    /// Does nothing if the task has changed since.
    #[must_use]
    pub fn repair(&self) -> Option<Txn> {
        let (compare, op) = match *self {
            Self::NoStatusKey { key, modified } => {
                (unchanged(key, modified), Op::Put(Key::Status(key), Bytes::new()))
            }
            Self::WrongStatusKey { key, modified } => {
                (unchanged(key, modified), Op::Delete(Key::Status(key)))
            }
            Self::NoTask { key } => {
                (Compare::Absent(Key::Task(key.task())), Op::Delete(Key::Status(key)))
            }
            Self::Stray(_) | Self::Unreadable { .. } | Self::Lost { .. } => return None,
        };
        Some(Txn { compares: vec![compare], then: vec![op], otherwise: Vec::new() })
    }
}

fn unchanged(key: StatusKey, modified: Revision) -> Compare {
    Compare::ModifiedAt(Key::Task(key.task()), modified)
}
