//! Explains a data folder offline: reads every byte that counts, changes none, and goes on after
//! damage, so that all of it is found.

use std::{
    collections::HashSet,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use mvcc::Revision;
use uuid::Uuid;

use super::{
    chain::{self, Link},
    disk::DiskFile,
    folder, frame,
    ledger::Ledger,
    replay::Replay,
    segment::{self, Extent, Filled},
    survey::{self, Candidate, Survey},
};
use crate::{Epoch, Error};

/// What a data folder holds.
#[derive(Debug)]
pub struct Report {
    pub format: u32,
    pub identity: Uuid,
    /// In order.
    pub segments: Vec<SegmentReport>,
    /// Files prepared for later segments.
    pub spares: usize,
    /// Files a crash left behind, to be removed by the next start.
    pub leftovers: usize,
    /// What the newest segment says, if it can be read.
    pub state: Option<State>,
    /// All damage that was found, with its places; empty in a sound journal.
    pub damage: Vec<Error>,
}

/// Where the journal stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub durable: Revision,
    pub epoch: Epoch,
    /// In key order.
    pub meta: Vec<(Bytes, Bytes)>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    pub path: PathBuf,
    pub id: u64,
    /// Whether it was made by giving space back, not by appends.
    pub is_rewritten: bool,
    /// It holds what is left of the revisions above `base`, up to `last`.
    pub base: Revision,
    pub last: Revision,
    pub file_bytes: u64,
    /// Of these, written and sound.
    pub frame_bytes: u64,
    pub changes: usize,
    /// Bytes of all changes, and of those that are the newest of their key and no deletion.
    pub change_bytes: u64,
    pub newest_bytes: u64,
}

/// A segment's report in the making, with what is needed to tell new changes from old ones.
struct Examined {
    report: SegmentReport,
    changes: Vec<KeyChange>,
}

struct KeyChange {
    key: Bytes,
    bytes: u64,
    is_tombstone: bool,
}

/// Reads the whole folder and reports on it.
///
/// # Errors
///
/// If the folder is in use, is no journal's, has a newer format, or cannot be listed. Damage is no
/// error: see [`Report::damage`].
pub fn inspect(dir: &Path) -> Result<Report, Error> {
    let _lock = folder::lock_existing(dir)?;
    let format = folder::read_format(dir)?.ok_or_else(|| folder::without_format(dir))?;
    let log = folder::log_of(dir);
    let files = folder::list(&log)?;
    let mut damage = Vec::new();
    let mut candidates = Vec::new();
    for found in survey::candidates(&open_to_read, &files.segments, format.identity) {
        match found {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => damage.push(error),
        }
    }
    let survey = Survey::of(candidates, files);
    if survey.is_newest_sealed || survey.chain.is_empty() {
        damage.push(chain::no_newest(log.clone()));
    }
    let (segments, state) = examine_chain(&survey.chain, Link::before_all(log), &mut damage)?;
    Ok(Report {
        format: format.number,
        identity: format.identity,
        segments,
        spares: survey.spares.len(),
        leftovers: survey.leftovers.len(),
        state,
        damage,
    })
}

/// Like [`inspect`], but the first damage is an error.
///
/// # Errors
///
/// As [`inspect`], and for anything that is damaged.
pub fn verify(dir: &Path) -> Result<Report, Error> {
    let mut report = inspect(dir)?;
    if report.damage.is_empty() { Ok(report) } else { Err(report.damage.swap_remove(0)) }
}

fn open_to_read(path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    Ok(Arc::new(File::open(path)?))
}

fn examine_chain(
    chain: &[Candidate],
    mut link: Link,
    damage: &mut Vec<Error>,
) -> Result<(Vec<SegmentReport>, Option<State>), Error> {
    let mut examined = Vec::new();
    let mut state = None;
    for (at, candidate) in chain.iter().enumerate() {
        damage.extend(link.check(candidate).err());
        let bytes = segment::read_all(&candidate.file, &candidate.path)?;
        let replay = Replay::of(&bytes, &candidate.header);
        let next = chain.get(at + 1).map(|next| next.header.first_sequence);
        damage.extend(judge(candidate, &bytes, next).err());
        link = link.after(&reach(candidate, &replay));
        examined.push(examine(candidate, &bytes, &replay, damage));
        state = (candidate.header.extent == Extent::Log).then(|| State::of(&replay.ledger));
    }
    Ok((tell_newest(examined), state))
}

/// Whether the segment is what it must be: whole, or for the newest one, whole but for a tail.
fn judge(candidate: &Candidate, bytes: &[u8], next: Option<u64>) -> Result<(), Error> {
    let Candidate { path, header, .. } = candidate;
    match next {
        Some(next) => chain::whole(path, bytes, header, next).map(drop),
        None => chain::newest(path, bytes, header).map(drop),
    }
}

/// How far the segment reaches: as far as it says, or as it can be read.
fn reach(candidate: &Candidate, replay: &Replay) -> Filled {
    match candidate.header.extent {
        Extent::Log => replay.filled.clone(),
        Extent::Rewritten { next_sequence, last, .. } => {
            Filled { next_sequence, last, ..replay.filled.clone() }
        }
    }
}

fn examine(
    candidate: &Candidate,
    bytes: &Bytes,
    replay: &Replay,
    damage: &mut Vec<Error>,
) -> Examined {
    let Candidate { path, header, .. } = candidate;
    let filled = reach(candidate, replay);
    let mut changes = Vec::new();
    for span in filled.index.spans() {
        let start = span.start as usize;
        let own = bytes.slice(start..start + frame::CHANGE_HEADER_BYTES + span.len as usize);
        match segment::key_value(span.position, own) {
            Some(kv) => changes.push(KeyChange {
                // A copy, so that the segment's bytes can go.
                key: Bytes::copy_from_slice(kv.key()),
                bytes: span.len.into(),
                is_tombstone: kv.is_tombstone(),
            }),
            None => damage.push(segment::damaged_change(path, *span)),
        }
    }
    let report = SegmentReport {
        path: path.clone(),
        id: header.id,
        is_rewritten: header.extent != Extent::Log,
        base: header.base,
        last: filled.last,
        file_bytes: bytes.len() as u64,
        frame_bytes: filled.end - segment::HEADER_BYTES as u64,
        changes: filled.index.spans().len(),
        change_bytes: filled.index.spans().iter().map(|span| u64::from(span.len)).sum(),
        newest_bytes: 0,
    };
    Examined { report, changes }
}

/// Fills in what is the newest change of its key, going back from the end.
fn tell_newest(examined: Vec<Examined>) -> Vec<SegmentReport> {
    let mut seen: HashSet<Bytes> = HashSet::new();
    let mut reports: Vec<SegmentReport> = Vec::with_capacity(examined.len());
    for Examined { mut report, changes } in examined.into_iter().rev() {
        for KeyChange { key, bytes, is_tombstone } in changes.into_iter().rev() {
            if seen.insert(key) && !is_tombstone {
                report.newest_bytes += bytes;
            }
        }
        reports.push(report);
    }
    reports.reverse();
    reports
}

// === impl State ===

impl State {
    fn of(ledger: &Ledger) -> Self {
        let meta = ledger.meta.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Self { durable: ledger.last, epoch: ledger.epoch, meta }
    }
}
