use std::{fs, path::Path, time::Duration};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{
    format::{Body, Decoded, FILE_HEADER_BYTES, Record, decode},
    writer::Sizes,
    *,
};

/// So small that a few lines rotate.
const SMALL: Sizes = Sizes { file_bytes_max: 100, files_max: 3 };
const TIME: Duration = Duration::from_millis(5);

fn fresh() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn read(dir: &Path, offset: u64) -> Vec<Entry> {
    let mut reader = Reader::new(dir, offset, Streams::ALL);
    std::iter::from_fn(|| reader.next_entry().unwrap()).collect()
}

fn data(offset: u64, stream: Stream, text: &str) -> Entry {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    Entry { offset, time: TIME, content: Content::Data { stream, bytes } }
}

fn other(offset: u64, content: Content) -> Entry {
    Entry { offset, time: TIME, content }
}

fn gap(offset: u64, bytes: u64) -> Entry {
    other(offset, Content::Gap { bytes })
}

/// What came, byte by byte with its offset, and how many were lost.
fn flatten(entries: &[Entry]) -> (Vec<(u64, Stream, u8)>, u64) {
    let (mut bytes, mut lost) = (Vec::new(), 0);
    for entry in entries {
        match &entry.content {
            Content::Data { stream, bytes: data } => {
                let places = data.iter().zip(entry.offset..);
                bytes.extend(places.map(|(byte, offset)| (offset, *stream, *byte)));
            }
            Content::Gap { bytes } => lost += bytes,
            Content::End => {}
        }
    }
    (bytes, lost)
}

#[test]
fn what_was_written_is_read() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
    log.append(Stream::Stdout, b"one\n", TIME);
    log.append(Stream::Stderr, b"\xff\x00", TIME);
    let told = [data(0, Stream::Stdout, "one\n")];
    assert_eq!(read(dir.path(), 0)[..1], told);
    let volume = log.end(TIME);
    assert_eq!(volume, Volume { bytes: 6, dropped_bytes: 0 });
    let entries = read(dir.path(), 0);
    let Content::Data { stream: Stream::Stderr, bytes } = &entries[1].content else { panic!() };
    assert_eq!((entries[1].offset, &bytes[..]), (4, &b"\xff\x00"[..]), "bytes, not text");
    assert_eq!(entries[2], other(6, Content::End));
    assert_eq!(entries.len(), 3);
}

#[test]
fn a_reader_begins_in_the_middle_of_a_record() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
    log.append(Stream::Stdout, b"0123456789", TIME);
    assert_eq!(read(dir.path(), 4), [data(4, Stream::Stdout, "456789")]);
    assert_eq!(read(dir.path(), 10), []);
    assert_eq!(read(dir.path(), 11), [], "beyond the end there is nothing yet");
}

#[test]
fn streams_are_kept_apart_and_offsets_are_not() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
    log.append(Stream::Stdout, b"ab", TIME);
    log.append(Stream::Stderr, b"cde", TIME);
    log.append(Stream::Stdout, b"f", TIME);
    log.end(TIME);
    let mut reader = Reader::new(dir.path(), 0, Streams { stdout: true, stderr: false });
    let entries: Vec<Entry> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    let end = other(6, Content::End);
    assert_eq!(entries, [data(0, Stream::Stdout, "ab"), data(5, Stream::Stdout, "f"), end]);
}

#[test]
fn a_reader_follows_through_rotation() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), SMALL).unwrap();
    let mut reader = Reader::new(dir.path(), 0, Streams::ALL);
    for round in 0..50_u64 {
        let text = format!("line {round:03}\n");
        log.append(Stream::Stdout, text.as_bytes(), TIME);
        let entry = reader.next_entry().unwrap();
        assert_eq!(entry, Some(data(round * 9, Stream::Stdout, &text)), "round {round}");
        assert_eq!(reader.next_entry().unwrap(), None, "round {round}");
    }
    assert!(files::list(dir.path()).unwrap().len() <= SMALL.files_max);
    log.end(TIME);
    assert_eq!(reader.next_entry().unwrap(), Some(other(450, Content::End)));
    assert!(reader.is_ended());
}

