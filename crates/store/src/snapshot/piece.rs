//! One piece of a snapshot, as protobuf.

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use journal::{Image, MetaChange};
use mvcc::{Change, Record, Revision};

/// All that is left of the revisions up to `last`, counted from where the piece before it ended.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Piece {
    #[prost(int64, tag = "1")]
    pub(super) last: i64,
    #[prost(message, repeated, tag = "2")]
    pub(super) changes: Vec<StoredChange>,
    #[prost(message, repeated, tag = "3")]
    pub(super) meta: Vec<StoredMeta>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredChange {
    #[prost(int64, tag = "1")]
    revision: i64,
    #[prost(uint32, tag = "2")]
    sub: u32,
    #[prost(bytes = "bytes", tag = "3")]
    kv: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredMeta {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

// === impl Piece ===

impl Piece {
    pub(super) fn new(image: Image) -> Self {
        let changes = image.records.into_iter().flat_map(|record| {
            let revision = record.revision.0;
            record.changes.into_iter().map(move |change| StoredChange {
                revision,
                sub: change.sub,
                kv: change.kv.encoded().clone(),
            })
        });
        let meta = image
            .meta
            .into_iter()
            .filter_map(|change| Some(StoredMeta { key: change.key, value: change.value? }));
        Self { last: image.last.0, changes: changes.collect(), meta: meta.collect() }
    }

    pub(super) fn into_image(self) -> Result<Image, prost::DecodeError> {
        let mut records: Vec<Record> = Vec::new();
        for StoredChange { revision, sub, kv } in self.changes {
            let revision = Revision(revision);
            let change = Change { sub, kv: KeyValue::try_from_encoded(kv)? };
            match records.last_mut() {
                Some(record) if record.revision == revision => record.changes.push(change),
                _ => records.push(Record { revision, changes: vec![change] }),
            }
        }
        let meta = self.meta.into_iter();
        let meta = meta.map(|entry| MetaChange { key: entry.key, value: Some(entry.value) });
        Ok(Image { last: Revision(self.last), records, meta: meta.collect() })
    }
}
