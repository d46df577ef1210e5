//! Answers, read no further than the load needs. Protobuf puts nested messages and byte fields on
//! the wire alike, so a message that is only counted is taken as bytes, which are not even copied.

use bytes::Bytes;
use etcd_api::etcdserverpb::ResponseHeader;

/// `RangeResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Range {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) kvs: Vec<Bytes>,
    #[prost(bool, tag = "3")]
    pub(crate) more: bool,
    #[prost(int64, tag = "4")]
    pub(crate) count: i64,
}

/// `RangeStreamResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeChunk {
    #[prost(message, optional, tag = "1")]
    pub(crate) range: Option<Range>,
}

/// `WatchResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Watch {
    #[prost(bool, tag = "3")]
    pub(crate) created: bool,
    #[prost(bool, tag = "4")]
    pub(crate) canceled: bool,
    #[prost(message, repeated, tag = "11")]
    pub(crate) events: Vec<Event>,
}

/// `mvccpb.Event`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Event {
    #[prost(message, optional, tag = "2")]
    pub(crate) kv: Option<Key>,
}

/// `mvccpb.KeyValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Key {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
}

/// `SnapshotResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Snapshot {
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) blob: Bytes,
}
