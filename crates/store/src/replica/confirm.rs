//! Asking whether what this member shows is all there is, which a linearizable read must know.

use std::{
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    time::Duration,
};

use etcd_api::ApiError;
use tokio::{sync::oneshot, time::timeout};

use crate::Error;

/// Readers that wait for one look at the journal; one look answers all of them.
const QUESTIONS_MAX: usize = 1 << 16;

/// How long a request waits for an answer of the journal or of the writer, where either may be out of
/// reach: etcd's own time, so that clients see what they know.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(7);

/// What the thread that looks after the role is asked or told.
pub(crate) enum Question {
    /// Answered once everything that was acknowledged anywhere before is shown here.
    Confirm(oneshot::Sender<Result<(), Error>>),
    /// The holder of this epoch has been silent for too long.
    Claim(journal::Epoch),
    /// The role is to be taken from whoever has it. Answered once this member has it.
    Take(oneshot::Sender<Result<(), Error>>),
    /// The journal is said to have more than is shown here.
    Look,
    Stop,
}

#[derive(Clone)]
pub(crate) enum Confirm {
    /// The only member shows what it wrote before anybody hears of it.
    Alone,
    Ask(SyncSender<Question>),
}

// === impl Confirm ===

impl Confirm {
    pub(crate) fn channel() -> (Self, Receiver<Question>) {
        let (sender, receiver) = sync_channel(QUESTIONS_MAX);
        (Self::Ask(sender), receiver)
    }

    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        self.ask(Question::Confirm).await
    }

    /// Takes the writer's role, which the only member always has.
    pub(crate) async fn take(&self) -> Result<(), Error> {
        self.ask(Question::Take).await
    }

    /// Makes a member that follows look at the journal. Where the queue is full it is about to.
    pub(crate) fn look(&self) {
        if let Self::Ask(questions) = self {
            questions.try_send(Question::Look).ok();
        }
    }

    /// Ends the thread that is asked. Blocks while its queue is full, which it empties.
    pub(crate) fn stop(&self) {
        if let Self::Ask(questions) = self {
            // A closed channel means that it has ended already, which is what was asked for.
            questions.send(Question::Stop).ok();
        }
    }

    async fn ask(
        &self,
        question: impl FnOnce(oneshot::Sender<Result<(), Error>>) -> Question,
    ) -> Result<(), Error> {
        let Self::Ask(questions) = self else { return Ok(()) };
        let (reply, answer) = oneshot::channel();
        match questions.try_send(question(reply)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ApiError::Timeout.into()),
            Err(TrySendError::Disconnected(_)) => return Err(Error::Stopped),
        }
        match timeout(REQUEST_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or(Err(Error::Stopped)),
            Err(_elapsed) => Err(ApiError::Timeout.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whom_nobody_answers_is_told_so_in_time() {
        let (confirm, _questions) = Confirm::channel();
        let refused = confirm.confirm().await.unwrap_err();
        assert_eq!(refused.api(), ApiError::Timeout);
    }

    #[test]
    fn the_end_is_not_lost_on_a_full_queue() {
        let (confirm, questions) = Confirm::channel();
        let Confirm::Ask(asking) = &confirm else { unreachable!("a channel is asked") };
        for _ in 0..QUESTIONS_MAX {
            asking.try_send(Question::Claim(journal::Epoch(1))).expect("there is room");
        }
        thread::scope(|scope| {
            scope.spawn(|| confirm.stop());
            assert!(questions.iter().any(|question| matches!(question, Question::Stop)));
        });
    }
}
