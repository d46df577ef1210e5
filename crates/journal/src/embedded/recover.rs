//! Makes a journal out of what a folder holds: every sealed segment must be whole and follow the
//! one before it; of the newest one an unacknowledged tail is cut. Anything else is refused.

use std::{ops::Range, path::Path, sync::Arc};

use super::{
    chain::{self, Link},
    create,
    disk::Disk,
    folder::{Folder, Found},
    ledger::Ledger,
    log::{Log, View},
    segment::{self, Extent, Segment},
    sidecar,
    sizes::Sizes,
    spares::{self, Spares},
    survey::{self, Candidate, Survey},
    writer::Writer,
};
use crate::{Error, error::At};

pub(super) fn open(folder: Folder, found: Found, sizes: Sizes) -> Result<(Log, Writer), Error> {
    match found {
        Found::Nothing => create_journal(folder, sizes),
        Found::Journal => open_journal(folder, sizes),
    }
}

fn create_journal(folder: Folder, sizes: Sizes) -> Result<(Log, Writer), Error> {
    let spares = Spares::adopt(&folder, folder.files()?.spares, |bytes| sizes.is_fit(bytes, 0))?;
    let active = Arc::new(create::first_segment(&folder, sizes)?);
    folder.finish_creation()?;
    let view = View { ledger: Ledger::blank(), segments: vec![Arc::clone(&active)] };
    let last_id = active.header.id;
    Ok((Log::new(folder, view, (spares, sizes), last_id), Writer::new(active)))
}

fn open_journal(folder: Folder, sizes: Sizes) -> Result<(Log, Writer), Error> {
    let files = folder.files()?;
    let open = |path: &Path| folder.disk.open(path);
    let candidates = survey::candidates(&open, &files.segments, folder.identity);
    let survey = Survey::of(candidates.collect::<Result<_, _>>()?, files);
    let (view, active) = load(&folder, survey.chain, survey.is_newest_sealed, sizes)?;
    for path in &survey.leftovers {
        folder.remove(path)?;
    }
    let total_bytes = view.total_bytes();
    let is_fit = |bytes| sizes.is_fit(bytes, total_bytes);
    let spares = Spares::adopt(&folder, survey.spares, is_fit)?;
    Ok((Log::new(folder, view, (spares, sizes), survey.last_id), Writer::new(active)))
}

fn load(
    folder: &Folder,
    mut chain: Vec<Candidate>,
    is_newest_sealed: bool,
    sizes: Sizes,
) -> Result<(View, Arc<Segment>), Error> {
    let is_newest = |found: &Candidate| found.header.extent == Extent::Log && !is_newest_sealed;
    let newest = chain.pop().filter(is_newest).ok_or_else(|| chain::no_newest(folder.log()))?;
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
    let (segment, ledger) = load_newest(newest, sizes)?;
    let active = Arc::new(segment);
    segments.push(Arc::clone(&active));
    Ok((View { ledger, segments }, active))
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
    let filled = chain::whole(&path, &bytes, &header, next_sequence)?;
    Ok(Segment::new(path, file, header, filled))
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("the segment is in memory")
}

/// The segment that was being written. A tail that was never acknowledged is cut off.
fn load_newest(candidate: Candidate, sizes: Sizes) -> Result<(Segment, Ledger), Error> {
    let Candidate { path, file, header } = candidate;
    let bytes = segment::read_all(&file, &path)?;
    let replay = chain::newest(&path, &bytes, &header)?;
    let last = at(replay.last_frame.start)..at(replay.last_frame.end);
    let capacity = sizes.smallest().max(bytes.len() as u64);
    let segment = Segment::new(path, file, header, replay.filled).with_capacity(capacity);
    settle(&segment, &bytes, last)?;
    Ok((segment, replay.ledger))
}

/// Makes durable what was decided: the last frame counts, what follows it does not.
///
/// The last frame is written again because a sync may have failed under the process that wrote it:
/// the system then shows it from memory although the disk may not have it. The rest is zeroed so
/// that no later frame can end where remains of the torn one, made up by a client, go on.
fn settle(segment: &Segment, bytes: &[u8], last: Range<usize>) -> Result<(), Error> {
    let Segment { path, file, .. } = segment;
    let end = last.end;
    file.write_at(&bytes[last.clone()], last.start as u64).at("cannot write", path)?;
    let dirty = bytes[end..].iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    spares::zero(&**file, end as u64, (end + dirty) as u64).at("cannot write", path)?;
    file.sync().at("cannot sync", path)
}
