//! What was under way has ended: the core is told, at once or after a wait where it would try again at
//! once.

use std::time::Duration;

use kubekit::backoff::Backoff;
use tokio::time::Instant;

use super::{Driver, RETRY_FIRST, RETRY_MAX, WARN_EVERY};
use crate::core::names::InstanceId;
use crate::core::sharder::{Answer, Event, News, Token};
use crate::kubernetes::{Error, Meaning};
use crate::sharder::hand::Outcome;
use crate::sharder::pages::Cursor;

/// What the table is called where resources are, and the labels of Leases.
const TABLE: &str = "table";
const STATES: &str = "states";

/// What was under way has ended.
pub(super) enum Done {
    Answered {
        token: Token,
        outcome: Outcome,
    },
    Drained {
        token: Token,
        outcome: Outcome,
    },
    TableWritten {
        token: Token,
        epoch: u64,
        outcome: Outcome,
    },
    Page {
        token: Token,
        cursor: Cursor,
        page: Result<Answer, Error>,
    },
    /// After a wait: the failure may be told.
    Waited {
        token: Token,
    },
    TableRead(Result<Event, Error>),
    ReadTableAgain,
    StatusWritten(Result<(), Error>),
    Shown {
        id: InstanceId,
        namespace: String,
        result: Result<(), Error>,
    },
    /// After a wait: it may be asked for again.
    NotShown {
        id: InstanceId,
        namespace: String,
    },
}

// === impl Driver ===

impl Driver {
    pub(super) fn on_done(&mut self, done: Done) {
        match done {
            Done::Answered { token, outcome } => self.on_outcome(token, outcome),
            Done::Drained { token, outcome } => {
                if matches!(outcome.0, Answer::Object(_)) {
                    self.journeys.on_drained();
                }
                self.on_outcome(token, outcome);
            }
            Done::TableWritten { token, epoch, outcome } => {
                self.on_table_written(token, epoch, outcome);
            }
            Done::Page { token, cursor, page } => self.on_page(token, cursor, page),
            Done::Waited { token } => {
                self.tell(Event::Answered { token, answer: Answer::Failed });
            }
            Done::TableRead(Ok(event)) => {
                if let Event::TableRead { kept: Some(kept), .. } = &event {
                    self.epoch = kept.epoch;
                }
                self.tell(event);
            }
            Done::TableRead(Err(error)) => {
                self.on_error(&error);
                let wait = self.wait_for(TABLE);
                self.under_way.push(Box::pin(async move {
                    tokio::time::sleep(wait).await;
                    Done::ReadTableAgain
                }));
            }
            Done::ReadTableAgain => {
                let read = self.read_table();
                self.under_way.push(read);
            }
            Done::StatusWritten(result) => {
                self.throttle.on_written(Instant::now());
                self.is_status_lost = result.is_err();
                if let Err(error) = result {
                    self.on_error(&error);
                }
            }
            Done::Shown { result: Ok(()), .. } => {
                self.backoffs.remove(STATES);
            }
            Done::Shown { id, namespace, result: Err(error) } => {
                self.on_error(&error);
                // The core asks at once.
                let wait = self.wait_for(STATES);
                self.under_way.push(Box::pin(async move {
                    tokio::time::sleep(wait).await;
                    Done::NotShown { id, namespace }
                }));
            }
            Done::NotShown { id, namespace } => self.tell(Event::NotShown { id, namespace }),
        }
    }

    fn on_outcome(&mut self, token: Token, (answer, error): Outcome) {
        if let Some(error) = error {
            self.on_error(&error);
        }
        self.tell(Event::Answered { token, answer });
    }

    fn on_table_written(&mut self, token: Token, epoch: u64, (answer, error): Outcome) {
        if let Some(error) = error {
            self.on_error(&error);
            // The core would try at once.
            return self.fail_later(token, TABLE);
        }
        if matches!(answer, Answer::Table(_)) {
            self.backoffs.remove(TABLE);
            self.epoch = epoch;
            self.throttle.hurry();
        }
        self.tell(Event::Answered { token, answer });
    }

    /// A page of a pass that was given up meanwhile is nobody's.
    fn on_page(&mut self, token: Token, cursor: Cursor, page: Result<Answer, Error>) {
        let Some((asked, began)) = self.page else { return };
        if asked != token {
            return self.tell(Event::Answered { token, answer: Answer::Failed });
        }
        match page {
            Ok(answer) => {
                self.backoffs.remove(&cursor.resource());
                if cursor.is_last() {
                    self.journeys.on_pass(began.elapsed());
                }
                self.cursor = Some(cursor);
                self.tell(Event::Answered { token, answer });
            }
            Err(error) => {
                self.on_error(&error);
                // The core begins anew at once.
                self.fail_later(token, &cursor.resource());
            }
        }
    }

    fn fail_later(&mut self, token: Token, resource: &str) {
        let wait = self.wait_for(resource);
        self.under_way.push(Box::pin(async move {
            tokio::time::sleep(wait).await;
            Done::Waited { token }
        }));
    }

    fn wait_for(&mut self, resource: &str) -> Duration {
        let fresh = || Backoff::new(RETRY_FIRST, RETRY_MAX);
        self.backoffs.entry(resource.to_owned()).or_insert_with(fresh).on_failure(rand::random())
    }

    fn on_error(&mut self, error: &Error) {
        match error.meaning() {
            Meaning::Busy => self.moves.on_busy(Instant::now()),
            // A right may be missing: that is looked into, and told.
            Meaning::Forbidden => self.in_doubt.notify_one(),
            _ => {}
        }
        let is_due = self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_due {
            self.warned = Some(Instant::now());
            let error = error as &dyn std::error::Error;
            tracing::warn!(ring = %self.names.ring(), error, "a request failed and is repeated");
        }
    }

    pub(super) fn on_news(&mut self, news: &News) {
        self.journeys.on_news(news);
        self.teller.tell(news, |kind| self.hand.api_version(kind));
    }
}
