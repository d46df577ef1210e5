//! Random requests. Everything is drawn from few values, so that keys meet, leases are shared and
//! revisions are sometimes the current one, sometimes compacted, sometimes not there yet.

use bytes::Bytes;
use etcd_api::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, LeaseGrantRequest, LeaseRevokeRequest,
    PutRequest, RangeRequest, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
};
use mvcc::{check, story::Command};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::world::TXN_OPS_MAX;

/// How deep transactions are nested.
const TXN_DEPTH: u32 = 2;

/// Steps of a random life of a keyspace.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Do(Command),
    /// Sweep up to so many keys.
    Sweep(usize),
}

pub(crate) fn key() -> impl Strategy<Value = Bytes> {
    let keys: [&[u8]; 8] = [b"\0", b"a", b"aa", b"b", b"b\0", b"c", b"d", b"\xff"];
    select(keys.map(Bytes::from_static).to_vec())
}

/// Mostly none or one of the keys, sometimes the end that means everything.
pub(crate) fn range_end() -> impl Strategy<Value = Bytes> {
    prop_oneof![3 => Just(Bytes::new()), 3 => key(), 2 => Just(Bytes::from_static(b"\0"))]
}

fn value() -> impl Strategy<Value = Bytes> {
    select(vec![Bytes::new(), Bytes::from_static(b"x"), Bytes::from_static(b"y")])
}

fn lease() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0_i64), 2 => 1_i64..4]
}

/// Around what a short life reaches.
pub(crate) fn revision() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0), 1 => -2_i64..0, 4 => 1_i64..24]
}

fn bound() -> impl Strategy<Value = i64> {
    prop_oneof![5 => Just(0_i64), 1 => -1_i64..24]
}

prop_compose! {
    pub(crate) fn range()(
        (key, range_end, revision) in (key(), range_end(), revision()),
        limit in prop_oneof![2 => Just(0), 3 => -1_i64..5],
        (sort_order, sort_target) in (0..3, 0..5),
        (keys_only, count_only) in (any::<bool>(), prop::bool::weighted(0.2)),
        bounds in [bound(), bound(), bound(), bound()],
    ) -> RangeRequest {
        let [min_mod_revision, max_mod_revision, min_create_revision, max_create_revision] = bounds;
        RangeRequest {
            key, range_end, limit, revision, sort_order, sort_target, keys_only, count_only,
            min_mod_revision, max_mod_revision, min_create_revision, max_create_revision,
            serializable: false,
        }
    }
}

prop_compose! {
    /// Brings no value or lease when it is to keep the old one.
    fn put()(
        (key, value, lease, prev_kv) in (key(), value(), lease(), any::<bool>()),
        (ignore_value, ignore_lease) in (prop::bool::weighted(0.15), prop::bool::weighted(0.15)),
    ) -> PutRequest {
        let value = if ignore_value { Bytes::new() } else { value };
        let lease = if ignore_lease { 0 } else { lease };
        PutRequest { key, value, lease, prev_kv, ignore_value, ignore_lease }
    }
}

prop_compose! {
    fn delete_range()(
        (key, range_end, prev_kv) in (key(), range_end(), any::<bool>()),
    ) -> DeleteRangeRequest {
        DeleteRangeRequest { key, range_end, prev_kv }
    }
}

prop_compose! {
    fn compare()(
        (key, range_end) in (key(), range_end()),
        result in select(vec![
            CompareResult::Equal,
            CompareResult::NotEqual,
            CompareResult::Greater,
            CompareResult::Less,
        ]),
        (target, target_union) in prop_oneof![
            (0_i64..4).prop_map(|n| (CompareTarget::Version, TargetUnion::Version(n))),
            (0_i64..30).prop_map(|n| (CompareTarget::Create, TargetUnion::CreateRevision(n))),
            (0_i64..30).prop_map(|n| (CompareTarget::Mod, TargetUnion::ModRevision(n))),
            (0_i64..4).prop_map(|n| (CompareTarget::Lease, TargetUnion::Lease(n))),
            value().prop_map(|v| (CompareTarget::Value, TargetUnion::Value(v))),
        ],
    ) -> Compare {
        let (result, target) = (result as i32, target as i32);
        Compare { key, range_end, result, target, target_union: Some(target_union) }
    }
}

/// Any transaction, also one that is refused for writing a key twice.
pub(crate) fn any_txn() -> impl Strategy<Value = TxnRequest> {
    txn(TXN_DEPTH)
}

/// Transactions that pass all checks of their shape.
pub(crate) fn valid_txn() -> impl Strategy<Value = TxnRequest> {
    any_txn().prop_filter("refused", |request| check::txn(request, TXN_OPS_MAX).is_ok())
}

fn txn(depth: u32) -> BoxedStrategy<TxnRequest> {
    let ops =
        || vec(operation(depth).prop_map(|request| RequestOp { request: Some(request) }), 0..4);
    (vec(compare(), 0..2), ops(), ops())
        .prop_map(|(compare, success, failure)| TxnRequest { compare, success, failure })
        .boxed()
}

fn operation(depth: u32) -> BoxedStrategy<Request> {
    let flat = prop_oneof![
        2 => put().prop_map(Request::RequestPut),
        1 => delete_range().prop_map(Request::RequestDeleteRange),
        1 => range().prop_map(Request::RequestRange),
    ];
    if depth == 0 {
        return flat.boxed();
    }
    prop_oneof![3 => flat, 1 => txn(depth - 1).prop_map(Request::RequestTxn)].boxed()
}

/// A command that may write.
pub(crate) fn write() -> impl Strategy<Value = Command> {
    prop_oneof![
        6 => put().prop_map(Command::Put),
        3 => delete_range().prop_map(Command::DeleteRange),
        4 => valid_txn().prop_map(Command::Txn),
        2 => (1_i64..4).prop_map(|id| Command::Grant(LeaseGrantRequest { id, ttl: 10 * id })),
        1 => (1_i64..4).prop_map(|id| Command::Revoke(LeaseRevokeRequest { id })),
    ]
}

pub(crate) fn compact() -> impl Strategy<Value = Command> {
    (0_i64..30, any::<bool>())
        .prop_map(|(revision, physical)| Command::Compact(CompactionRequest { revision, physical }))
}

/// A life of writes, compactions and sweeps.
pub(crate) fn life() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => write().prop_map(Step::Do),
        2 => compact().prop_map(Step::Do),
        1 => (0_usize..5).prop_map(Step::Sweep),
    ];
    vec(step, 0..40)
}
