//! Damage is never served and never skipped: a flipped bit or a missing file is refused with its
//! place, by opening, by reading or by verifying.

use std::{
    fs,
    path::{Path, PathBuf},
};

use journal::{
    Batch, BatchId, EmbeddedJournal, Error, Journal,
    embedded::{self, Options, SEGMENT_BYTES_MIN},
    suite::{Dice, put, record},
};
use mvcc::{Position, Record, Revision};
use tempfile::TempDir;

use crate::{check::open, story::scratch};

const FLIPS: usize = 150;
const HEADER_BYTES: u64 = 4096;

/// A folder with rewritten, indexed, unindexed and newest segments, and all records in it.
struct Sample {
    dir: TempDir,
    records: Vec<Record>,
    /// Where the sound part of each segment ends, in order.
    ends: Vec<(PathBuf, u64)>,
}

// === impl Sample ===

impl Sample {
    fn new() -> Self {
        let dir = folder();
        let journal = open(dir.path(), "sample");
        let epoch = journal.claim().expect("claim");
        for at in 2_i64..150 {
            let batch = Batch {
                id: BatchId { epoch, number: at.unsigned_abs() },
                records: vec![record(at, [put(at, "k", &[6; 700])])],
                meta: Vec::new(),
            };
            journal.append(epoch, &batch).expect("append");
            if at == 60 {
                let old = (2..40).filter(|at| at % 5 != 0);
                let old: Vec<Position> = old.map(|at| Position::first_of(Revision(at))).collect();
                journal.forget(epoch, &old).expect("forget");
                while journal.maintain().expect("maintain") {}
            }
        }
        let records = journal.records(Revision(0), usize::MAX).expect("records");
        drop(journal);
        let report = embedded::verify(dir.path()).expect("sound");
        assert!(report.segments.iter().any(|segment| segment.is_rewritten));
        let ends = report
            .segments
            .into_iter()
            .map(|segment| (segment.path, HEADER_BYTES + segment.frame_bytes))
            .collect();
        Self { dir, records, ends }
    }

    /// The sample once more, to be damaged.
    fn copy(&self) -> TempDir {
        let copy = folder();
        fs::create_dir_all(copy.path().join("log")).expect("create");
        for entry in fs::read_dir(self.dir.path().join("log")).expect("list") {
            let path = entry.expect("list").path();
            fs::copy(&path, self.inside(&copy, &path)).expect("copy");
        }
        fs::copy(self.dir.path().join("FORMAT"), copy.path().join("FORMAT")).expect("copy");
        copy
    }

    fn inside(&self, copy: &TempDir, path: &Path) -> PathBuf {
        copy.path().join(path.strip_prefix(self.dir.path()).expect("inside"))
    }
}

fn folder() -> TempDir {
    tempfile::tempdir_in(scratch()).expect("a temporary folder")
}

fn try_open(dir: &Path) -> Result<EmbeddedJournal, Error> {
    let options = Options { segment_bytes: SEGMENT_BYTES_MIN, ..Options::default() };
    EmbeddedJournal::open(dir, options)
}

fn flip(path: &Path, offset: u64, bit: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[usize::try_from(offset).expect("in memory")] ^= 1 << bit;
    fs::write(path, bytes).expect("write");
}

fn assert_damaged_at(error: &Error, path: &Path, offset: u64, place: &str) {
    match error {
        Error::Corrupt { path: found, offset: at, .. } => {
            assert_eq!(found, path, "{place}");
            assert!(*at <= offset, "{place}: damage at {offset} is reported at {at}");
        }
        other => panic!("{place}: {other}"),
    }
}

#[test]
fn a_flipped_bit_in_a_sealed_segment_is_found_and_never_served() {
    let sample = Sample::new();
    let sealed = &sample.ends[..sample.ends.len() - 1];
    let mut dice = Dice::new(7);
    for _ in 0..FLIPS {
        let (path, end) = &sealed[dice.below(sealed.len())];
        let offset = dice.below(usize::try_from(*end).unwrap()) as u64;
        let place = format!("{} at {offset}", path.display());
        let copy = sample.copy();
        let path = sample.inside(&copy, path);
        flip(&path, offset, dice.below(8));
        let error = embedded::verify(copy.path()).expect_err(&place);
        assert_damaged_at(&error, &path, offset, &place);
        match try_open(copy.path()) {
            Ok(journal) => check_reads(&journal, &sample.records, &path, offset),
            Err(error) => assert_damaged_at(&error, &path, offset, &place),
        }
    }
}

/// Every read gives what was written, or says where the damage is.
fn check_reads(journal: &EmbeddedJournal, records: &[Record], path: &Path, offset: u64) {
    for (position, kv) in records.iter().flat_map(Record::positions) {
        match journal.read(position) {
            Ok(found) => assert_eq!(found.as_ref(), Some(kv), "{position}"),
            Err(error) => assert_damaged_at(&error, path, offset, &position.to_string()),
        }
    }
}

#[test]
fn a_flipped_bit_before_the_last_frame_is_refused_not_cut() {
    let sample = Sample::new();
    let (newest, end) = sample.ends.last().expect("a newest segment");
    let last_frame_bytes = 64 + 12 + 12 + 720;
    let mut dice = Dice::new(8);
    for _ in 0..FLIPS {
        let offset = dice.below(usize::try_from(end - last_frame_bytes).unwrap()) as u64;
        let copy = sample.copy();
        let path = sample.inside(&copy, newest);
        flip(&path, offset, dice.below(8));
        let place = format!("{} at {offset} of {end}", path.display());
        let error = try_open(copy.path()).expect_err(&place);
        assert_damaged_at(&error, &path, offset, &place);
    }
}

#[test]
fn a_missing_segment_is_named_by_its_revisions() {
    let sample = Sample::new();
    let count = sample.ends.len();
    for at in 0..count - 1 {
        let copy = sample.copy();
        let path = sample.inside(&copy, &sample.ends[at].0);
        fs::remove_file(&path).expect("remove");
        match try_open(copy.path()) {
            Err(Error::Missing { first, last, .. }) => assert!(first <= last),
            other => panic!("segment {at} of {count}: {other:?}"),
        }
        assert!(embedded::verify(copy.path()).is_err());
    }
}

#[test]
fn a_missing_newest_segment_is_noticed() {
    let sample = Sample::new();
    let journal = open(sample.dir.path(), "sample");
    while journal.maintain().expect("maintain") {}
    drop(journal);
    let copy = sample.copy();
    let newest = sample.inside(&copy, &sample.ends.last().expect("a newest segment").0);
    fs::remove_file(newest).expect("remove");
    let error = try_open(copy.path()).expect_err("the newest segment is missing");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn a_damaged_index_is_rebuilt() {
    let sample = Sample::new();
    let indexes = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir.join("log")).expect("list");
        let paths = entries.map(|entry| entry.expect("list").path());
        paths.filter(|path| path.extension().is_some_and(|it| it == "idx")).collect()
    };
    let mut dice = Dice::new(9);
    for _ in 0..FLIPS / 3 {
        let copy = sample.copy();
        let index = &indexes(copy.path())[0];
        let len = fs::metadata(index).expect("metadata").len();
        flip(index, dice.below(usize::try_from(len).unwrap()) as u64, dice.below(8));
        let journal = open(copy.path(), "a damaged index");
        assert_eq!(journal.records(Revision(0), usize::MAX).expect("records"), sample.records);
        let mut heads = 0;
        journal.heads(&mut |_| heads += 1).expect("heads");
        assert_eq!(heads, sample.records.len());
    }
}
