//! A failed scale-up is told, and its group is left alone for a while. Both, always.

use jiff::Timestamp;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::id::GroupId;
use crate::notice::{Failure, FailureCode, Notices};
use crate::state::GroupMemory;

pub(crate) fn of(group: &GroupId, code: FailureCode, message: String, delta: u32) -> Failure {
    Failure { group: group.clone(), code, message, delta }
}

pub(crate) fn note(
    memory: Option<&mut GroupMemory>,
    failure: Failure,
    (now, config): (Timestamp, &Config),
    notices: &mut Notices,
) {
    if let Some(memory) = memory {
        let error = (failure.code.as_str(), failure.message.as_str());
        let earlier = memory.backoff.as_ref();
        memory.backoff = Some(Backoff::after(earlier, error, now, &config.backoff));
    }
    notices.failures.push(failure);
}
