//! Attending a task until nothing of it runs any more: passing its output on, showing where it is, and
//! telling it of Ctrl-C.

use std::{future::Future, pin::Pin, time::Duration};

use tasks::{
    client::{self, Client, Logs},
    core::id::TaskId,
    wire::{self, logs_response::Content},
};
use tokio::time::Instant;

use super::{
    super::task::{
        connect,
        describe::{Described, Explained, State},
    },
    ending::FAILED,
    incomplete,
    screen::Screen,
};
use crate::{
    lifecycle::Signals,
    report::{self, Exit, Failure},
};

/// How often the line of progress is looked after.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Without such a line: a node answers at least this often, so that one that is gone is noticed.
const ASK_EVERY: Duration = Duration::from_mins(1);
/// A task queued this long is one that somebody wants to know the reason of.
const EXPLAIN_AFTER: Duration = Duration::from_secs(2);
/// How often a canceled task is looked at until it is stopped, and how long beyond its grace.
const STOPPING_LOOK_EVERY: Duration = Duration::from_millis(200);
const STOPPING_PATIENCE: Duration = Duration::from_secs(15);

type Waiting = Pin<Box<dyn Future<Output = Result<wire::WaitResponse, client::Error>>>>;

/// How to attend.
pub(super) struct Options {
    pub(super) wants_output: bool,
    /// How long the task may take to end once it was canceled.
    pub(super) grace: Duration,
}

/// See the module.
pub(super) struct Attendant {
    client: Client,
    id: TaskId,
    screen: Screen,
    signals: Signals,
    /// Of the present attempt; absent where nobody wants output, and once there is no more.
    logs: Option<Logs>,
    /// The attempt whose output is passed on.
    attempt: u32,
    /// The task, once it has ended.
    ended: Option<wire::TaskView>,
    is_canceled: bool,
    stopping_patience: Duration,
    began: Instant,
}

// === impl Attendant ===

impl Attendant {
    pub(super) fn new(client: Client, id: TaskId, signals: Signals, options: &Options) -> Self {
        let attempt = 1;
        let logs = options.wants_output.then(|| follow(&client, id, attempt));
        Self {
            client,
            id,
            screen: Screen::new(id),
            signals,
            logs,
            attempt,
            ended: None,
            is_canceled: false,
            stopping_patience: options.grace + STOPPING_PATIENCE,
            began: Instant::now(),
        }
    }

    /// The task as it ended, all of its output passed on and its processes gone.
    pub(super) async fn run(mut self) -> Result<wire::TaskView, Failure> {
        let mut waiting = self.wait();
        loop {
            if self.logs.is_none()
                && let Some(ended) = self.ended.take()
            {
                self.screen.clear();
                return self.until_stopped(ended).await;
            }
            tokio::select! {
                chunk = next(&mut self.logs) => self.on_chunk(chunk).await?,
                answer = &mut waiting, if self.ended.is_none() => {
                    self.on_answer(answer.map_err(connect::failure)?).await?;
                    waiting = self.wait();
                }
                () = self.signals.next() => self.on_signal().await?,
            }
        }
    }

    /// A canceled task may still be on its way out; nobody should find its processes when we are gone.
    /// Its node may be lost, and with it the word that it stopped.
    async fn until_stopped(&mut self, ended: wire::TaskView) -> Result<wire::TaskView, Failure> {
        let until = Instant::now() + self.stopping_patience;
        let mut view = ended;
        while Described::of(view.clone())?.state.is_stopping() && Instant::now() < until {
            tokio::select! {
                () = tokio::time::sleep(STOPPING_LOOK_EVERY) => {
                    view = self.client.status(self.id).await.map_err(connect::failure)?;
                }
                () = self.signals.next() => self.on_signal().await?,
            }
        }
        Ok(view)
    }

    fn wait(&self) -> Waiting {
        let timeout = if self.screen.shows_progress() { PROGRESS_EVERY } else { ASK_EVERY };
        let (client, id) = (self.client.clone(), self.id);
        Box::pin(async move { client.wait(&[id], timeout).await })
    }

