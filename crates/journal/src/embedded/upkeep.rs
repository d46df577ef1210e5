//! Housekeeping in bounded steps, off the write path: a spare for the next rotation, the index of
//! each sealed segment, and space back from what was forgotten. In this order, because the first
//! keeps writes fast, the second restarts, and the third only saves room.

use std::sync::Arc;

use super::{
    log::Log,
    read,
    rewrite::{self, Progress, Rewrite},
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
}

// === impl Upkeep ===

impl Upkeep {
    /// One step of the most urgent job; returns whether there may be more to do.
    pub(super) fn step(&mut self, log: &Log) -> Result<bool, Error> {
        log.check_running()?;
        Ok(self.prepare_spare(log)? || write_sidecar(log)? || self.rewrite(log)?)
    }

    fn prepare_spare(&mut self, log: &Log) -> Result<bool, Error> {
        let zeroing = match self.zeroing.take() {
            Some(zeroing) => zeroing,
            None if !needs_spare(log) => return Ok(false),
            None => Zeroing::begin(&log.folder, log.next_id())?,
        };
        let path = zeroing.path().to_owned();
        self.zeroing =
            zeroing.step(&log.folder, &log.spares).inspect_err(|_| log.folder.discard(&path))?;
        Ok(true)
    }

    fn rewrite(&mut self, log: &Log) -> Result<bool, Error> {
        if let Some(segment) = self.retiring.pop() {
            rewrite::retire(log, segment)?;
            return Ok(true);
        }
        let rewrite = match self.rewrite.take() {
            Some(rewrite) => Some(rewrite),
            None => Rewrite::begin(log)?.map(Box::new),
        };
        let Some(rewrite) = rewrite else { return Ok(false) };
        let path = rewrite.path().to_owned();
        match rewrite.step(log).inspect_err(|_| log.folder.discard(&path))? {
            Progress::Copying(rewrite) => self.rewrite = Some(rewrite),
            Progress::Replaced(sources) => self.retiring = sources,
        }
        Ok(true)
    }
}

fn needs_spare(log: &Log) -> bool {
    let threshold = SPARE_FROM_BYTES.min(log.segment_bytes / 2);
    let newest = log.segments().pop();
    log.spares.is_empty() && newest.is_some_and(|newest| newest.filled.read().end > threshold)
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
