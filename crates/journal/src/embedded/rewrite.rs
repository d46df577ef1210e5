//! Gives space back: copies what survived in a run of sealed segments into one new segment that
//! takes their place.
//!
//! Safe at any point of a crash. The new segment is durable before it gets its name, and of two
//! that cover the same frames the one with the larger id counts, so what is left of the old ones
//! only has to be removed. The new one states which frames and revisions it stands for, even if
//! nothing of them survived, so that a missing segment is still noticed.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use mvcc::{Record, Revision};

use super::{
    disk::DiskFile,
    frame::{self, Encoder, Kind},
    index::Index,
    log::Log,
    read,
    room::Room,
    segment::{self, Extent, Filled, Header, Segment},
    sidecar,
};
use crate::{BatchId, Epoch, Error, error::At};

/// What one step copies, give or take a record.
const STEP_BYTES: usize = 4 << 20;
/// What the frame of a step takes beside its records, at most.
const FRAME_OVERHEAD_BYTES: usize = frame::HEADER_BYTES + frame::ALIGNMENT;
/// Segments with less than this part of a full one in use are merged with their like,
const TINY_PART: u64 = 16;
/// but only this many at a time, so that what they hold is not copied over and over.
const TINY_RUN_MIN: usize = 4;
/// A segment is wasteful if copying it would give back this part of it.
const WASTED_PART: u64 = 8;

/// What the choice of segments looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    live_bytes: u64,
    /// What they would take in a rewritten segment, at most.
    copied_bytes: u64,
    frame_bytes: u64,
}

/// How much is copied to give space back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Thrift {
    /// No more than is given back: in the long run every byte is copied once.
    #[default]
    Balanced,
    /// Whatever it takes, because somebody asked for room.
    All,
}

/// What there is to rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Nothing,
    Run(Range<usize>),
    /// Something, but there is no room for any copy.
    NoRoom,
}

/// What the beginning of a rewrite came to; see [`Choice`].
#[derive(Debug)]
pub(super) enum Begun {
    Nothing,
    Rewrite(Box<Rewrite>),
    NoRoom,
}

/// A rewrite under way.
#[derive(Debug)]
pub(super) struct Rewrite {
    sources: Vec<Arc<Segment>>,
    /// The source being copied, and the revision to go on from.
    at: (usize, Revision),
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    header: Header,
    encoder: Encoder,
    filled: Filled,
    heads: sidecar::Heads,
}

/// What a step of a rewrite came to.
#[derive(Debug)]
pub(super) enum Progress {
    /// There is more to copy.
    Copying(Box<Rewrite>),
    /// The new segment is in place; these are to be [retired](retire), one per step.
    Replaced(Vec<Arc<Segment>>),
}

// === impl Shape ===

impl Shape {
    pub(super) fn of(segment: &Segment) -> Self {
        let filled = segment.filled.read();
        let live_bytes = filled.index.live_bytes();
        let records = filled.index.live_changes() * frame::RECORD_HEADER_BYTES;
        let frames = (1 + live_bytes / STEP_BYTES as u64) * FRAME_OVERHEAD_BYTES as u64;
        let frame_bytes = filled.end - segment::HEADER_BYTES as u64;
        Self { live_bytes, copied_bytes: live_bytes + records as u64 + frames, frame_bytes }
    }

    /// What is copied is not wasteful, or it would be copied again and again.
    fn is_wasteful(self) -> bool {
        self.copied_bytes * WASTED_PART < self.frame_bytes * (WASTED_PART - 1)
    }

    /// Whether it is worth a new segment, which takes a page at least, to have this one rewritten.
    pub(super) fn is_worth_sealing(self) -> bool {
        let wasted_bytes = self.frame_bytes.saturating_sub(self.copied_bytes);
        self.is_wasteful() && wasted_bytes > segment::HEADER_BYTES as u64
    }

