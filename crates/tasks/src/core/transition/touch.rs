//! Touch: the owner adds what it learned. The status stays what it is.

use jiff::Timestamp;

use super::{Plan, TransitionError, last_attempt};
use crate::core::id::{HostId, WriteId};
use crate::core::record::{Cause, Record, Usage};
use crate::core::status::Status;

/// What an owner can add. The host tells the owner, because the registration may be another by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub host: HostId,
    pub usage: Usage,
    /// When the last process of a canceled task was gone.
    pub stopped_at: Option<Timestamp>,
}

pub fn touch(before: &Record, touch: Touch, write_id: WriteId) -> Result<Plan, TransitionError> {
    let id = before.id();
    let is_owner = before.task.last_attempt().is_some_and(|last| last.host == touch.host);
    if !is_owner {
        return Err(TransitionError::NotOwner { id });
    }
    Plan::rewrite(before, write_id, |task| {
        last_attempt(task).usage = touch.usage;
        let Status::Canceled(canceled) = &mut task.status else { return };
        if canceled.stopped_at.is_some() {
            return;
        }
        canceled.stopped_at = touch.stopped_at;
        if let Some(at) = touch.stopped_at {
            let last = last_attempt(task);
            if last.cause.is_none() {
                last.end(Cause::Canceled, at);
            }
        }
    })
}
