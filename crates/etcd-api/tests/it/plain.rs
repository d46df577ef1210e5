//! Key-values and events as prost derives them: the model the hand-written types must equal.

use bytes::Bytes;
use etcd_api::mvccpb;
use proptest::prelude::*;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(int64, tag = "2")]
    pub(crate) create_revision: i64,
    #[prost(int64, tag = "3")]
    pub(crate) mod_revision: i64,
    #[prost(int64, tag = "4")]
    pub(crate) version: i64,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
    #[prost(int64, tag = "6")]
    pub(crate) lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Event {
    #[prost(int32, tag = "1")]
    pub(crate) kind: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<KeyValue>,
    #[prost(message, optional, tag = "3")]
    pub(crate) prev_kv: Option<KeyValue>,
}

// === impl KeyValue ===

impl KeyValue {
    pub(crate) fn parts(&self) -> mvccpb::KeyValueParts<'_> {
        mvccpb::KeyValueParts {
            key: &self.key,
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            value: &self.value,
            lease: self.lease,
        }
    }
}

/// Zero is the default that the encoding leaves out; small, huge and negative numbers differ in
/// the length of their varints.
fn int64() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), 1..300_i64, any::<i64>(), Just(i64::MAX), Just(i64::MIN)]
}

/// Around 128 bytes the length takes a second byte.
fn bytes() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        Just(Bytes::new()),
        prop::collection::vec(any::<u8>(), 1..8).prop_map(Bytes::from),
        prop::collection::vec(any::<u8>(), 120..140).prop_map(Bytes::from),
    ]
}

pub(crate) fn key_value() -> impl Strategy<Value = KeyValue> {
    (bytes(), int64(), int64(), int64(), bytes(), int64()).prop_map(
        |(key, create_revision, mod_revision, version, value, lease)| KeyValue {
            key,
            create_revision,
            mod_revision,
            version,
            value,
            lease,
        },
    )
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    (
        prop_oneof![Just(0), Just(1), any::<i32>()],
        prop::option::of(key_value()),
        prop::option::of(key_value()),
    )
        .prop_map(|(kind, kv, prev_kv)| Event { kind, kv, prev_kv })
}