    /// What is copied counts, not what is live: of a few bytes the frame around them takes more, and a copy
    /// that gives nothing back would be made for ever.
    fn is_sparse(self) -> bool {
        self.copied_bytes * 2 < self.frame_bytes
    }

    fn is_tiny(self, segment_bytes: u64) -> bool {
        self.live_bytes < segment_bytes / TINY_PART
    }

    fn of_all(shapes: &[Self]) -> Self {
        shapes.iter().fold(Self::default(), |sum, shape| sum.and(*shape))
    }

    fn and(self, other: Self) -> Self {
        Self {
            live_bytes: self.live_bytes + other.live_bytes,
            copied_bytes: self.copied_bytes + other.copied_bytes,
            frame_bytes: self.frame_bytes + other.frame_bytes,
        }
    }

    /// What the rewritten segment takes.
    fn file_bytes(self) -> u64 {
        self.copied_bytes + segment::HEADER_BYTES as u64
    }

    fn freed_bytes(self) -> u64 {
        self.frame_bytes.saturating_sub(self.copied_bytes)
    }
}

/// Which run of sealed segments to rewrite into one, if any is worth it: adjacent ones whose copies
/// would take less than half of them (or just less), or else several adjacent ones with little in them. If
/// the copy would take more than `room_bytes`, then what frees most of what fits.
fn choose(shapes: &[Shape], segment_bytes: u64, room_bytes: u64, thrift: Thrift) -> Choice {
    let is_wasted = match thrift {
        Thrift::Balanced => Shape::is_sparse,
        Thrift::All => Shape::is_wasteful,
    };
    let fits_segment = |sum: Shape| sum.live_bytes <= segment_bytes;
    let fits_room =
        |run: &Range<usize>| Shape::of_all(&shapes[run.clone()]).file_bytes() <= room_bytes;
    if let Some(run) = runs(shapes, is_wasted, fits_segment).next() {
        if fits_room(&run) {
            return Choice::Run(run);
        }
        let fits_both = |sum: Shape| fits_segment(sum) && sum.file_bytes() <= room_bytes;
        let freed_bytes = |run: &Range<usize>| Shape::of_all(&shapes[run.clone()]).freed_bytes();
        let best = runs(shapes, is_wasted, fits_both).filter(fits_room).max_by_key(freed_bytes);
        return best.map_or(Choice::NoRoom, Choice::Run);
    }
    // These free next to nothing, so without room they can wait.
    runs(shapes, |shape| shape.is_tiny(segment_bytes), fits_segment)
        .find(|run| run.len() >= TINY_RUN_MIN && fits_room(run))
        .map_or(Choice::Nothing, Choice::Run)
}

/// Runs of segments that all satisfy `is_wanted` and together fit; a single one need not.
fn runs(
    shapes: &[Shape],
    is_wanted: impl Fn(Shape) -> bool,
    is_fit: impl Fn(Shape) -> bool,
) -> impl Iterator<Item = Range<usize>> {
    let mut begin = 0;
    std::iter::from_fn(move || {
        begin += shapes[begin..].iter().position(|shape| is_wanted(*shape))?;
        let mut sum = Shape::default();
        let len = shapes[begin..]
            .iter()
            .take_while(|shape| {
                sum = sum.and(**shape);
                is_wanted(**shape) && is_fit(sum)
            })
            .count()
            .max(1);
        let run = begin..begin + len;
        begin = run.end;
        Some(run)
    })
}

// === impl Rewrite ===

impl Rewrite {
    /// Begins the rewrite that is most worth it, if any is.
    pub(super) fn begin(log: &Log, thrift: Thrift, room: Room) -> Result<Begun, Error> {
        let mut segments = log.segments();
        segments.pop();
        let shapes: Vec<Shape> = segments.iter().map(|segment| Shape::of(segment)).collect();
        match choose(&shapes, log.next_segment_bytes(), room.copy_bytes(), thrift) {
            Choice::Nothing => Ok(Begun::Nothing),
            Choice::NoRoom => Ok(Begun::NoRoom),
            Choice::Run(run) => {
                Self::of(log, segments[run].to_vec()).map(|begun| Begun::Rewrite(Box::new(begun)))
            }
        }
    }

