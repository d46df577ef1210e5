//! Ranges on the model.

use etcd_api::{
    ApiError,
    etcdserverpb::{
        RangeRequest, RangeResponse,
        range_request::{SortOrder, SortTarget},
    },
    mvccpb::{KeyValue, KeyValueParts},
};

use super::{Model, is_in_range};

impl Model {
    pub(super) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, ApiError> {
        let at = match request.revision {
            wanted if wanted > self.revision => return Err(ApiError::FutureRevision),
            wanted if wanted <= 0 => self.revision,
            wanted if wanted < self.compacted => return Err(ApiError::Compacted),
            wanted => wanted,
        };
        let state = self.state_at(at).into_values();
        let mut kvs: Vec<KeyValue> =
            state.filter(|kv| is_in_range(kv.key(), &request.key, &request.range_end)).collect();
        let count = kvs.len();
        let limit = usize::try_from(request.limit).unwrap_or(0);
        let limit = if limit == 0 { count } else { limit };
        kvs.retain(|kv| passes(request, kv));
        let mut more = kvs.len() > limit;
        if request.sort_order() == SortOrder::None && !has_filters(request) {
            // etcd reads one key more than it returns, to know whether there are more.
            kvs.truncate(limit + 1);
        }
        sort(request, &mut kvs);
        kvs.truncate(limit);
        if request.count_only {
            kvs.clear();
            more = false;
        }
        if request.keys_only {
            kvs = kvs.iter().map(|kv| key_only(request, kv)).collect();
        }
        Ok(RangeResponse { header: self.header(), kvs, more, count: count as i64 })
    }
}

fn has_filters(request: &RangeRequest) -> bool {
    [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ] != [0; 4]
}

fn passes(request: &RangeRequest, kv: &KeyValue) -> bool {
    let is_off = |bound: i64| bound == 0;
    let (modified, created) = (kv.mod_revision(), kv.create_revision());
    (is_off(request.min_mod_revision) || modified >= request.min_mod_revision)
        && (is_off(request.max_mod_revision) || modified <= request.max_mod_revision)
        && (is_off(request.min_create_revision) || created >= request.min_create_revision)
        && (is_off(request.max_create_revision) || created <= request.max_create_revision)
}

/// Keys that compare as equal stay in key order, in either direction.
fn sort(request: &RangeRequest, kvs: &mut [KeyValue]) {
    let rank = |kv: &KeyValue| match request.sort_target() {
        SortTarget::Key => (0, kv.key().to_vec()),
        SortTarget::Version => (kv.version(), Vec::new()),
        SortTarget::Create => (kv.create_revision(), Vec::new()),
        SortTarget::Mod => (kv.mod_revision(), Vec::new()),
        SortTarget::Value => (0, kv.value().to_vec()),
    };
    match request.sort_order() {
        SortOrder::None | SortOrder::Ascend => kvs.sort_by_key(rank),
        SortOrder::Descend => kvs.sort_by_key(|kv| std::cmp::Reverse(rank(kv))),
    }
}

/// Without the value, and without the lease unless the value was needed to sort.
fn key_only(request: &RangeRequest, kv: &KeyValue) -> KeyValue {
    let lease = if request.sort_target() == SortTarget::Value { kv.lease() } else { 0 };
    KeyValue::new(&KeyValueParts { value: b"", lease, ..kv.parts() })
}
