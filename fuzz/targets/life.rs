//! Lives of a keyspace, made of the fuzzer's bytes. Everything is drawn from few values, so that keys
//! meet, leases are shared, and revisions are sometimes compacted and sometimes not there yet.

use arbitrary::Arbitrary;
use bytes::Bytes;
use etcd_api::etcdserverpb::{
    self as pb, Compare, RequestOp, TxnRequest, compare::TargetUnion, request_op::Request,
};
use mvcc::story::Command;

/// Longer lives teach nothing new and cost the model the square of their length.
const STEPS_MAX: usize = 48;
const KEYS: [&[u8]; 8] = [b"\0", b"a", b"aa", b"b", b"b\0", b"c", b"d", b"\xff"];

#[derive(Arbitrary, Debug)]
pub(crate) struct Life(Vec<Deed>);

/// What happens next.
pub(crate) enum Step {
    Do(Command),
    /// Sweep up to so many keys.
    Sweep(usize),
}

#[derive(Arbitrary, Debug)]
enum Deed {
    Put(Put),
    Range(Range),
    Delete(Delete),
    Txn(Txn),
    Grant(Lease),
    Revoke(Lease),
    TimeToLive(Lease),
    Compact(Moment, bool),
    Sweep(u8),
}

#[derive(Arbitrary, Debug)]
struct Key(u8);

/// None, everything, or one of the keys.
#[derive(Arbitrary, Debug)]
enum End {
    Absent,
    Open,
    At(Key),
}

#[derive(Arbitrary, Debug)]
struct Value(u8);

#[derive(Arbitrary, Debug)]
struct Lease(u8);

/// Around the revisions that a short life reaches.
#[derive(Arbitrary, Debug)]
struct Moment(i8);

#[derive(Arbitrary, Debug)]
struct Put {
    key: Key,
    value: Value,
    lease: Option<Lease>,
    keeps_value: bool,
    keeps_lease: bool,
    prev_kv: bool,
}

#[derive(Arbitrary, Debug)]
struct Range {
    key: Key,
    end: End,
    limit: i8,
    revision: Moment,
    sort: (u8, u8),
    keys_only: bool,
    count_only: bool,
    bounds: Option<[Moment; 4]>,
}

#[derive(Arbitrary, Debug)]
struct Delete {
    key: Key,
    end: End,
    prev_kv: bool,
}

#[derive(Arbitrary, Debug)]
struct Txn {
    conditions: Vec<Condition>,
    then: Vec<Op>,
    otherwise: Vec<Op>,
}

#[derive(Arbitrary, Debug)]
struct Condition {
    key: Key,
    end: End,
    result: u8,
    target: Target,
}

#[derive(Arbitrary, Debug)]
enum Target {
    Version(u8),
    Create(Moment),
    Mod(Moment),
    Lease(Lease),
    Value(Value),
}

#[derive(Arbitrary, Debug)]
enum Op {
    Put(Put),
    Range(Range),
    Delete(Delete),
    Txn(Box<Txn>),
    Nothing,
}

// === impl Life ===

impl Life {
    pub(crate) fn steps(self) -> impl Iterator<Item = Step> {
        self.0.into_iter().take(STEPS_MAX).map(Deed::into_step)
    }
}

// === impl Deed ===

impl Deed {
    fn into_step(self) -> Step {
        Step::Do(match self {
            Self::Sweep(keys_max) => return Step::Sweep(keys_max.into()),
            Self::Put(put) => Command::Put(put.into()),
            Self::Range(range) => Command::Range(range.into()),
            Self::Delete(delete) => Command::DeleteRange(delete.into()),
            Self::Txn(txn) => Command::Txn(txn.into()),
            Self::Grant(lease) => {
                let id = lease.id();
                Command::Grant(pb::LeaseGrantRequest { id, ttl: 10 * id })
            }
            Self::Revoke(lease) => Command::Revoke(pb::LeaseRevokeRequest { id: lease.id() }),
            Self::TimeToLive(lease) => {
                Command::TimeToLive(pb::LeaseTimeToLiveRequest { id: lease.id(), keys: true })
            }
            Self::Compact(moment, physical) => {
                Command::Compact(pb::CompactionRequest { revision: moment.revision(), physical })
            }
        })
    }
}

