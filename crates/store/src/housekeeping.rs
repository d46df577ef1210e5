//! The thread that does what no request should wait for: giving up what compaction found, and the
//! journal's own upkeep.

use std::{
    collections::VecDeque,
    io::ErrorKind,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use journal::{AppendError, Epoch, Journal};
use mvcc::{Position, Revision};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Error,
    published::Published,
    quota::Quota,
    sequencer::{Command, Compacted},
};

/// Steps of a sweep that wait for housekeeping. When it is full the sweep waits, not the writes.
pub(crate) const SUPERSEDED_MAX: usize = 1024;

/// How often readers from before a compaction, and the journal's upkeep, are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Positions that no state from `compacted` on shows.
pub(crate) struct Superseded {
    pub(crate) compacted: Revision,
    /// The store's revision, for the answers.
    pub(crate) revision: Revision,
    pub(crate) positions: Vec<Position>,
    /// Who waits for the end of the compaction, if this is it.
    pub(crate) replies: Vec<oneshot::Sender<Result<Compacted, Error>>>,
}

pub(crate) struct Housekeeping {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) epoch: Epoch,
    pub(crate) published: Arc<Published>,
    pub(crate) quota: Arc<Quota>,
    pub(crate) superseded: Receiver<Superseded>,
    /// Wakes the writer, whose sweep may be waiting for room.
    pub(crate) commands: mpsc::Sender<Command>,
    /// What waits for readers to go, in order of compaction.
    pub(crate) waiting: VecDeque<Superseded>,
    /// Whether the last step of upkeep found no room.
    pub(crate) is_medium_full: bool,
}

/// Why housekeeping ended early. The store stops with it: a journal that cannot be kept in order
/// cannot be trusted with writes.
#[derive(Debug, thiserror::Error)]
pub enum HousekeepingError {
    #[error("superseded changes could not be given up")]
    Forget {
        #[source]
        source: AppendError,
    },
    #[error("the journal's size could not be learned")]
    Size {
        #[source]
        source: journal::Error,
    },
    #[error("the journal could not be kept in order")]
    Maintain {
        #[source]
        source: journal::Error,
    },
}

// === impl Housekeeping ===

impl Housekeeping {
    /// Works until the writer is gone.
    pub(crate) fn run(mut self) -> Result<(), HousekeepingError> {
        let mut wait = LOOK_INTERVAL;
        loop {
            match self.superseded.recv_timeout(wait) {
                Ok(superseded) => self.take(superseded),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.forget()?;
            let has_more = self.maintain()?;
            let size = self.journal.size().map_err(|source| HousekeepingError::Size { source })?;
            self.quota.note(size);
            wait = if has_more { Duration::ZERO } else { LOOK_INTERVAL };
        }
    }

    /// A full medium is no reason to stop: what is there can still be read and deleted, and writes
    /// are refused before they would fail.
    fn maintain(&mut self) -> Result<bool, HousekeepingError> {
        match self.journal.maintain() {
            Ok(has_more) => {
                self.is_medium_full = false;
                Ok(has_more)
            }
            Err(journal::Error::Io { source, .. }) if source.kind() == ErrorKind::StorageFull => {
                if !std::mem::replace(&mut self.is_medium_full, true) {
                    tracing::error!(error = %source, "no room for the journal's upkeep");
                }
                Ok(false)
            }
            Err(source) => Err(HousekeepingError::Maintain { source }),
        }
    }

    /// Takes all that is there, then lets the writer go on.
    fn take(&mut self, first: Superseded) {
        self.waiting.push_back(first);
        self.waiting.extend(self.superseded.try_iter());
        // A full queue means that the writer is awake.
        drop(self.commands.try_send(Command::Wake));
    }

    /// Gives up what no reader can ask for any more.
    fn forget(&mut self) -> Result<(), HousekeepingError> {
        while let Some(first) = self.waiting.front() {
            if self.published.has_readers_before(first.compacted) {
                return Ok(());
            }
            let first = self.waiting.pop_front().expect("the front was just seen");
            self.journal
                .forget(self.epoch, &first.positions)
                .map_err(|source| HousekeepingError::Forget { source })?;
            for reply in first.replies {
                drop(reply.send(Ok(Compacted { revision: first.revision })));
            }
        }
        Ok(())
    }
}