#[test]
fn what_was_dropped_is_a_gap() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), SMALL).unwrap();
    for round in 0..50_u64 {
        log.append(Stream::Stdout, format!("line {round:03}\n").as_bytes(), TIME);
    }
    log.end(TIME);
    let entries = read(dir.path(), 0);
    let Content::Gap { bytes } = entries[0].content else { panic!("{:?}", entries[0]) };
    assert_eq!(entries[1].offset, bytes, "the rest begins where the gap ends");
    assert_eq!(entries.last().map(Entry::next_offset), Some(450));
    let (kept, _) = flatten(&entries);
    assert_eq!(kept.len() as u64, 450 - bytes);
    assert!(!kept.is_empty());
}

#[test]
fn a_slow_reader_loses_what_was_dropped_and_no_more() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), SMALL).unwrap();
    log.append(Stream::Stdout, b"first\n", TIME);
    let mut reader = Reader::new(dir.path(), 0, Streams::ALL);
    assert_eq!(reader.next_entry().unwrap(), Some(data(0, Stream::Stdout, "first\n")));
    for _ in 0..50 {
        log.append(Stream::Stdout, b"0123456789", TIME);
    }
    log.end(TIME);
    let rest: Vec<Entry> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
    let (kept, lost) = flatten(&rest);
    assert_eq!(kept.len() as u64 + lost, 500);
    assert!(lost > 0, "files were dropped under it");
}

/// A log whose newest file is torn at every byte: what is whole is read, a writer goes on from there,
/// and readers see nothing of the tear.
#[test]
fn a_torn_end_is_cut_at_the_last_good_record() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
    for text in ["a", "bcd", "", "efghij"] {
        log.append(Stream::Stdout, text.as_bytes(), TIME);
    }
    let path = files::path(dir.path(), 0);
    let whole = fs::read(&path).unwrap();
    for torn in 0..whole.len() {
        fs::write(&path, &whole[..torn]).unwrap();
        let before = flatten(&read(dir.path(), 0)).0;
        let mut log = Writer::resume(dir.path(), Sizes::default()).unwrap().unwrap();
        log.append(Stream::Stderr, b"again", TIME);
        log.end(TIME);
        let entries = read(dir.path(), 0);
        let (bytes, lost) = flatten(&entries);
        assert_eq!(bytes[..before.len()], before, "torn at {torn}");
        assert_eq!((bytes.len() - before.len(), lost), (5, 0), "torn at {torn}");
        assert_eq!(entries.last().unwrap().content, Content::End);
    }
}

#[test]
fn a_log_that_has_its_end_is_left_alone() {
    let dir = fresh();
    assert!(Writer::resume(dir.path(), Sizes::default()).unwrap().is_none(), "nothing is there");
    Writer::create(dir.path(), Sizes::default()).unwrap().end(TIME);
    assert!(Writer::resume(dir.path(), Sizes::default()).unwrap().is_none());
    assert_eq!(read(dir.path(), 0), [other(0, Content::End)]);
}

#[test]
fn damage_in_an_older_file_is_a_gap() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), SMALL).unwrap();
    for _ in 0..6 {
        log.append(Stream::Stdout, b"0123456789", TIME);
    }
    log.end(TIME);
    let path = files::path(dir.path(), 0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[FILE_HEADER_BYTES + 30] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let entries = read(dir.path(), 0);
    let (kept, lost) = flatten(&entries);
    assert_eq!(kept.len() as u64 + lost, 60, "{entries:?}");
    assert!(lost > 0 && kept.len() > 10, "the damage, and not the rest: {entries:?}");
    assert_eq!(entries.last().unwrap().content, Content::End);
}

#[test]
fn tail_finds_the_last_lines() {
    let dir = fresh();
    let log = Log { dir: dir.path().to_owned(), record: dir.path().join("record") };
    let tail = |lines| {
        let mut reader = log.read(Start::Lines(lines), Streams::ALL).unwrap();
        let entries: Vec<Entry> = std::iter::from_fn(|| reader.next_entry().unwrap()).collect();
        let bytes = flatten(&entries).0.into_iter().map(|(_, _, byte)| byte);
        String::from_utf8(bytes.collect()).unwrap()
    };
    assert_eq!(tail(5), "", "nothing is there");
    let mut writer = Writer::create(dir.path(), Sizes::default()).unwrap();
    writer.append(Stream::Stdout, b"one\ntwo\nthr", TIME);
    writer.append(Stream::Stderr, b"ee\n", TIME);
    assert_eq!(tail(0), "");
    assert_eq!((tail(1), tail(2)), ("three\n".into(), "two\nthree\n".into()));
    assert_eq!((tail(3), tail(9)), ("one\ntwo\nthree\n".into(), "one\ntwo\nthree\n".into()));
    writer.append(Stream::Stdout, b"half", TIME);
    assert_eq!((tail(0), tail(1), tail(2)), ("".into(), "half".into(), "three\nhalf".into()));
}

