//! The order of the queue.

use std::cmp::Reverse;

use crate::core::id::{Revision, TaskId};

/// A task's place: by priority, then by when it was submitted. Revisions are exact where clocks are
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    priority: Reverse<i32>,
    created: Revision,
    pub task: TaskId,
}

// === impl Place ===

impl Place {
    #[must_use]
    pub fn new(priority: i32, created: Revision, task: TaskId) -> Self {
        Self { priority: Reverse(priority), created, task }
    }
}
