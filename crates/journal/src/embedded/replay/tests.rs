use mvcc::{Position, Revision};
use proptest::{collection::vec, prelude::*};
use uuid::Uuid;

use super::*;
use crate::{
    BatchId, Epoch,
    embedded::frame::{self, Encoder},
    suite::{put, record},
};

fn log_header() -> Header {
    Header {
        identity: Uuid::from_u128(1),
        id: 5,
        first_sequence: 10,
        base: Revision(1),
        extent: Extent::Log,
    }
}

fn frame(kind: Kind, sequence: u64, last: i64, revisions: &[i64]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    encoder.begin();
    for revision in revisions {
        let written = record(*revision, [put(*revision, "k", b"value")]);
        encoder.record(written.revision, &written.changes);
    }
    let id = BatchId { epoch: Epoch(1), number: sequence };
    let last = Revision(last);
    encoder.finish(&frame::Header { kind, sequence, id, last }, log_header().seed());
    encoder.bytes().to_vec()
}

/// A segment of a start frame and three batches, and where each frame ends.
fn segment() -> (Vec<u8>, Vec<usize>) {
    let frames = [
        frame(Kind::Start, 10, 1, &[]),
        frame(Kind::Batch, 11, 3, &[2, 3]),
        frame(Kind::Batch, 12, 4, &[4]),
        frame(Kind::Batch, 13, 6, &[5, 6]),
    ];
    let mut bytes = log_header().encode();
    let mut ends = vec![];
    for frame in frames {
        bytes.extend(frame);
        ends.push(bytes.len());
    }
    (bytes, ends)
}

#[test]
fn all_frames_are_replayed() {
    let (bytes, ends) = segment();
    let replay = Replay::of(&bytes, &log_header());
    assert_eq!(replay.stop, Stop::Full);
    assert_eq!(replay.filled.tail(), (bytes.len() as u64, 14));
    assert_eq!(replay.filled.last, Revision(6));
    assert_eq!(replay.last_frame, ends[2] as u64..ends[3] as u64);
    assert!(replay.filled.index.get(Position::first_of(Revision(5))).is_some());
    assert!(replay.ledger.holds(BatchId { epoch: Epoch(1), number: 13 }));
}

#[test]
fn a_frame_that_cannot_stand_where_it_stands_is_no_torn_tail() {
    let misplaced = [
        (frame(Kind::Batch, 15, 7, &[7]), "frame 15 stands where frame 14 belongs"),
        (frame(Kind::Batch, 14, 8, &[8]), "revision 8 follows 6"),
        (frame(Kind::Batch, 14, 9, &[7]), "revision 9 follows 6"),
        (frame(Kind::Sparse, 14, 6, &[6]), "revision 6 follows 6"),
        (
            frame(Kind::Start, 14, 6, &[]),
            "a frame of the wrong kind begins or continues the segment",
        ),
    ];
    for (frame, reason) in misplaced {
        let (mut bytes, ends) = segment();
        bytes.extend(frame);
        let replay = Replay::of(&bytes, &log_header());
        assert!(matches!(replay.stop, Stop::Misplaced(_)), "{reason}: {:?}", replay.stop);
        assert_eq!(replay.stop.to_string(), reason);
        assert_eq!(replay.filled.end, ends[3] as u64);
    }
}

#[test]
fn damage_is_told_from_a_torn_tail_by_what_follows() {
    let (bytes, ends) = segment();
    for (damaged, found) in [(1, Some(ends[1])), (2, Some(ends[2])), (3, None)] {
        let mut bytes = bytes.clone();
        bytes[ends[damaged] - 9] ^= 1;
        let replay = Replay::of(&bytes, &log_header());
        let (end, next) = replay.filled.tail();
        assert_eq!(end, ends[damaged - 1] as u64);
        let later = later_frame(&bytes, end, next, log_header().seed());
        assert_eq!(later, found.map(|at| at as u64));
    }
}

proptest! {
    #[test]
    fn a_cut_leaves_the_frames_before_it(cut in segment::HEADER_BYTES..5000) {
        let (bytes, ends) = segment();
        let cut = cut.min(bytes.len());
        let replay = Replay::of(&bytes[..cut], &log_header());
        let whole = ends.iter().filter(|end| **end <= cut).count();
        prop_assert_eq!(replay.filled.next_sequence, 10 + whole as u64);
    }

    #[test]
    fn no_bytes_break_the_reader(
        at in segment::HEADER_BYTES..4800,
        garbage in vec(any::<u8>(), 0..600),
        header in prop_oneof![
            Just(Extent::Log),
            Just(Extent::Rewritten { next_sequence: 99, last: Revision(50), frames: 2 }),
        ],
    ) {
        let (mut bytes, _) = segment();
        let at = at.min(bytes.len());
        bytes.splice(at.., garbage);
        let header = Header { extent: header, ..log_header() };
        let replay = Replay::of(&bytes, &header);
        prop_assert!(replay.filled.end <= bytes.len() as u64);
        let (end, next) = replay.filled.tail();
        later_frame(&bytes, end, next, header.seed());
        Header::decode(&bytes[at.min(bytes.len())..]);
    }
}
