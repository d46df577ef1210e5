use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use mvcc::{Change, Record};
use proptest::{collection::vec, prelude::*};

use super::{encoder::BUFFER_BYTES_KEPT, *};

const SEED: Seed = Seed(7);

fn header(kind: Kind) -> Header {
    let id = BatchId { epoch: Epoch(3), number: 9 };
    Header { kind, sequence: 41, id, last: Revision(6) }
}

fn record(revision: i64, values: &[Vec<u8>]) -> Record {
    let kv = |value: &[u8]| {
        KeyValue::new(&KeyValueParts {
            key: b"k",
            mod_revision: revision,
            value,
            ..KeyValueParts::default()
        })
    };
    let changes = (0..).zip(values).map(|(sub, value)| Change { sub, kv: kv(value) }).collect();
    Record { revision: Revision(revision), changes }
}

fn encode(records: &[Record], meta: &[MetaChange], marks: &[BatchId]) -> Encoder {
    let mut encoder = Encoder::default();
    encoder.begin();
    records.iter().for_each(|record| encoder.record(record.revision, &record.changes));
    meta.iter().for_each(|change| encoder.meta(&change.key, change.value.as_deref()));
    marks.iter().for_each(|mark| encoder.mark(*mark));
    encoder.finish(&header(Kind::Batch), SEED);
    encoder
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn any_meta() -> impl Strategy<Value = MetaChange> {
    (any_bytes(), proptest::option::of(any_bytes()))
        .prop_map(|(key, value)| MetaChange { key: key.into(), value: value.map(Bytes::from) })
}

fn any_mark() -> impl Strategy<Value = BatchId> {
    any::<(u64, u64)>().prop_map(|(epoch, number)| BatchId { epoch: Epoch(epoch), number })
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(
        values in vec(vec(any_bytes(), 1..4), 0..4),
        meta in vec(any_meta(), 0..4),
        marks in vec(any_mark(), 0..4),
        rest in any_bytes(),
    ) {
        let records: Vec<Record> =
            (2..).zip(&values).map(|(revision, values)| record(revision, values)).collect();
        let encoder = encode(&records, &meta, &marks);
        let stored: Bytes = [encoder.bytes(), &rest].concat().into();
        let frame = Frame::decode(&stored, SEED).unwrap();
        prop_assert_eq!(frame.header, header(Kind::Batch));
        prop_assert_eq!(frame.len(), encoder.bytes().len());
        let contents = frame.contents().unwrap();
        prop_assert_eq!(&contents.changes, encoder.spans());
        prop_assert_eq!(contents.meta, meta);
        prop_assert_eq!(contents.marks, marks);
        let written = records.iter().flat_map(Record::positions);
        for (span, (position, kv)) in contents.changes.iter().zip(written) {
            let start = span.start as usize;
            let own = stored.slice(start..start + CHANGE_HEADER_BYTES + span.len as usize);
            prop_assert_eq!(verified_change(position, own), Some(kv.encoded().clone()));
        }
    }

    #[test]
    fn a_changed_byte_is_noticed(
        values in vec(any_bytes(), 1..4),
        at in any::<prop::sample::Index>(),
        xor in 1_u8..,
    ) {
        let mut bytes = encode(&[record(2, &values)], &[], &[]).bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= xor;
        prop_assert!(Frame::decode(&bytes, SEED).is_err());
    }

    #[test]
    fn no_bytes_break_the_decoder(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(Frame::decode(&bytes, SEED).is_err());
        claimed_sequence(&bytes);
        verified_change(Position::first_of(Revision(2)), bytes.into());
    }

    /// Behind a right checksum, too: a payload of any bytes and any counts takes no more memory
    /// than its own length allows for.
    #[test]
    fn no_payload_breaks_the_parser(
        payload in vec(prop_oneof![Just(0_u8), any::<u8>()], 0..400),
        (records, meta, marks) in any::<(u32, u32, u32)>(),
        few in any::<bool>(),
    ) {
        let bound = if few { 4 } else { u32::MAX };
        let counts = Counts { records: records % bound, meta: meta % bound, marks: marks % bound };
        let frame = Frame { header: header(Kind::Batch), counts, payload: &payload };
        if let Ok(contents) = frame.contents() {
            let taken = contents.changes.len() * CHANGE_HEADER_BYTES + contents.meta.len() * 8;
            prop_assert!(taken <= payload.len());
        }
    }
}

#[test]
fn a_frame_of_another_segment_does_not_verify() {
    let encoder = encode(&[record(2, &[b"v".to_vec()])], &[], &[]);
    assert_eq!(Frame::decode(encoder.bytes(), Seed(8)).unwrap_err(), Flaw::Checksum);
}

#[test]
fn a_change_does_not_verify_at_another_position() {
    let encoder = encode(&[record(2, &[b"v".to_vec()])], &[], &[]);
    let Span { start, len, .. } = encoder.spans()[0];
    let own = &encoder.bytes()[start as usize..start as usize + CHANGE_HEADER_BYTES + len as usize];
    let own = Bytes::copy_from_slice(own);
    assert!(verified_change(Position::first_of(Revision(2)), own.clone()).is_some());
    assert_eq!(verified_change(Position::first_of(Revision(3)), own.clone()), None);
    assert_eq!(verified_change(Position::new(Revision(2), 1), own), None);
}

#[test]
fn memory_of_a_large_frame_is_given_back() {
    let mut encoder = encode(&[record(2, &[vec![0; BUFFER_BYTES_KEPT * 2]])], &[], &[]);
    encoder.begin();
    assert!(encoder.buffer.capacity() <= BUFFER_BYTES_KEPT);
}
