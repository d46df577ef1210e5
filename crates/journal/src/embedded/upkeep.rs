//! Housekeeping in bounded steps, off the write path: a spare for the next rotation, the index of
//! each sealed segment, and space back from what was forgotten. In this order, because the first
//! keeps writes fast, the second restarts, and the third only saves room.

use std::sync::Arc;

use super::{
    log::Log,
    read,
    rewrite::{self, Progress, Rewrite, Thrift},
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
        Ok(self.prepare_spare(log)? || write_sidecar(log)? || self.rewrite(log)?)
    }

    /// Gives back all that can be, until there is no more of it.
    pub(super) fn condense(&mut self) {
        self.thrift = Thrift::All;
    }

    fn prepare_spare(&mut self, log: &Log) -> Result<bool, Error> {
        if !self.is_spare_due(log) {
            return Ok(false);
        }
        let zeroing = match self.zeroing.take() {
            Some(zeroing) => zeroing,
            None => Zeroing::begin(&log.folder, log.next_id(), log.next_segment_bytes())?,
        };
        let path = zeroing.path().to_owned();
        self.zeroing =
            zeroing.step(&log.folder, &log.spares).inspect_err(|_| log.folder.discard(&path))?;
        Ok(true)
    }

    /// Files of replaced segments come first; only without any is a new one zeroed.
    fn is_spare_due(&self, log: &Log) -> bool {
        let newest = log.newest();
        let written = newest.filled.read().end;
        log.spares.is_empty()
            && match &self.zeroing {
                Some(zeroing) => zeroing.is_behind(written, newest.capacity),
                None => written > SPARE_FROM_BYTES.min(log.sizes.smallest() / 2),
            }
    }

    fn rewrite(&mut self, log: &Log) -> Result<bool, Error> {
        if let Some(segment) = self.retiring.pop() {
            rewrite::retire(log, segment)?;
            return Ok(true);
        }
        let rewrite = match self.rewrite.take() {
            Some(rewrite) => Some(rewrite),
            None => Rewrite::begin(log, self.thrift)?.map(Box::new),
        };
        let Some(rewrite) = rewrite else {
            self.thrift = Thrift::default();
            return Ok(false);
        };
        let path = rewrite.path().to_owned();
        match rewrite.step(log).inspect_err(|_| log.folder.discard(&path))? {
            Progress::Copying(rewrite) => self.rewrite = Some(rewrite),
            Progress::Replaced(sources) => self.retiring = sources,
        }
        Ok(true)
    }
}

/// Writes the index of one sealed segment that has none; returns whether there was one.
fn write_sidecar(log: &Log) -> Result<bool, Error> {
    let mut segments = log.segments();
    segments.pop();
    let Some(segment) = segments.iter().find(|segment| !segment.has_sidecar()) else {
        return Ok(false);
    };
    let mut heads = sidecar::Heads::default();
    let filled = segment.filled.read().clone();
    read::visit(segment, filled.index.spans(), &mut |_, kv| heads.push(&kv))?;
    let Segment { path, header, .. } = &**segment;
    let unfinished = log.folder.unfinished_path(log.next_id());
    sidecar::write(&log.folder, (path, header), &filled, &heads, &unfinished)?;
    segment.note_sidecar();
    Ok(true)
}