/// A disk that takes nothing more: what was refused is a gap as soon as it takes records again.
#[test]
fn a_full_disk_makes_a_gap_and_the_log_goes_on() {
    let dir = fresh();
    let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
    log.append(Stream::Stdout, b"before", TIME);
    log.fill_disk();
    log.append(Stream::Stdout, b"refused", TIME);
    log.append(Stream::Stderr, b"as well", TIME);
    assert_eq!(read(dir.path(), 0), [data(0, Stream::Stdout, "before")]);
    log.free_disk(dir.path());
    log.append(Stream::Stdout, b"after", TIME);
    let volume = log.end(TIME);
    let end = other(25, Content::End);
    assert_eq!(
        read(dir.path(), 0),
        [data(0, Stream::Stdout, "before"), gap(6, 14), data(20, Stream::Stdout, "after"), end]
    );
    assert_eq!(read(dir.path(), 10)[0], gap(10, 10), "a gap can be entered in the middle");
    assert_eq!(volume, Volume { bytes: 25, dropped_bytes: 14 });
}

#[derive(Clone, Debug)]
struct Write {
    stream: Stream,
    bytes: Vec<u8>,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    let write = (stream, prop::collection::vec(any::<u8>(), 0..60))
        .prop_map(|(stream, bytes)| Write { stream, bytes });
    prop::collection::vec(write, 0..40)
}

proptest! {
    /// Whatever is written, however it rotates: each byte comes at its place or lies in a gap.
    #[test]
    fn every_byte_is_in_its_place_or_in_a_gap(writes in writes(), from in 0..2000_u64) {
        let dir = fresh();
        let mut log = Writer::create(dir.path(), SMALL).unwrap();
        let mut model = Vec::new();
        for write in &writes {
            log.append(write.stream, &write.bytes, TIME);
            model.extend(write.bytes.iter().map(|byte| (write.stream, *byte)));
        }
        log.end(TIME);
        let entries = read(dir.path(), from);
        let mut next = from.min(model.len() as u64);
        for entry in &entries {
            if entry.content != Content::End || from <= model.len() as u64 {
                prop_assert_eq!(entry.offset.min(model.len() as u64), next, "nothing is left out");
            }
            next = entry.next_offset().min(model.len() as u64);
        }
        for (offset, stream, byte) in flatten(&entries).0 {
            prop_assert_eq!(model[usize::try_from(offset).unwrap()], (stream, byte));
        }
        prop_assert_eq!(&entries.last().unwrap().content, &Content::End);
    }

    /// A reader that breaks off anywhere and resumes sees what one that stays sees.
    #[test]
    fn resuming_is_exact(writes in writes(), breaks in prop::collection::vec(1..5_usize, 1..10)) {
        let dir = fresh();
        let mut log = Writer::create(dir.path(), Sizes::default()).unwrap();
        for write in &writes {
            log.append(write.stream, &write.bytes, TIME);
        }
        log.end(TIME);
        let mut resumed = Vec::new();
        let mut offset = 0;
        for entries in breaks {
            let mut reader = Reader::new(dir.path(), offset, Streams::ALL);
            for entry in std::iter::from_fn(|| reader.next_entry().unwrap()).take(entries) {
                offset = entry.next_offset();
                resumed.push(entry);
            }
        }
        let whole = flatten(&read(dir.path(), 0)).0;
        let resumed = flatten(&resumed).0;
        prop_assert_eq!(&whole[..resumed.len()], &resumed[..]);
    }

    /// Nothing that is not a record is taken for one, and nothing makes decoding panic.
    #[test]
    fn a_changed_byte_is_noticed(bytes in prop::collection::vec(any::<u8>(), 0..100), at in 0..118_usize, bit in 0..8_u32) {
        let record = Record { time: TIME, body: Body::Data(Stream::Stdout, &bytes) };
        let (header, payload) = record.encode();
        let mut encoded = [&header[..], payload.bytes()].concat();
        prop_assert_eq!(decode(&encoded), Decoded::Record(record, encoded.len()));
        let at = at % encoded.len();
        encoded[at] ^= 1 << bit;
        prop_assert!(!matches!(decode(&encoded), Decoded::Record(..)));
    }
}
