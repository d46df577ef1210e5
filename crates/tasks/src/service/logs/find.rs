//! Which attempt is meant, and whose it is. Whoever follows may come before the attempt does.

use super::Wanted;
use crate::core::id::{HostId, TaskId};
use crate::core::record::{Cause, Record, Task};
use crate::node::{TaskUpdate, Updates, UpdatesEnded};
use crate::service::Service;
use crate::service::error::Error;

/// Where a log is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no attempt and none will come.
    Nothing,
    Here(Attempt),
    Elsewhere(Attempt),
}

/// What matters of an attempt for reading its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) number: u32,
    /// `None` for attempts that the record has forgotten.
    pub(super) host: Option<HostId>,
    pub(super) node_name: String,
    pub(super) has_ended: bool,
    /// It ended before its command began: there never was a log.
    pub(super) never_ran: bool,
}

/// What a record says about the attempt that is wanted.
enum Choice {
    Is(Attempt),
    NotYet,
    Never,
}

// === impl Service ===

impl Service {
    pub(super) async fn find_attempt(&self, wanted: &Wanted) -> Result<Found, Error> {
        let mut updates = self.listen()?;
        loop {
            let record = self.record(wanted.id).await?;
            match choose(&record.task, wanted.attempt) {
                Choice::Is(attempt) => return Ok(self.place_of(attempt)),
                Choice::NotYet if wanted.follow => {
                    self.until_changed(&mut updates, &record).await?;
                }
                Choice::Never if wanted.follow => return Ok(Found::Nothing),
                Choice::NotYet | Choice::Never => {
                    let id = wanted.id;
                    return match wanted.attempt {
                        None => Ok(Found::Nothing),
                        Some(attempt) => Err(Error::NoAttempt { id, attempt }),
                    };
                }
            }
        }
    }

    fn place_of(&self, attempt: Attempt) -> Found {
        match attempt.host {
            Some(host) if host != self.node().host_id() => Found::Elsewhere(attempt),
            _ => Found::Here(attempt),
        }
    }

    /// Waits for news of a task beyond what is known. Whoever missed some looks again.
    pub(super) async fn until_changed(
        &self,
        updates: &mut Updates,
        known: &Record,
    ) -> Result<(), Error> {
        loop {
            match updates.next().await {
                Ok(TaskUpdate::Changed(record)) if is_news(&record, known) => return Ok(()),
                Ok(TaskUpdate::Deleted(id)) if id == known.id() => return Ok(()),
                Ok(_) => {}
                Err(UpdatesEnded::TooSlow) => {
                    *updates = self.listen()?;
                    return Ok(());
                }
                Err(UpdatesEnded::Stopped) => return Err(Error::Stopping),
            }
        }
    }
}

fn is_news(record: &Record, known: &Record) -> bool {
    record.id() == known.id() && record.modified > known.modified
}

/// Attempts are numbered without gaps, and the record keeps the last few.
fn choose(task: &Task, wanted: Option<u32>) -> Choice {
    let is_wanted = |number: u32| wanted.is_none_or(|wanted| wanted == number);
    let kept = task.attempts.iter().rev().find(|each| is_wanted(each.number.0));
    if let Some(kept) = kept {
        return Choice::Is(Attempt {
            number: kept.number.0,
            host: Some(kept.host),
            node_name: kept.node_name.clone(),
            has_ended: kept.cause.is_some(),
            never_ran: matches!(kept.cause, Some(Cause::StartFailed | Cause::HandedBack)),
        });
    }
    let oldest = task.attempts.first().map(|oldest| oldest.number.0);
    match (wanted, oldest) {
        (Some(number), Some(oldest)) if number < oldest => Choice::Is(Attempt::forgotten(number)),
        _ if task.status.is_final() => Choice::Never,
        _ => Choice::NotYet,
    }
}

// === impl Attempt ===

impl Attempt {
    fn forgotten(number: u32) -> Self {
        let node_name = String::new();
        Self { number, host: None, node_name, has_ended: true, never_ran: false }
    }

    /// Whom to blame when the log cannot be had.
    pub(super) fn away(&self, id: TaskId) -> Error {
        Error::OwnerAway { id, attempt: self.number, owner: self.node_name.clone() }
    }
}
