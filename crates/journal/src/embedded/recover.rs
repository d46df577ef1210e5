//! Makes a journal out of what a folder holds: every sealed segment must be whole and follow the
//! one before it; of the newest one an unacknowledged tail is cut. Anything else is refused.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use mvcc::Revision;

use super::{
    create,
    disk::Disk,
    folder::{Folder, Found},
    ledger::Ledger,
    log::{Log, View},
    replay::{self, Replay, Stop},
    segment::{self, Extent, Filled, Header, Segment},
    sidecar,
    spares::{self, Spares},
    survey::{Candidate, Survey},
    writer::Writer,
};
use crate::{Error, error::At};

pub(super) fn open(
    folder: Folder,
    found: Found,
    segment_bytes: u64,
) -> Result<(Log, Writer), Error> {
    match found {
        Found::Nothing => create_journal(folder, segment_bytes),
        Found::Journal => open_journal(folder, segment_bytes),
    }
}

fn create_journal(folder: Folder, segment_bytes: u64) -> Result<(Log, Writer), Error> {
    let spares = Spares::adopt(&folder, folder.files()?.spares, segment_bytes)?;
    let created = create::first_segment(&folder, segment_bytes)?;
    folder.finish_creation()?;
    let active = Arc::new(created.segment);
    let view = View { ledger: Ledger::blank(), segments: vec![Arc::clone(&active)] };
    let last_id = active.header.id;
    Ok((Log::new(folder, view, spares, last_id), Writer::new(active, created.capacity)))
}

fn open_journal(folder: Folder, segment_bytes: u64) -> Result<(Log, Writer), Error> {
    let survey = Survey::of(&*folder.disk, folder.files()?, folder.identity)?;
    let (view, active) = load(&folder, survey.chain, survey.is_newest_sealed)?;
    for path in &survey.leftovers {
        folder.remove(path)?;
    }
    let spares = Spares::adopt(&folder, survey.spares, segment_bytes)?;
    let file_bytes = active.file.size().at("cannot measure", &active.path)?;
    let capacity = file_bytes.max(create::unprepared_capacity(segment_bytes));
    Ok((Log::new(folder, view, spares, survey.last_id), Writer::new(active, capacity)))
}

fn load(
    folder: &Folder,
    mut chain: Vec<Candidate>,
    is_newest_sealed: bool,
) -> Result<(View, Arc<Segment>), Error> {
    let is_newest = |newest: &Candidate| newest.header.extent == Extent::Log && !is_newest_sealed;
    let newest = chain.pop().filter(is_newest).ok_or_else(|| no_newest(folder))?;
    let mut segments = Vec::with_capacity(chain.len() + 1);
    let mut link = Link::before_all(folder.log());
    let mut sealed = chain.into_iter().peekable();
    while let Some(candidate) = sealed.next() {
        link.check(&candidate)?;
        let next = sealed.peek().unwrap_or(&newest).header.first_sequence;
        let segment = load_sealed(&*folder.disk, candidate, next)?;
        link = link.after(&segment.filled.read());
        segments.push(Arc::new(segment));
    }
    link.check(&newest)?;
    let (segment, ledger) = load_newest(newest)?;
    let active = Arc::new(segment);
    segments.push(Arc::clone(&active));
    Ok((View { ledger, segments }, active))
}

fn no_newest(folder: &Folder) -> Error {
    let what = "the segment that was written last is missing".to_owned();
    Error::Corrupt { path: folder.log(), offset: 0, what }
}

/// Where the next segment has to begin.
struct Link {
    log: PathBuf,
    next_sequence: u64,
    last: Revision,
}

// === impl Link ===

impl Link {
    fn before_all(log: PathBuf) -> Self {
        Self { log, next_sequence: 1, last: Revision::INITIAL }
    }

    fn after(self, filled: &Filled) -> Self {
        Self { log: self.log, next_sequence: filled.next_sequence, last: filled.last }
    }

    fn check(&self, next: &Candidate) -> Result<(), Error> {
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

/// A segment that others follow: it must hold every frame before `next_sequence`.
fn load_sealed(
    disk: &dyn Disk,
    candidate: Candidate,
    next_sequence: u64,
) -> Result<Segment, Error> {
    let Candidate { path, file, header } = candidate;
    let file_bytes = file.size().at("cannot measure", &path)?;
    if let Some(filled) = sidecar::load(disk, &path, &header).filter(|it| it.end <= file_bytes) {
        let segment = Segment::new(path, file, header, filled);
        segment.note_sidecar();
        return Ok(segment);
    }
    let bytes = segment::read_all(&file, &path)?;
    let filled = whole(&path, &bytes, &header, next_sequence)?;
    Ok(Segment::new(path, file, header, filled))
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

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("the segment is in memory")
}

fn damaged(path: &Path, replay: &Replay) -> Error {
    let (path, offset) = (path.to_owned(), replay.filled.end);
    Error::Corrupt { path, offset, what: replay.stop.to_string() }
}

/// The segment that was being written. A tail that was never acknowledged is cut off.
fn load_newest(candidate: Candidate) -> Result<(Segment, Ledger), Error> {
    let Candidate { path, file, header } = candidate;
    let bytes = segment::read_all(&file, &path)?;
    let replay = Replay::of(&bytes, &header);
    let (end, next) = replay.filled.tail();
    let is_tail = matches!(replay.stop, Stop::Full | Stop::Unverified(_))
        && next > header.first_sequence
        && replay::later_frame(&bytes, end, next, header.seed()).is_none();
    if !is_tail {
        return Err(damaged(&path, &replay));
    }
    let segment = Segment::new(path, file, header, replay.filled);
    settle(&segment, &bytes, at(replay.last_frame.start)..at(end))?;
    Ok((segment, replay.ledger))
}

/// Makes durable what was decided: the last frame counts, what follows it does not.
///
/// The last frame is written again because a sync may have failed under the process that wrote it:
/// the system then shows it from memory although the disk may not have it.
fn settle(segment: &Segment, bytes: &[u8], last: Range<usize>) -> Result<(), Error> {
    let Segment { path, file, .. } = segment;
    let end = last.end;
    file.write_at(&bytes[last.clone()], last.start as u64).at("cannot write", path)?;
    let dirty = bytes[end..].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    spares::zero(&**file, end as u64, (end + dirty) as u64).at("cannot write", path)?;
    file.sync().at("cannot sync", path)
}
