//! The keys, values and requests of the load: short keys for plain puts, and Kubernetes' shape for
//! the rest. The ceilings answer in the same shape.

use bytes::Bytes;
use etcd_api::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};

/// Every object of the load lies under this, as an API server's pods do.
pub(crate) const OBJECTS: &[u8] = b"/registry/pods/bench/";

/// The first key behind all objects.
pub(crate) const OBJECTS_END: &[u8] = b"/registry/pods/bench0";

/// What an object of Kubernetes takes, give or take.
pub(crate) const OBJECT_BYTES: usize = 2048;

/// A key of eight bytes.
pub(crate) fn short_key(index: u64) -> Bytes {
    format!("k{index:07}").into()
}

pub(crate) fn object_key(index: u64) -> Bytes {
    let mut key = OBJECTS.to_vec();
    key.extend_from_slice(format!("pod-{index:010}").as_bytes());
    key.into()
}

/// Which object a key names.
pub(crate) fn object_index(key: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(key.strip_prefix(OBJECTS)?).ok()?;
    name.strip_prefix("pod-")?.parse().ok()
}

/// A value no two bytes of which repeat soon, so that nothing gains by compressing it away.
pub(crate) fn value(length: usize) -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

pub(crate) fn put(key: Bytes, value: Bytes) -> PutRequest {
    PutRequest { key, value, ..PutRequest::default() }
}

pub(crate) fn get(key: Bytes) -> RangeRequest {
    RangeRequest { key, ..RangeRequest::default() }
}

/// All objects from `from` on.
pub(crate) fn list(from: Bytes) -> RangeRequest {
    let range_end = Bytes::from_static(OBJECTS_END);
    RangeRequest { key: from, range_end, ..RangeRequest::default() }
}

pub(crate) fn delete_objects() -> DeleteRangeRequest {
    let (key, range_end) = (Bytes::from_static(OBJECTS), Bytes::from_static(OBJECTS_END));
    DeleteRangeRequest { key, range_end, prev_kv: false }
}

/// As an API server creates an object: if the key is new, put it.
pub(crate) fn create(key: Bytes, value: Bytes) -> TxnRequest {
    TxnRequest {
        compare: vec![unchanged(key.clone(), 0)],
        success: vec![operation(Request::RequestPut(put(key, value)))],
        failure: vec![],
    }
}

/// As an API server updates an object: if it is as it was read, put it, else read it again.
pub(crate) fn update(key: Bytes, value: Bytes, mod_revision: i64) -> TxnRequest {
    TxnRequest {
        compare: vec![unchanged(key.clone(), mod_revision)],
        success: vec![operation(Request::RequestPut(put(key.clone(), value)))],
        failure: vec![operation(Request::RequestRange(get(key)))],
    }
}

/// As an API server deletes an object: if it is as it was read, delete it, else read it again.
pub(crate) fn delete(key: Bytes, mod_revision: i64) -> TxnRequest {
    let removal = DeleteRangeRequest { key: key.clone(), ..DeleteRangeRequest::default() };
    TxnRequest {
        compare: vec![unchanged(key.clone(), mod_revision)],
        success: vec![operation(Request::RequestDeleteRange(removal))],
        failure: vec![operation(Request::RequestRange(get(key)))],
    }
}

fn unchanged(key: Bytes, mod_revision: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Mod.into(),
        key,
        target_union: Some(TargetUnion::ModRevision(mod_revision)),
        range_end: Bytes::new(),
    }
}

fn operation(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}
