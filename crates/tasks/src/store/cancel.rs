//! Canceling: read, decide, write, and again if somebody was faster.

use tokio::time::Instant;

use super::{Error, Store};
use crate::core::id::TaskId;
use crate::core::record::Record;
use crate::core::transition::{CANCEL_TRIES_MAX, CancelRefused, CancelStep, Settled, cancel};

/// A task that is canceled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canceled {
    pub record: Record,
    /// Somebody had canceled it before.
    pub is_repeated: bool,
}

/// Why a task is not known to be canceled.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    #[error("there is no task {0}")]
    NotFound(TaskId),
    #[error("the task cannot be canceled")]
    Refused(#[source] CancelRefused),
    #[error("{id} was changed by others {CANCEL_TRIES_MAX} times meanwhile")]
    LostRaces { id: TaskId },
    #[error("the cancel could not be stored")]
    Store(#[source] Error),
}

// === impl Store ===

impl Store {
    /// Cancels a task. Repeating it is success. A running one is stopped by its owner, which then adds
    /// when that was.
    pub async fn cancel(
        &self,
        id: TaskId,
        by: &str,
        until: Instant,
    ) -> Result<Canceled, CancelError> {
        let mut found = self.get(id).await.map_err(CancelError::Store)?;
        for _ in 0..CANCEL_TRIES_MAX {
            let before = found.ok_or(CancelError::NotFound(id))?;
            let plan = match cancel(&before, by, self.stamp()).map_err(CancelError::Refused)? {
                CancelStep::Done => return Ok(Canceled { record: before, is_repeated: true }),
                CancelStep::Write(plan) => plan,
            };
            match self.settle(&plan, until).await.map_err(CancelError::Store)? {
                Settled::Won(after) => {
                    let record = *after.ok_or(CancelError::NotFound(id))?;
                    return Ok(Canceled { record, is_repeated: false });
                }
                Settled::Lost(lost) => found = lost.found,
            }
        }
        Err(CancelError::LostRaces { id })
    }
}