    async fn on_chunk(
        &mut self,
        chunk: Result<Option<wire::LogsResponse>, client::Error>,
    ) -> Result<(), Failure> {
        match chunk {
            Ok(Some(chunk)) => {
                let is_read = self.screen.on_output(&chunk)?;
                if matches!(chunk.content, Some(Content::End(_))) {
                    self.follow_next();
                }
                // As a process whose reader is gone would end.
                if is_read || self.is_canceled { Ok(()) } else { self.cancel().await }
            }
            Ok(None) => self.on_no_log().await,
            Err(error) => {
                self.screen.clear();
                let error = anyhow::Error::new(error);
                let attempt = self.attempt;
                report::words(&format!("warning: no output of attempt {attempt}: {error:#}"));
                self.follow_next();
                Ok(())
            }
        }
    }

    /// An attempt that was given back before it began has no log, and the one after it may have.
    async fn on_no_log(&mut self) -> Result<(), Failure> {
        let view = match &self.ended {
            Some(ended) => ended.clone(),
            None => self.client.status(self.id).await.map_err(connect::failure)?,
        };
        if Described::of(view)?.may_have_attempt_after(self.attempt) {
            self.follow_next();
        } else {
            self.logs = None;
        }
        Ok(())
    }

    /// The next attempt, should there be one: until it comes or the task has ended, the node has
    /// nothing to say.
    fn follow_next(&mut self) {
        self.attempt += 1;
        self.logs = Some(follow(&self.client, self.id, self.attempt));
    }

    async fn on_answer(&mut self, answer: wire::WaitResponse) -> Result<(), Failure> {
        let view = answer.tasks.into_iter().next().ok_or_else(|| incomplete("the task"))?;
        if answer.done {
            self.screen.clear();
            self.ended = Some(view);
            return Ok(());
        }
        if self.screen.shows_progress() && !self.is_canceled {
            let state = Described::of(view)?.state;
            let explained = self.explain(&state).await?;
            self.screen.on_state(&state, explained.as_ref());
        }
        Ok(())
    }

    async fn explain(&self, state: &State) -> Result<Option<Explained>, Failure> {
        if !matches!(state, State::Queued { .. }) || self.began.elapsed() < EXPLAIN_AFTER {
            return Ok(None);
        }
        let explanation = self.client.explain(self.id).await.map_err(connect::failure)?;
        Ok(Some(Explained::of(&explanation)))
    }

    /// The first cancels and waits, the second leaves.
    async fn on_signal(&mut self) -> Result<(), Failure> {
        if self.is_canceled {
            self.screen.clear();
            let error = anyhow::anyhow!("left before task {} was stopped", self.id);
            return Err(Failure::new(Exit::Task(FAILED), error)
                .with_hint("its node stops it; `windlass task status` shows when"));
        }
        self.screen.clear();
        report::words(&format!("canceling task {}; Ctrl-C again leaves at once", self.id));
        self.cancel().await
    }

    /// A task that has ended meanwhile need not be canceled.
    async fn cancel(&mut self) -> Result<(), Failure> {
        self.is_canceled = true;
        match self.client.cancel(self.id).await {
            Ok(_) => Ok(()),
            Err(client::Error::Refused(refusal))
                if refusal.kind == tasks::service::refusal::Kind::FailedPrecondition =>
            {
                Ok(())
            }
            Err(error) => Err(connect::failure(error)),
        }
    }
}

fn follow(client: &Client, id: TaskId, attempt: u32) -> Logs {
    let id = id.to_string();
    client.logs(wire::LogsRequest { id, attempt, follow: true, ..Default::default() })
}

async fn next(logs: &mut Option<Logs>) -> Result<Option<wire::LogsResponse>, client::Error> {
    match logs {
        Some(logs) => logs.next().await,
        None => std::future::pending().await,
    }
}
