//! The thread that makes batches durable, one at a time, and lets the world see them.

use std::sync::{Arc, mpsc as std_mpsc};

use journal::{AppendError, Epoch, Journal};
use mvcc::Position;
use prometheus_client::metrics::histogram::Histogram;
use tokio::{sync::mpsc, time::Instant};

use super::{ChangeEvent, Command, CommittedBatch, Effect, Previous, batch::Batch};
use crate::{published::Published, values::KeptValues};

/// Where the outcome of a batch is seen.
pub(crate) struct Audience {
    pub(crate) kept: Arc<KeptValues>,
    pub(crate) published: Arc<Published>,
    /// Applies what a durable batch brings beside its changes.
    pub(crate) on_effect: Box<dyn Fn(Effect) + Send>,
    /// Passes on the changes of a durable batch; must not wait.
    pub(crate) on_changes: Box<dyn Fn(CommittedBatch) + Send>,
}

pub(crate) struct Committer {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) epoch: Epoch,
    pub(crate) batches: std_mpsc::Receiver<Batch>,
    pub(crate) durable: std_mpsc::SyncSender<()>,
    /// Wakes the writer, which may have a batch waiting.
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) audience: Audience,
    /// How long each batch took.
    pub(crate) appends: Histogram,
}

/// Why the committer ended early. No write is accepted after it: what could not be made durable
/// must not be answered, and a failed sync must not be tried again.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("whether this member still has the writer's role cannot be learned")]
    Unconfirmed {
        #[source]
        source: journal::Error,
    },
    #[error("a batch of writes could not be made durable")]
    Append {
        #[source]
        source: AppendError,
    },
    #[error("the outcome of a batch of writes cannot be learned")]
    Unresolved {
        #[source]
        source: journal::Error,
    },
    #[error("a batch of writes was lost by the journal")]
    Lost,
}

// === impl Committer ===

impl Committer {
    /// Commits batches until the writer is gone.
    pub(crate) fn run(self) -> Result<(), CommitError> {
        while let Ok(batch) = self.batches.recv() {
            self.append(&batch)?;
            // The next batch may start now; its writer needs no more of this one.
            let is_writer_there = self.durable.send(()).is_ok();
            self.publish(batch);
            // A full queue means that the writer is awake.
            if is_writer_there {
                drop(self.commands.try_send(Command::Wake));
            }
        }
        Ok(())
    }

    fn append(&self, batch: &Batch) -> Result<(), CommitError> {
        if !batch.writes() {
            return self.check_held();
        }
        let started = Instant::now();
        let appended = self.journal.append(self.epoch, &batch.journal);
        self.appends.observe(started.elapsed().as_secs_f64());
        match appended {
            Ok(()) => Ok(()),
            Err(AppendError::Unknown { .. }) => match self.journal.holds(batch.journal.id) {
                Ok(true) => Ok(()),
                Ok(false) => Err(CommitError::Lost),
                Err(source) => Err(CommitError::Unresolved { source }),
            },
            Err(source) => Err(CommitError::Append { source }),
        }
    }

    /// Answers that wrote nothing speak of the newest state too, so whoever lost the role must not
    /// give them. Where nobody else can write, it cannot be lost.
    fn check_held(&self) -> Result<(), CommitError> {
        let Some(shared) = self.journal.shared() else { return Ok(()) };
        let tip = shared.tip().map_err(|source| CommitError::Unconfirmed { source })?;
        if tip.epoch == self.epoch {
            return Ok(());
        }
        let source = AppendError::Fenced { held: self.epoch, current: tip.epoch };
        Err(CommitError::Append { source })
    }

    /// Readers see the batch before anyone is told of it.
    fn publish(&self, batch: Batch) {
        let (changes, writes) = (self.changes(&batch), batch.writes());
        self.audience.published.store(batch.view);
        batch.effects.into_iter().for_each(&self.audience.on_effect);
        if writes {
            self.audience.published.note(batch.journal.id);
        }
        if let Some(changes) = changes {
            (self.audience.on_changes)(changes);
        }
        batch.answers.into_iter().for_each(|answer| answer());
    }

    /// The changes of the batch, which also become readable from memory in place of what they
    /// replace.
    fn changes(&self, batch: &Batch) -> Option<CommittedBatch> {
        let records = &batch.journal.records;
        let (first, last) = (records.first()?.revision, records.last()?.revision);
        let mut events = Vec::with_capacity(records.len());
        for (record, previous) in records.iter().zip(&batch.previous) {
            for ((position, kv), previous) in record.positions().zip(previous) {
                let previous = self.previous(*previous);
                if !kv.is_tombstone() {
                    self.audience.kept.remember(position, kv.clone());
                }
                events.push(ChangeEvent { position, kv: kv.clone(), previous });
            }
        }
        Some(CommittedBatch { first, last, events })
    }

    fn previous(&self, position: Option<Position>) -> Previous {
        match position {
            None => Previous::None,
            Some(position) => match self.audience.kept.take(position) {
                Some(kv) => Previous::Known(kv),
                None => Previous::At(position),
            },
        }
    }
}
