//! Judges whether segments make up a log. Pure: recovery acts on its verdicts, inspection reports
//! them.

use std::path::{Path, PathBuf};

use mvcc::Revision;

use super::{
    replay::{self, Replay, Stop},
    segment::{Extent, Filled, Header},
    survey::Candidate,
};
use crate::Error;

/// Where the next segment has to begin.
pub(super) struct Link {
    log: PathBuf,
    next_sequence: u64,
    last: Revision,
}

// === impl Link ===

impl Link {
    pub(super) fn before_all(log: PathBuf) -> Self {
        Self { log, next_sequence: 1, last: Revision::INITIAL }
    }

    pub(super) fn after(self, filled: &Filled) -> Self {
        Self { log: self.log, next_sequence: filled.next_sequence, last: filled.last }
    }

    pub(super) fn check(&self, next: &Candidate) -> Result<(), Error> {
        let header = &next.header;
        if header.base > self.last {
            let (first, last) = (self.last.next(), header.base);
            return Err(Error::Missing { path: self.log.clone(), first, last });
        }
        if header.first_sequence != self.next_sequence || header.base != self.last {
            let what = format!(
                "the segment begins with frame {} after revision {}, but frame {} after revision {} is next",
                header.first_sequence, header.base, self.next_sequence, self.last
            );
            return Err(Error::Corrupt { path: next.path.clone(), offset: 0, what });
        }
        Ok(())
    }
}

/// Replays a sealed segment. If frames after the last sound one never were in this file, it is the
/// next file that is missing, which the caller sees from where that one begins.
pub(super) fn whole(
    path: &Path,
    bytes: &[u8],
    header: &Header,
    next_sequence: u64,
) -> Result<Filled, Error> {
    let replay = Replay::of(bytes, header);
    match header.extent {
        Extent::Log => {
            let is_whole = replay.filled.next_sequence == next_sequence;
            if is_whole || replay.ends_cleanly(bytes, header) {
                return Ok(replay.filled);
            }
        }
        Extent::Rewritten { next_sequence, last, frames } => {
            if replay.filled.next_sequence == u64::from(frames) && replay.filled.last <= last {
                return Ok(Filled { next_sequence, last, ..replay.filled });
            }
        }
    }
    Err(damaged(path, &replay))
}

/// Replays the segment that was being written. Of a tail that may be cut nothing verifies, and
/// nothing after it does.
pub(super) fn newest(path: &Path, bytes: &[u8], header: &Header) -> Result<Replay, Error> {
    let replay = Replay::of(bytes, header);
    let (end, next) = replay.filled.tail();
    let is_tail = matches!(replay.stop, Stop::Full | Stop::Unverified(_))
        && next > header.first_sequence
        && replay::later_frame(bytes, end, next, header.seed()).is_none();
    if is_tail { Ok(replay) } else { Err(damaged(path, &replay)) }
}

pub(super) fn no_newest(log: PathBuf) -> Error {
    let what = "the segment that was written last is missing".to_owned();
    Error::Corrupt { path: log, offset: 0, what }
}

fn damaged(path: &Path, replay: &Replay) -> Error {
    let (path, offset) = (path.to_owned(), replay.filled.end);
    Error::Corrupt { path, offset, what: replay.stop.to_string() }
}
