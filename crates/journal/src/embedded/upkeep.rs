//! Housekeeping in bounded steps, off the write path: a spare for the next rotation, the index of
//! each sealed segment, and space back from what was forgotten. In this order, because the first
//! keeps writes fast, the second restarts, and the third only saves room. On a medium with little
//! room left only the third is done: see [`room`](super::room).

use std::{io, sync::Arc};

use super::{
    log::Log,
    read,
    rewrite::{self, Begun, Progress, Rewrite, Thrift},
    room::Room,
    segment::Segment,
    sidecar,
    spares::Zeroing,
};
use crate::Error;

/// A journal with less than this in its newest segment gets no spare: most stores stay small, and
/// need not take the room of a second segment.
const SPARE_FROM_BYTES: u64 = 1 << 20;

/// The jobs under way. A failed one is given up with what it wrote; its file's state is unknown.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    zeroing: Option<Zeroing>,
    /// The segment beside which a spare found no room although there seemed to be some. Another one
    /// is tried beside the next segment, so that the room is not taken again and again.
    spareless: Option<u64>,
    rewrite: Option<Box<Rewrite>>,
    /// Replaced by a rewrite and still to be removed; removing a large file takes a while.
    retiring: Vec<Arc<Segment>>,
    thrift: Thrift,
}

// === impl Upkeep ===

impl Upkeep {
    /// One step of the most urgent job; returns whether there may be more to do.
    pub(super) fn step(&mut self, log: &Log) -> Result<bool, Error> {
        log.check_running()?;
        let room = log.room()?;
        Ok(self.prepare_spare(log, room)?
            || write_sidecar(log, room)?
            || self.rewrite(log, room)?)
    }

    /// Gives back all that can be, until there is no more of it.
    pub(super) fn condense(&mut self) {
        self.thrift = Thrift::All;
    }

    /// A spare that finds no room is done without: there is none for writes either, and only the jobs
    /// after this one give some back.
    fn prepare_spare(&mut self, log: &Log, room: Room) -> Result<bool, Error> {
        let left_bytes =
            self.zeroing.as_ref().map_or_else(|| log.next_segment_bytes(), Zeroing::left_bytes);
        if !room.is_ample_beside(left_bytes) {
            if let Some(zeroing) = self.zeroing.take() {
                log.folder.discard(zeroing.path());
            }
            return Ok(false);
        }
        if !self.is_spare_due(log) {
            return Ok(false);
        }
        match self.zero(log) {
            Ok(()) => Ok(true),
            Err(error) if error.is_medium_full() => {
                self.spareless = Some(log.newest().header.id);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn zero(&mut self, log: &Log) -> Result<(), Error> {
        let zeroing = match self.zeroing.take() {
            Some(zeroing) => zeroing,
            None => Zeroing::begin(&log.folder, log.next_id(), log.next_segment_bytes())?,
        };
        let path = zeroing.path().to_owned();
        self.zeroing =
            zeroing.step(&log.folder, &log.spares).inspect_err(|_| log.folder.discard(&path))?;
        Ok(())
    }

    /// Files of replaced segments come first; only without any is a new one zeroed.
    fn is_spare_due(&self, log: &Log) -> bool {
        let newest = log.newest();
        let written = newest.filled.read().end;
        log.spares.is_empty()
            && self.spareless != Some(newest.header.id)
            && match &self.zeroing {
                Some(zeroing) => zeroing.is_behind(written, newest.capacity),
                None => written > SPARE_FROM_BYTES.min(log.sizes.smallest() / 2),
            }
    }

    fn rewrite(&mut self, log: &Log, room: Room) -> Result<bool, Error> {
        if let Some(segment) = self.retiring.pop() {
            rewrite::retire(log, segment, room)?;
            return Ok(true);
        }
        let rewrite = match self.rewrite.take() {
            Some(rewrite) => rewrite,
            None => match Rewrite::begin(log, self.thrift, room)? {
                Begun::Rewrite(rewrite) => rewrite,
                Begun::Nothing => {
                    self.thrift = Thrift::default();
                    return Ok(false);
                }
                // Writes can do without a spare, but not without room.
                Begun::NoRoom if log.spares.give_up_one(&log.folder)? => return Ok(true),
                Begun::NoRoom => return Err(no_room(log)),
            },
        };
        let path = rewrite.path().to_owned();
        match rewrite.step(log).inspect_err(|_| log.folder.discard(&path))? {
            Progress::Copying(rewrite) => self.rewrite = Some(rewrite),
            Progress::Replaced(sources) => self.retiring = sources,
        }
        Ok(true)
    }
}

/// There is something to give back, but no room for what has to be kept of it.
fn no_room(log: &Log) -> Error {
    let source = io::Error::from(io::ErrorKind::StorageFull);
    Error::Io { step: "cannot give space back in", path: log.folder.log(), source }
}

/// Writes the index of one sealed segment that has none; returns whether there was one.
fn write_sidecar(log: &Log, room: Room) -> Result<bool, Error> {
    let mut segments = log.segments();
    segments.pop();
    let is_due = |segment: &&Arc<Segment>| {
        !segment.has_sidecar() && room.is_ample_beside(sidecar::bytes_max(&segment.filled.read()))
    };
    let Some(segment) = segments.iter().find(is_due) else { return Ok(false) };
    let mut heads = sidecar::Heads::default();
    let filled = segment.filled.read().clone();
    read::visit(segment, filled.index.spans(), &mut |_, kv| heads.push(&kv))?;
    let Segment { path, header, .. } = &**segment;
    let unfinished = log.folder.unfinished_path(log.next_id());
    sidecar::write(&log.folder, (path, header), &filled, &heads, &unfinished)?;
    segment.note_sidecar();
    Ok(true)
}
