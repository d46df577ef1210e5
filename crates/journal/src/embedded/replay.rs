//! Reads the frames of a segment from its bytes. Pure: it sees a byte slice and a header, decides
//! what is part of the log, and says why it stopped; whether that may be is the caller's to judge.

use std::ops::Range;

use super::{
    frame::{self, Flaw, Frame, Kind, Seed},
    index::Index,
    ledger::{Ledger, Misfit},
    segment::{self, Extent, Filled, Header},
};

/// What the sound frames at the front of a segment say.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    pub(super) ledger: Ledger,
    pub(super) filled: Filled,
    /// Where the last sound frame is; empty if there is none.
    pub(super) last_frame: Range<u64>,
    pub(super) stop: Stop,
}

/// Why a replay ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    /// The frames fill the file to its last byte.
    #[error("the segment ends")]
    Full,
    /// Nothing verifies here: unused room, a torn write, or damage.
    #[error(transparent)]
    Unverified(Flaw),
    /// A frame verifies but what it says makes no sense. No torn write looks like this.
    #[error(transparent)]
    Malformed(Flaw),
    /// A frame verifies but cannot stand here. No torn write looks like this.
    #[error(transparent)]
    Misplaced(Misplaced),
}

/// How a sound frame contradicts those before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misplaced {
    #[error("frame {found} stands where frame {expected} belongs")]
    Sequence { expected: u64, found: u64 },
    #[error("a frame of the wrong kind begins or continues the segment")]
    Kind,
    #[error(transparent)]
    Ledger(#[from] Misfit),
}

// === impl Replay ===

impl Replay {
    /// Replays the segment that `bytes` hold, header page included, from its first frame on.
    pub(super) fn of(bytes: &[u8], header: &Header) -> Self {
        let mut replay = Self::before(header);
        loop {
            match replay.step(bytes, header) {
                Ok(()) => {}
                Err(stop) => {
                    replay.stop = stop;
                    return replay;
                }
            }
        }
    }

    /// Whether nothing suggests that a frame was here after the last sound one.
    pub(super) fn ends_cleanly(&self, bytes: &[u8], header: &Header) -> bool {
        let (end, next) = self.filled.tail();
        let rest = usize::try_from(end).ok().and_then(|end| bytes.get(end..)).unwrap_or_default();
        matches!(self.stop, Stop::Full | Stop::Unverified(_))
            && frame::claimed_sequence(rest) != Some(next)
            && later_frame(bytes, end, next, header.seed()).is_none()
    }

    fn before(header: &Header) -> Self {
        let start = segment::HEADER_BYTES as u64;
        let next_sequence = match header.extent {
            Extent::Log => header.first_sequence,
            Extent::Rewritten { .. } => 0,
        };
        let filled =
            Filled { index: Index::default(), end: start, next_sequence, last: header.base };
        let ledger = Ledger { last: header.base, ..Ledger::blank() };
        Self { ledger, filled, last_frame: start..start, stop: Stop::Full }
    }

    fn step(&mut self, bytes: &[u8], header: &Header) -> Result<(), Stop> {
        let start = usize::try_from(self.filled.end).expect("the segment is in memory");
        let rest = bytes.get(start..).filter(|rest| !rest.is_empty()).ok_or(Stop::Full)?;
        let frame = Frame::decode(rest, header.seed()).map_err(Stop::Unverified)?;
        let contents = frame.contents().map_err(Stop::Malformed)?;
        self.check_place(&frame, header).map_err(Stop::Misplaced)?;
        self.ledger
            .on_frame(&frame.header, &contents)
            .map_err(|misfit| Stop::Misplaced(misfit.into()))?;
        self.filled.grow(&contents.changes, frame.len() as u64, frame.header.last);
        self.last_frame = start as u64..self.filled.end;
        Ok(())
    }

    fn check_place(&self, frame: &Frame<'_>, header: &Header) -> Result<(), Misplaced> {
        let (expected, found) = (self.filled.next_sequence, frame.header.sequence);
        if expected != found {
            return Err(Misplaced::Sequence { expected, found });
        }
        let is_first = expected == header.first_sequence;
        let fits = match header.extent {
            Extent::Log => (frame.header.kind == Kind::Start) == is_first,
            Extent::Rewritten { .. } => frame.header.kind == Kind::Sparse,
        };
        if fits { Ok(()) } else { Err(Misplaced::Kind) }
    }
}

/// Where a sound frame numbered above `sequence` stands after `from`, if there is one: the proof
/// that what stopped a replay at `from` is damage and not the end of the log.
///
/// Old frames of a recycled file are passed by cheaply, because their numbers are below.
pub(super) fn later_frame(bytes: &[u8], from: u64, sequence: u64, seed: Seed) -> Option<u64> {
    let from = usize::try_from(from).ok()?;
    (from..bytes.len()).step_by(frame::ALIGNMENT).skip(1).find_map(|at| {
        let rest = &bytes[at..];
        let is_later = frame::claimed_sequence(rest).is_some_and(|claimed| claimed > sequence);
        (is_later && Frame::decode(rest, seed).is_ok()).then_some(at as u64)
    })
}

#[cfg(test)]
mod tests;
