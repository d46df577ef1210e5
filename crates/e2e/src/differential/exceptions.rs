//! Known differences between stores, each with its reason: the one list.

mod ties;

use etcd_api::etcdserverpb as pb;
use pb::range_request::{SortOrder, SortTarget};
use serde_json::Value;

use super::step::{AuthStep, Step};

/// A difference that is no fault.
pub struct Exception {
    pub reason: &'static str,
    pub covers: fn(&Step, &Value, &Value) -> bool,
}

/// What etcd 3.6 (right) answers otherwise than 3.7 (left).
pub const ETCD_36: &[Exception] = &[
    Exception {
        reason: "3.6 does not know RangeStream",
        covers: |step, _, right| {
            matches!(step, Step::RangeStream(_)) && right["error"]["code"] == "Unimplemented"
        },
    },
    Exception {
        reason: "each reports its own version",
        covers: |step, _, _| matches!(step, Step::Status | Step::Downgrade(_)),
    },
    Exception {
        reason: "3.7 reads keys_only from its index, which knows no leases",
        covers: |step, left, right| {
            format!("{step:?}").contains("keys_only: true")
                && without_leases(left) == without_leases(right)
        },
    },
    Exception {
        reason: "of a lease and a key that are both missing, 3.7 misses the lease in a transaction",
        covers: |step, left, right| {
            let message = |answer: &Value| answer["error"]["message"].clone();
            matches!(step, Step::Txn(_))
                && message(left) == "etcdserver: requested lease not found"
                && message(right) == "etcdserver: key not found"
        },
    },
    Exception {
        reason: "3.7 tells anyone whether auth is enabled",
        covers: |step, left, right| {
            matches!(step, Step::Auth(AuthStep::Status))
                && left.get("error").is_none()
                && right.get("error").is_some()
        },
    },
];

/// What windlass (right) answers otherwise than etcd 3.7 (left).
pub const WINDLASS: &[Exception] = &[
    Exception {
        reason: "etcd repeats the hash it made while compacting, from before that compaction",
        covers: |step, left, right| {
            matches!(step, Step::HashKv(request) if request.revision > 0)
                && right["hash_revision"] == right["compact_revision"]
                && left["compact_revision"] != right["compact_revision"]
        },
    },
    Exception {
        reason: "etcd sorts each piece of a stream by itself, and so loses keys or miscounts them",
        covers: |step, _, right| {
            matches!(step, Step::RangeStream(request) if is_sorted_without_order(request))
                && right["error"]["code"] == "Unimplemented"
        },
    },
    Exception {
        reason: "etcd sorts many so that equal ones lose their order",
        covers: ties::are_all,
    },
];

/// The reason why this difference is expected, if it is.
#[must_use]
pub fn reason(
    exceptions: &[Exception],
    step: &Step,
    left: &Value,
    right: &Value,
) -> Option<&'static str> {
    let found = exceptions.iter().find(|exception| (exception.covers)(step, left, right));
    found.map(|exception| exception.reason)
}

fn is_sorted_without_order(request: &pb::RangeRequest) -> bool {
    request.sort_target() != SortTarget::Key && request.sort_order() == SortOrder::None
}

fn without_leases(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_leases).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "lease")
            .map(|(name, value)| (name.clone(), without_leases(value)))
            .collect(),
        other => other.clone(),
    }
}
