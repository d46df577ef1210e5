//! What the constructors build has the bytes and the fields that prost would give.

use bytes::Bytes;
use etcd_api::mvccpb::{Event, EventType, KeyValue, KeyValueParts};
use proptest::prelude::*;
use prost::Message;

use crate::plain;

fn check_accessors(kv: &KeyValue, plain: &plain::KeyValue) -> Result<(), TestCaseError> {
    prop_assert_eq!(kv.parts(), plain.parts());
    prop_assert_eq!(kv.key_bytes(), &plain.key);
    prop_assert_eq!(kv.value_bytes(), &plain.value);
    prop_assert_eq!(kv.key(), &plain.key[..]);
    prop_assert_eq!(kv.value(), &plain.value[..]);
    prop_assert_eq!(kv.create_revision(), plain.create_revision);
    prop_assert_eq!(kv.mod_revision(), plain.mod_revision);
    prop_assert_eq!(kv.version(), plain.version);
    prop_assert_eq!(kv.lease(), plain.lease);
    prop_assert_eq!(kv.is_tombstone(), plain.version == 0);
    Ok(())
}

proptest! {
    #[test]
    fn key_value(plain in plain::key_value()) {
        let kv = KeyValue::new(&plain.parts());
        prop_assert_eq!(kv.encode_to_vec(), plain.encode_to_vec());
        prop_assert_eq!(kv.encoded_len(), kv.encoded().len());
        check_accessors(&kv, &plain)?;
        prop_assert_eq!(&KeyValue::from_encoded(kv.encoded().clone()), &kv);
    }

    #[test]
    fn without_value(plain in plain::key_value()) {
        let kv = KeyValue::new(&plain.parts()).without_value();
        let expected = plain::KeyValue { value: Bytes::new(), ..plain };
        prop_assert_eq!(kv.encode_to_vec(), expected.encode_to_vec());
    }

    #[test]
    fn tombstone(plain in plain::key_value()) {
        let kv = KeyValue::tombstone(&plain.key, plain.mod_revision);
        let KeyValueParts { key, mod_revision, .. } = plain.parts();
        prop_assert_eq!(kv.parts(), KeyValueParts { key, mod_revision, ..Default::default() });
        prop_assert!(kv.is_tombstone());
    }

    #[test]
    fn event(is_delete: bool, pair in plain::key_value(), prev in prop::option::of(plain::key_value())) {
        let kind = if is_delete { EventType::Delete } else { EventType::Put };
        let kv = KeyValue::new(&pair.parts());
        let prev_kv = prev.as_ref().map(|prev| KeyValue::new(&prev.parts()));
        let event = Event::new(kind, &kv, prev_kv.as_ref());

        let plain = plain::Event { kind: kind.into(), kv: Some(pair), prev_kv: prev };
        prop_assert_eq!(event.encode_to_vec(), plain.encode_to_vec());
        prop_assert_eq!(event.encoded_len(), event.encoded().len());
        prop_assert_eq!(event.kind(), kind);
        prop_assert_eq!(event.kv(), kv);
        prop_assert_eq!(event.prev_kv(), prev_kv);
    }
}

/// The accessors share the buffer: a slice of it lies inside it.
#[test]
fn slices_share_the_buffer() {
    let parts = KeyValueParts { key: b"key", value: b"value", ..Default::default() };
    let event = Event::new(EventType::Put, &KeyValue::new(&parts), None);
    let buffer = event.encoded().as_ptr_range();
    let kv = event.kv();
    assert!(buffer.contains(&kv.encoded().as_ptr()));
    assert!(buffer.contains(&kv.key_bytes().as_ptr()));
    assert!(buffer.contains(&kv.value_bytes().as_ptr()));
}
