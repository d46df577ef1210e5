//! What a watch wants. Watches that want the same share their encoded events.

use bytes::Bytes;
use etcd_api::{
    etcdserverpb::{WatchCreateRequest, watch_create_request::FilterType},
    mvccpb::{Event, EventType, KeyValue},
};

/// The range, filters and content that one or more watches asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub(super) key: Bytes,
    /// As in a range request: empty for the one key, `\0` for all from it on.
    pub(super) range_end: Bytes,
    drops_puts: bool,
    drops_deletes: bool,
    pub(super) wants_previous: bool,
}

// === impl Class ===

impl Class {
    /// An empty key means the smallest one.
    pub(super) fn new(request: &WatchCreateRequest) -> Self {
        let has_filter = |filter: FilterType| request.filters.contains(&(filter as i32));
        Self {
            key: if request.key.is_empty() {
                Bytes::from_static(&[0])
            } else {
                request.key.clone()
            },
            range_end: request.range_end.clone(),
            drops_puts: has_filter(FilterType::Noput),
            drops_deletes: has_filter(FilterType::Nodelete),
            wants_previous: request.prev_kv,
        }
    }

    /// Whether no key can ever be in the range.
    pub(super) fn is_empty(&self) -> bool {
        let is_open = *self.range_end == [0];
        !self.range_end.is_empty() && !is_open && self.key >= self.range_end
    }

    /// Whether a change of a key in the range is wanted.
    pub(super) fn passes_filters(&self, kv: &KeyValue) -> bool {
        !(if kv.is_tombstone() { self.drops_deletes } else { self.drops_puts })
    }
}

pub(super) fn event(kv: &KeyValue, previous: Option<&KeyValue>) -> Event {
    let kind = if kv.is_tombstone() { EventType::Delete } else { EventType::Put };
    Event::new(kind, kv, previous)
}
