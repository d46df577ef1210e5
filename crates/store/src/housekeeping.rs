//! The thread that does what no request should wait for: giving up what compaction found, and the
//! journal's own upkeep.

use std::{
    collections::VecDeque,
    iter,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use journal::{AppendError, Epoch, Journal};
use mvcc::{Position, Revision};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

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

/// How long the answer to a physical compaction waits for readers from before it: long enough for
/// every request that is answered at once, and no matter of how fast a client takes a stream.
const READERS_WAIT_MAX: Duration = Duration::from_secs(1);

/// Positions that no state from `compacted` on shows.
pub(crate) struct Superseded {
    pub(crate) compacted: Revision,
    /// The store's revision, for the answers.
    pub(crate) revision: Revision,
    pub(crate) positions: Vec<Position>,
    /// Who waits for the end of the compaction, if this is it.
    pub(crate) replies: Vec<oneshot::Sender<Result<Compacted, Error>>>,
    /// Whether this is all that was still to be found.
    pub(crate) is_last: bool,
}

/// Up to which compaction all that was dropped is given up. Told to members who follow: what is not,
/// they remember.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<AtomicI64>);

/// What a sweep found, and since when it is here.
pub(crate) struct Waiting {
    superseded: Superseded,
    since: Instant,
}

pub(crate) struct Housekeeping {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) epoch: Epoch,
    pub(crate) published: Arc<Published>,
    pub(crate) quota: Arc<Quota>,
    pub(crate) superseded: Receiver<Superseded>,
    /// Wakes the writer, whose sweep may be waiting for room.
    pub(crate) commands: mpsc::Sender<Command>,
    /// What waits for readers to go, in order of compaction. The journal bounds it: a change is
    /// superseded once, and its place in the journal's own index is larger.
    pub(crate) waiting: VecDeque<Waiting>,
    /// Whether the last step of upkeep found no room.
    pub(crate) is_medium_full: bool,
    /// How long what a sweep found is left alone, for readers that are not seen from here.
    pub(crate) grace: Duration,
    pub(crate) given_up: GivenUp,
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
            let now = Instant::now();
            self.forget(now)?;
            self.answer_waiting(now);
            let has_more = self.maintain()?;
            self.note_size()?;
            wait = if has_more { Duration::ZERO } else { LOOK_INTERVAL };
        }
    }

    /// A size that a shared journal cannot tell for now is as it was: writes tell by themselves whether
    /// they can be made durable.
    fn note_size(&self) -> Result<(), HousekeepingError> {
        match self.quota.look(|| self.journal.size()) {
            Ok(()) => {}
            Err(error @ journal::Error::Unavailable { .. }) => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the journal does not tell its size for now");
            }
            Err(source) => return Err(HousekeepingError::Size { source }),
        }
        Ok(())
    }

    /// A full medium is no reason to stop: what is there can still be read and deleted, and writes
    /// are refused before they would fail.
    fn maintain(&mut self) -> Result<bool, HousekeepingError> {
        match self.journal.maintain() {
            Ok(has_more) => {
                self.is_medium_full = false;
                Ok(has_more)
            }
            Err(error) if error.is_medium_full() => {
                if !std::mem::replace(&mut self.is_medium_full, true) {
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(error, "no room for the journal's upkeep");
                }
                Ok(false)
            }
            Err(error @ journal::Error::Unavailable { .. }) => {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, "the journal's upkeep waits");
                Ok(false)
            }
            Err(source) => Err(HousekeepingError::Maintain { source }),
        }
    }

    /// Takes all that is there, then lets the writer go on.
    fn take(&mut self, first: Superseded) {
        let since = Instant::now();
        let all = iter::once(first).chain(self.superseded.try_iter());
        self.waiting.extend(all.map(|superseded| Waiting { superseded, since }));
        // A full queue means that the writer is awake.
        drop(self.commands.try_send(Command::Wake));
    }

    /// Gives up what no reader can ask for any more.
    fn forget(&mut self, now: Instant) -> Result<(), HousekeepingError> {
        while let Some(Waiting { superseded, since }) = self.waiting.front_mut() {
            if now.duration_since(*since) < self.grace
                || !superseded.is_durable(&self.published)
                || self.published.has_readers_before(superseded.compacted, now)
            {
                return Ok(());
            }
            self.journal
                .forget(self.epoch, &superseded.positions)
                .map_err(|source| HousekeepingError::Forget { source })?;
            superseded.answer();
            if superseded.is_last {
                self.given_up.note(superseded.compacted);
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Tells those who wait for a compaction that all of it is done but for what readers hold.
    fn answer_waiting(&mut self, now: Instant) {
        self.waiting
            .iter_mut()
            .take_while(|waiting| waiting.superseded.is_durable(&self.published))
            .filter(|waiting| now.duration_since(waiting.since) >= READERS_WAIT_MAX)
            .for_each(|waiting| waiting.superseded.answer());
    }
}

/// What an earlier writer's compaction dropped and perhaps did not give up.
pub(crate) fn unfinished(
    compacted: Revision,
    positions: Vec<Position>,
    since: Instant,
) -> Option<Waiting> {
    if positions.is_empty() {
        return None;
    }
    // Nobody waits for an answer, so that the revision in it is never told.
    let superseded = Superseded {
        compacted,
        revision: compacted,
        positions,
        replies: Vec::new(),
        // The writer sweeps too, and finds nothing more.
        is_last: false,
    };
    Some(Waiting { superseded, since })
}

// === impl GivenUp ===

impl GivenUp {
    fn note(&self, compacted: Revision) {
        self.0.store(compacted.0, Ordering::Relaxed);
    }

    /// Nothing before the first compaction of this writer.
    pub(crate) fn get(&self) -> Option<Revision> {
        let compacted = self.0.load(Ordering::Relaxed);
        (compacted > 0).then_some(Revision(compacted))
    }
}

// === impl Superseded ===

impl Superseded {
    /// A compaction is seen once it is durable.
    fn is_durable(&self, published: &Published) -> bool {
        self.compacted <= published.compacted()
    }

    fn answer(&mut self) {
        for reply in self.replies.drain(..) {
            // Whoever asked may have gone away; that changes nothing.
            drop(reply.send(Ok(Compacted { revision: self.revision })));
        }
    }
}
