use std::{fs, time::Duration};

use super::*;
use crate::{Exit, Usage, log::Volume};

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("record");
    (dir, path)
}

fn exited(code: i32) -> Ended {
    let outcome = Outcome::Exited { exit: Exit::Code(code), is_oom_killed: false };
    let usage = Usage { peak_memory_bytes: 1 << 20, cpu: Duration::from_millis(3) };
    Ended { outcome, usage, log: Volume { bytes: 5, dropped_bytes: 2 } }
}

#[test]
fn a_record_tells_what_was_written_and_nothing_before() {
    let (_dir, path) = fresh();
    Record::create(&path, b"note").unwrap();
    let record = Record::take(&path).unwrap();
    let begun = record.read().unwrap();
    assert_eq!((begun.note.as_slice(), &begun.ended), (&b"note"[..], &None));
    assert_eq!(begun.identity, Some(Identity::own().unwrap()));
    record.end(&exited(3)).unwrap();
    assert_eq!(record.read().unwrap(), Content { ended: Some(exited(3)), ..begun });
}

#[test]
fn one_attempt_has_one_record() {
    let (_dir, path) = fresh();
    Record::create(&path, b"").unwrap();
    assert!(matches!(Record::create(&path, b""), Err(Error::Create { .. })));
}

#[test]
fn a_withdrawn_record_is_not_taken() {
    let (_dir, path) = fresh();
    Record::create(&path, b"").unwrap();
    Record::open(&path).unwrap().withdraw().unwrap();
    assert!(matches!(Record::take(&path), Err(Error::Withdrawn { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(Record::take(&path), Err(Error::Open { .. })));
}

#[test]
fn a_half_written_end_is_none() {
    let (_dir, path) = fresh();
    Record::create(&path, b"n").unwrap();
    let record = Record::open(&path).unwrap();
    record.end(&exited(0)).unwrap();
    let whole = fs::read(&path).unwrap();
    let end = usize::try_from(ENDED_AT).unwrap();
    let length = whole[end..].iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for torn in 0..length {
        let mut bytes = whole.clone();
        bytes[end + torn..].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(Record::open(&path).unwrap().read().unwrap().ended, None, "cut at {torn}");
    }
}

#[test]
fn an_end_that_is_not_understood_is_an_error() {
    let (_dir, path) = fresh();
    Record::create(&path, b"n").unwrap();
    let record = Record::open(&path).unwrap();
    write_area(&record.file, ENDED_AT, br#"{"outcome":"of tomorrow"}"#).unwrap();
    assert!(matches!(record.read(), Err(Error::Decode { .. })));
}

#[test]
fn many_words_are_cut_and_kept() {
    let (_dir, path) = fresh();
    Record::create(&path, &[7; crate::host::NOTE_BYTES_MAX]).unwrap();
    let record = Record::open(&path).unwrap();
    record.end(&Ended::never_started("\u{1}ä".repeat(1000))).unwrap();
    let content = record.read().unwrap();
    assert_eq!(content.note.len(), crate::host::NOTE_BYTES_MAX);
    let Some(Outcome::NeverStarted { reason }) = content.ended.map(|ended| ended.outcome) else {
        panic!("the end is kept")
    };
    assert!(reason.len() <= REASON_BYTES_MAX && reason.starts_with("\u{1}ä"), "{reason}");
}
