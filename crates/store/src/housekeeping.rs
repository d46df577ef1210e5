//! The thread that does what no request should wait for: giving up what compaction found, and the
//! journal's own upkeep.

use std::{
    collections::VecDeque,
    iter, mem,
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

/// How long upkeep that found no room is left alone. It may have written a good part of a segment before
/// it did, where a limit stands below what the medium says is free.
const FULL_PAUSE: Duration = Duration::from_secs(5);

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
    pub(crate) room: UpkeepRoom,
    /// How long what a sweep found is left alone, for readers that are not seen from here.
    pub(crate) grace: Duration,
    pub(crate) given_up: GivenUp,
}

/// Whether upkeep found room, and when it looks again.
#[derive(Debug, Default)]
pub(crate) struct UpkeepRoom {
    /// Whether the last step found none.
    is_medium_full: bool,
    /// Unless more is given up before.
    rests_until: Option<Instant>,
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
            let has_more = self.maintain(now)?;
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
    fn maintain(&mut self, now: Instant) -> Result<bool, HousekeepingError> {
        if self.room.is_resting(now) {
            return Ok(false);
        }
        match self.journal.maintain() {
            Ok(has_more) => {
                self.room = UpkeepRoom::default();
                Ok(has_more)
            }
            Err(error) if error.is_medium_full() => {
                if self.room.note_full(now) {
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
            self.room.wake();
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

// === impl UpkeepRoom ===

impl UpkeepRoom {
    fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// Notes that there is no room; returns whether there was some before.
    fn note_full(&mut self, now: Instant) -> bool {
        self.rests_until = Some(now + FULL_PAUSE);
        !mem::replace(&mut self.is_medium_full, true)
    }

    /// What is kept of a segment may now fit.
    fn wake(&mut self) {
        self.rests_until = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Upkeep copies until a write fails where the medium's free space is not what may be used, as with
    /// a quota. It did so every 50 ms.
    #[test]
    fn upkeep_that_found_no_room_rests_until_wake() {
        let (mut room, start) = (UpkeepRoom::default(), Instant::now());
        assert!(!room.is_resting(start));
        assert!(room.note_full(start));
        assert!(room.is_resting(start + LOOK_INTERVAL));
        assert!(!room.is_resting(start + FULL_PAUSE));
        assert!(!room.note_full(start + FULL_PAUSE), "it is told once");
        room.wake();
        assert!(!room.is_resting(start + FULL_PAUSE));
    }
}