// === impl Key, End, Value, Lease, Moment ===

impl Key {
    fn bytes(&self) -> Bytes {
        Bytes::from_static(KEYS[usize::from(self.0) % KEYS.len()])
    }
}

impl End {
    fn bytes(&self) -> Bytes {
        match self {
            Self::Absent => Bytes::new(),
            Self::Open => Bytes::from_static(b"\0"),
            Self::At(key) => key.bytes(),
        }
    }
}

impl Value {
    fn bytes(&self) -> Bytes {
        Bytes::from_static(if self.0.is_multiple_of(2) { b"" } else { b"x" })
    }
}

impl Lease {
    fn id(&self) -> i64 {
        i64::from(self.0 % 3) + 1
    }
}

impl Moment {
    fn revision(&self) -> i64 {
        i64::from(self.0)
    }
}

// === impl From for requests ===

impl From<Put> for pb::PutRequest {
    fn from(put: Put) -> Self {
        let Put { key, value, lease, keeps_value, keeps_lease, prev_kv } = put;
        Self {
            key: key.bytes(),
            value: if keeps_value { Bytes::new() } else { value.bytes() },
            lease: lease.filter(|_| !keeps_lease).map_or(0, |lease| lease.id()),
            prev_kv,
            ignore_value: keeps_value,
            ignore_lease: keeps_lease,
        }
    }
}

impl From<Range> for pb::RangeRequest {
    fn from(range: Range) -> Self {
        let bounds = range.bounds.map(|bounds| bounds.map(|moment| moment.revision()));
        let [min_mod, max_mod, min_create, max_create] = bounds.unwrap_or_default();
        Self {
            key: range.key.bytes(),
            range_end: range.end.bytes(),
            limit: range.limit.into(),
            revision: range.revision.revision(),
            sort_order: (range.sort.0 % 3).into(),
            sort_target: (range.sort.1 % 5).into(),
            keys_only: range.keys_only,
            count_only: range.count_only,
            min_mod_revision: min_mod,
            max_mod_revision: max_mod,
            min_create_revision: min_create,
            max_create_revision: max_create,
            serializable: false,
        }
    }
}

impl From<Delete> for pb::DeleteRangeRequest {
    fn from(delete: Delete) -> Self {
        let (key, range_end) = (delete.key.bytes(), delete.end.bytes());
        Self { key, range_end, prev_kv: delete.prev_kv }
    }
}

impl From<Txn> for TxnRequest {
    fn from(txn: Txn) -> Self {
        Self {
            compare: txn.conditions.into_iter().map(Into::into).collect(),
            success: txn.then.into_iter().map(Into::into).collect(),
            failure: txn.otherwise.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Condition> for Compare {
    fn from(condition: Condition) -> Self {
        // The numbers are etcd's: version, create, mod, value, lease.
        let (target, wanted) = match condition.target {
            Target::Version(version) => (0, TargetUnion::Version(version.into())),
            Target::Create(moment) => (1, TargetUnion::CreateRevision(moment.revision())),
            Target::Mod(moment) => (2, TargetUnion::ModRevision(moment.revision())),
            Target::Value(value) => (3, TargetUnion::Value(value.bytes())),
            Target::Lease(lease) => (4, TargetUnion::Lease(lease.id())),
        };
        Self {
            result: (condition.result % 4).into(),
            target,
            key: condition.key.bytes(),
            range_end: condition.end.bytes(),
            target_union: Some(wanted),
        }
    }
}

impl From<Op> for RequestOp {
    fn from(op: Op) -> Self {
        let request = match op {
            Op::Put(put) => Some(Request::RequestPut(put.into())),
            Op::Range(range) => Some(Request::RequestRange(range.into())),
            Op::Delete(delete) => Some(Request::RequestDeleteRange(delete.into())),
            Op::Txn(txn) => Some(Request::RequestTxn((*txn).into())),
            Op::Nothing => None,
        };
        Self { request }
    }
}
