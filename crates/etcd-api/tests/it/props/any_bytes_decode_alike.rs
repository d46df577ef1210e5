//! Whatever bytes arrive, decoding gives what prost gives: the same fields, whatever their order
//! and number, or an error from both.

use bytes::Bytes;
use etcd_api::mvccpb::{Event, KeyValue};
use proptest::prelude::*;
use prost::Message;
use prost::encoding::{WireType, encode_key};

use crate::plain;

/// Both readings of the bytes, re-encoded by prost: comparable, and canonical.
fn check_key_value(encoded: &[u8]) -> Result<(), TestCaseError> {
    let expected = plain::KeyValue::decode(encoded).map(|kv| kv.encode_to_vec()).ok();
    let decoded = KeyValue::decode(encoded).map(|kv| kv.encode_to_vec()).ok();
    prop_assert_eq!(&decoded, &expected);
    let taken = KeyValue::try_from_encoded(Bytes::copy_from_slice(encoded));
    prop_assert_eq!(&taken.map(|kv| kv.encode_to_vec()).ok(), &expected);
    Ok(())
}

fn check_event(encoded: &[u8]) -> Result<(), TestCaseError> {
    let expected = plain::Event::decode(encoded).map(|event| event.encode_to_vec()).ok();
    let decoded = Event::decode(encoded).map(|event| event.encode_to_vec()).ok();
    prop_assert_eq!(decoded, expected);
    Ok(())
}

/// One field, known or not, of any type, with a varint that may be padded or cut short.
fn field() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![8 => 1..=7_u32, 1 => 1..=0x1fff_ffff_u32];
    let wire_type = prop_oneof![
        6 => Just(WireType::Varint),
        6 => Just(WireType::LengthDelimited),
        1 => Just(WireType::ThirtyTwoBit),
        1 => Just(WireType::SixtyFourBit),
        1 => Just(WireType::StartGroup),
        1 => Just(WireType::EndGroup),
    ];
    let payload = prop::collection::vec(prop_oneof![Just(0_u8), Just(0x80), any::<u8>()], 0..12);
    (tag, wire_type, payload, any::<bool>()).prop_map(|(tag, wire_type, payload, is_fitting)| {
        let mut buf = Vec::new();
        encode_key(tag, wire_type, &mut buf);
        if is_fitting && wire_type == WireType::LengthDelimited {
            buf.push(u8::try_from(payload.len()).expect("a payload is shorter than 12 bytes"));
        }
        buf.extend(payload);
        buf
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn garbage(encoded in prop::collection::vec(any::<u8>(), 0..40)) {
        check_key_value(&encoded)?;
        check_event(&encoded)?;
    }

    #[test]
    fn strange_fields(fields in prop::collection::vec(field(), 0..5)) {
        let encoded = fields.concat();
        check_key_value(&encoded)?;
        check_event(&encoded)?;
    }

    /// Two messages in a row are one in which the later fields win, and the earlier ones come
    /// out of order.
    #[test]
    fn repeated_fields(
        first in plain::key_value(),
        strange in field(),
        second in plain::key_value(),
    ) {
        check_key_value(&[first.encode_to_vec(), second.encode_to_vec()].concat())?;
        check_key_value(&[first.encode_to_vec(), strange, second.encode_to_vec()].concat())?;
    }

    #[test]
    fn repeated_pairs(first in plain::event(), second in plain::event()) {
        check_event(&[first.encode_to_vec(), second.encode_to_vec()].concat())?;
    }

    /// The tenth byte of a varint has room for one bit, and an eleventh must not come.
    #[test]
    fn long_varints(tag in 2..=4_u8, len in 8..=11_usize, last in 0..=3_u8) {
        let mut encoded = vec![tag << 3];
        encoded.extend(std::iter::repeat_n(0xff, len - 1));
        encoded.push(last);
        check_key_value(&encoded)?;
    }

    #[test]
    fn cut_short(plain in plain::key_value(), cut in any::<prop::sample::Index>()) {
        let encoded = plain.encode_to_vec();
        check_key_value(&encoded[..cut.index(encoded.len() + 1)])?;
    }
}

/// Canonical bytes are kept, not copied.
#[test]
fn canonical_bytes_are_taken_as_they_are() {
    let kv = KeyValue::tombstone(b"key", 300);
    let taken = KeyValue::try_from_encoded(kv.encoded().clone()).expect("it was just encoded");
    assert_eq!(taken.encoded().as_ptr(), kv.encoded().as_ptr());
}
