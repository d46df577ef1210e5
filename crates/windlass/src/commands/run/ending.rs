//! How a task's end becomes the end of `windlass run`.

use tasks::core::id::TaskId;

use super::super::task::describe::{Described, State, TIMEOUT};
use crate::{
    config::size,
    report::{Exit, Failure, Outcome},
};

/// As `timeout` of coreutils ends.
const TIMED_OUT: u8 = 124;
/// Canceled, or failed in any other way.
pub(super) const FAILED: u8 = 125;
/// Shells add the number of the signal.
const SIGNALED: i32 = 128;

/// The exit code, and what to say beside it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    code: u8,
    words: Option<String>,
}

// === impl Ending ===

impl Ending {
    pub(super) fn of(task: &Described) -> Self {
        match &task.state {
            State::Complete { oom_killed: true, exit_code, signal, .. } => {
                let limit = task.limits.as_ref().map(|limits| limits.memory_bytes);
                let limit = limit.map_or_else(|| "it may".to_owned(), size::show);
                let words = format!("killed: it took more memory than {limit}");
                Self { code: code(*exit_code, *signal), words: Some(words) }
            }
            State::Complete { exit_code, signal, .. } => {
                let words = (*signal != 0).then(|| format!("ended by signal {signal}"));
                Self { code: code(*exit_code, *signal), words }
            }
            State::Canceled { by, .. } => Self::failed(format!("canceled by {by}")),
            State::Failed { reason: TIMEOUT, .. } => {
                Self { code: TIMED_OUT, words: Some("it took longer than --timeout".to_owned()) }
            }
            State::Failed { reason, message, .. } if message.is_empty() => {
                Self::failed((*reason).to_owned())
            }
            State::Failed { reason, message, .. } => Self::failed(format!("{reason}: {message}")),
            State::Queued { .. } | State::Running { .. } => {
                Self::failed("it has not ended".to_owned())
            }
        }
    }

    fn failed(words: String) -> Self {
        Self { code: FAILED, words: Some(words) }
    }

    pub(super) fn into_outcome(self, id: TaskId) -> Outcome {
        match (self.code, self.words) {
            (0, None) => Ok(()),
            (code, None) => Err(Failure::silent(Exit::Task(code))),
            (code, Some(words)) => {
                let error = anyhow::anyhow!("task {id}: {words}");
                let hint = format!("`windlass task status {id}` says more");
                Err(Failure::new(Exit::Task(code), error).with_hint(hint))
            }
        }
    }
}

/// Codes of processes have eight bits.
fn code(exit_code: i32, signal: i32) -> u8 {
    let code = if signal == 0 { exit_code } else { SIGNALED + signal };
    code.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use tasks::wire::{self, failed, status::Status};

    use super::*;

    fn ended(status: Status) -> Ending {
        let attempt = wire::Attempt { node_name: "node1".to_owned(), ..Default::default() };
        let status = Some(wire::Status { status: Some(status) });
        let task = wire::Task { status, attempts: vec![attempt], ..Default::default() };
        let view = wire::TaskView { task: Some(task), ..Default::default() };
        Ending::of(&Described::of(view).unwrap())
    }

    fn complete(exit_code: i32, signal: i32, oom_killed: bool) -> Status {
        Status::Complete(wire::Complete { exit_code, signal, oom_killed, ..Default::default() })
    }

    fn failed(reason: failed::Reason) -> Status {
        let message = "words".to_owned();
        Status::Failed(wire::Failed { reason: reason.into(), message, ..Default::default() })
    }

    #[test]
    fn every_end_has_its_code() {
        for (status, expected) in [
            (complete(0, 0, false), 0),
            (complete(7, 0, false), 7),
            (complete(255, 0, false), 255),
            (complete(0, 15, false), 143),
            (complete(0, 9, true), 137),
            (failed(failed::Reason::Timeout), 124),
            (failed(failed::Reason::NodeLost), 125),
            (failed(failed::Reason::StartFailed), 125),
            (failed(failed::Reason::ScratchExceeded), 125),
            (failed(failed::Reason::Drained), 125),
            (Status::Canceled(wire::Canceled::default()), 125),
        ] {
            assert_eq!(ended(status.clone()).code, expected, "{status:?}");
        }
    }

    #[test]
    fn what_the_code_does_not_say_is_said() {
        assert_eq!(ended(complete(7, 0, false)).words, None);
        let words = |status| ended(status).words.unwrap();
        assert_eq!(words(complete(0, 9, true)), "killed: it took more memory than it may");
        assert_eq!(words(failed(failed::Reason::NodeLost)), "node lost: words");
    }
}
