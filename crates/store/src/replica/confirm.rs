//! Asking whether what this member shows is all there is, which a linearizable read must know.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use etcd_api::ApiError;
use tokio::sync::oneshot;

use crate::Error;

/// Readers that wait for one look at the journal; one look answers all of them.
const QUESTIONS_MAX: usize = 1 << 16;

/// What the thread that looks after the role is asked or told.
pub(crate) enum Question {
    /// Answered once everything that was acknowledged anywhere before is shown here.
    Confirm(oneshot::Sender<Result<(), Error>>),
    /// The holder of this epoch has been silent for too long.
    Claim(journal::Epoch),
    /// The role is to be taken from whoever has it. Answered once this member has it.
    Take(oneshot::Sender<Result<(), Error>>),
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
        answer.await.unwrap_or(Err(Error::Stopped))
    }
}