    fn of(log: &Log, sources: Vec<Arc<Segment>>) -> Result<Self, Error> {
        let id = log.next_id();
        let path = log.folder.unfinished_path(id);
        let file = log.folder.disk.create(&path).at("cannot create", &path)?;
        let first = sources[0].header;
        let filled = Filled {
            index: Index::default(),
            end: segment::HEADER_BYTES as u64,
            next_sequence: 0,
            last: first.base,
        };
        Ok(Self {
            at: (0, first.base.next()),
            path,
            file,
            header: Header { id, ..first },
            sources,
            encoder: Encoder::default(),
            filled,
            heads: sidecar::Heads::default(),
        })
    }

    /// Copies a step further, until the new segment can take its place.
    pub(super) fn step(mut self: Box<Self>, log: &Log) -> Result<Progress, Error> {
        let (source, from) = self.at;
        let Some(segment) = self.sources.get(source) else {
            return self.finish(log).map(Progress::Replaced);
        };
        let records = read::some_records(segment, from, STEP_BYTES)?;
        self.at = match records.last() {
            Some(record) => (source, record.revision.next()),
            None => (source + 1, segment.filled.read().last.next()),
        };
        if !records.is_empty() {
            self.copy(&records)?;
        }
        Ok(Progress::Copying(self))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn copy(&mut self, records: &[Record]) -> Result<(), Error> {
        self.encoder.begin();
        for record in records {
            self.encoder.record(record.revision, &record.changes);
            record.changes.iter().for_each(|change| self.heads.push(&change.kv));
        }
        let (start, sequence) = self.filled.tail();
        let last = records.last().map_or(self.filled.last, |record| record.revision);
        let id = BatchId { epoch: Epoch(0), number: 0 };
        let header = frame::Header { kind: Kind::Sparse, sequence, id, last };
        self.encoder.finish(&header, self.header.seed());
        self.file.write_at(self.encoder.bytes(), start).at("cannot write", &self.path)?;
        self.file.sync().at("cannot sync", &self.path)?;
        self.filled.grow(self.encoder.spans(), self.encoder.finished_len(), last);
        Ok(())
    }

    fn finish(mut self, log: &Log) -> Result<Vec<Arc<Segment>>, Error> {
        let (next_sequence, last) = {
            let newest = self.sources.last().expect("a run is not empty").filled.read();
            (newest.next_sequence, newest.last)
        };
        let frames = u32::try_from(self.filled.next_sequence).expect("fewer frames than bytes");
        self.header.extent = Extent::Rewritten { next_sequence, last, frames };
        self.filled.next_sequence = next_sequence;
        self.filled.last = last;
        self.file.write_at(&self.header.encode(), 0).at("cannot write", &self.path)?;
        self.file.sync().at("cannot sync", &self.path)?;
        let named = log.folder.log().join(self.header.file_name());
        let of = (&*named, &self.header);
        let unfinished = log.folder.unfinished_path(log.next_id());
        // Without room for the index, upkeep makes it later; the space of the sources comes first.
        let has_room = log.room()?.is_ample_beside(sidecar::bytes_max(&self.filled));
        if has_room {
            sidecar::write(&log.folder, of, &self.filled, &self.heads, &unfinished)?;
        }
        log.folder.rename(&self.path, &named)?;
        log.folder.sync_log()?;
        let Self { file, header, filled, sources, .. } = self;
        let segment = Segment::new(named, file, header, filled);
        if has_room {
            segment.note_sidecar();
        }
        log.replace(&sources, segment);
        Ok(sources)
    }
}

/// Removes or recycles a segment that was replaced. After a crash before this, opening the journal
/// removes it. Where room is scarce a spare would only keep it from others.
pub(super) fn retire(log: &Log, segment: Arc<Segment>, room: Room) -> Result<(), Error> {
    if segment.has_sidecar() {
        log.folder.remove(&super::folder::sidecar_of(&segment.path))?;
    }
    let total_bytes = log.total_bytes();
    let is_fit = |bytes| room.is_ample_beside(0) && log.sizes.is_fit(bytes, total_bytes);
    log.spares.recycle(&log.folder, (segment, log.next_id()), is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT_BYTES: u64 = 1000;

    /// Each segment is written `live/frames`; the chosen run comes back as positions.
    fn chosen(thrift: Thrift, room_bytes: u64, segments: &str) -> Choice {
        let shape = |text: &str| {
            let (live, frames) = text.split_once('/').expect("live/frames");
            let bytes = |text: &str| text.parse().expect("a number");
            let live_bytes = bytes(live);
            let copied_bytes = live_bytes + live_bytes / 20;
            Shape { live_bytes, copied_bytes, frame_bytes: bytes(frames) }
        };
        let shapes: Vec<Shape> = segments.split_whitespace().map(shape).collect();
        choose(&shapes, SEGMENT_BYTES, room_bytes, thrift)
    }

    fn check_thrift(thrift: Thrift, segments: &str, expected: Option<Range<usize>>) {
        let expected = expected.map_or(Choice::Nothing, Choice::Run);
        assert_eq!(chosen(thrift, u64::MAX, segments), expected, "{segments}");
    }

    /// The copies may take so much, the page of their header not counted.
    fn check_room(room_bytes: u64, segments: &str, expected: &Choice) {
        let room_bytes = room_bytes + segment::HEADER_BYTES as u64;
        assert_eq!(&chosen(Thrift::Balanced, room_bytes, segments), expected, "{segments}");
    }

    fn check(segments: &str, chosen: Option<Range<usize>>) {
        check_thrift(Thrift::Balanced, segments, chosen);
    }

    #[test]
    fn sparse_neighbours_are_rewritten_together() {
        check("", None);
        check("900/1000 477/1000", None);
        check("900/1000 476/1000", Some(1..2));
        check("400/1000 400/1000 900/1000", Some(0..2));
        check("400/1000 400/1000 400/1000", Some(0..2));
        check("900/1000 0/1000 0/1000 0/1000", Some(1..4));
        check("4000/9000 10/1000", Some(0..1));
    }

    #[test]
    fn small_remains_are_merged_only_in_numbers() {
        check("50/60 50/60 50/60", None);
        check("50/60 50/60 50/60 50/60", Some(0..4));
        check("50/60 50/60 900/1000 50/60 50/60", None);
        check("0/0 0/0 0/0 0/0 0/0", Some(0..5));
    }

    #[test]
    fn what_was_rewritten_is_left_alone() {
        check("0/0 700/760 0/0", None);
        check_thrift(Thrift::All, "0/0 700/760 0/0", None);
    }

    #[test]
    fn without_room_for_the_first_run_what_frees_most_is_rewritten() {
        let (first, second) = ("400/1000 400/1000", "100/1000 100/1000");
        check_room(840, &format!("{first} 900/1000 {second}"), &Choice::Run(0..2));
        check_room(839, &format!("{first} 900/1000 {second}"), &Choice::Run(3..5));
        check_room(839, first, &Choice::Run(1..2));
        check_room(420, "400/1000 400/3000", &Choice::Run(1..2));
        check_room(419, first, &Choice::NoRoom);
        check_room(0, "0/1000 400/1000", &Choice::Run(0..1));
        check_room(0, "900/1000", &Choice::Nothing);
        check_room(0, "50/60 50/60 50/60 50/60", &Choice::Nothing);
    }

    #[test]
    fn with_all_thrift_little_waste_is_enough() {
        check("800/1000 800/1000", None);
        check_thrift(Thrift::All, "800/1000 800/1000", Some(0..1));
        check_thrift(Thrift::All, "900/1000 300/500 300/500", Some(1..3));
        check_thrift(Thrift::All, "900/1000", None);
    }
}
