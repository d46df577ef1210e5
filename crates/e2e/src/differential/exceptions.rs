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
    Exception { reason: "3.6 does not know RangeStream", covers: is_unknown_stream },
    Exception { reason: "each reports its own version", covers: is_about_versions },
    Exception {
        reason: "3.7 reads keys_only from its index, which knows no leases",
        covers: are_leases_of_keys_only,
    },
    Exception { reason: MISSING_LEASE_FIRST, covers: is_missing_lease_first },
    Exception {
        reason: "3.7 tells anyone whether auth is enabled",
        covers: is_auth_status_for_anyone,
    },
];

/// What windlass (right) answers otherwise than etcd 3.7 (left).
pub const WINDLASS: &[Exception] = &[
    Exception { reason: OLD_HASH, covers: is_hash_of_before },
    Exception {
        reason: "etcd sorts each piece of a stream by itself, and so loses keys or miscounts them",
        covers: |step, _, right| {
            matches!(step, Step::RangeStream(request) if is_sorted_without_order(request))
                && right["error"]["code"] == "Unimplemented"
        },
    },
    Exception { reason: UNSTABLE_SORT, covers: ties::are_all },
];

/// What windlass (right) answers otherwise than etcd 3.6 (left): where 3.6 and 3.7 differ it does as
/// 3.7 does.
pub const WINDLASS_36: &[Exception] = &[
    Exception {
        reason: "3.6 does not know RangeStream",
        covers: |step, left, right| is_unknown_stream(step, right, left),
    },
    Exception { reason: "each reports its own version", covers: is_about_versions },
    Exception {
        reason: "as 3.7, windlass answers keys_only without leases",
        covers: are_leases_of_keys_only,
    },
    Exception {
        reason: MISSING_LEASE_FIRST,
        covers: |step, left, right| is_missing_lease_first(step, right, left),
    },
    Exception {
        reason: "as 3.7, windlass tells anyone whether auth is enabled",
        covers: |step, left, right| is_auth_status_for_anyone(step, right, left),
    },
    Exception { reason: OLD_HASH, covers: is_hash_of_before },
    Exception { reason: UNSTABLE_SORT, covers: ties::are_all },
];

const MISSING_LEASE_FIRST: &str =
    "of a lease and a key that are both missing, 3.7 misses the lease in a transaction";
const OLD_HASH: &str =
    "etcd repeats the hash it made while compacting, from before that compaction";
const UNSTABLE_SORT: &str = "etcd sorts many so that equal ones lose their order";

fn is_unknown_stream(step: &Step, _: &Value, old: &Value) -> bool {
    matches!(step, Step::RangeStream(_)) && old["error"]["code"] == "Unimplemented"
}

fn is_about_versions(step: &Step, _: &Value, _: &Value) -> bool {
    matches!(step, Step::Status | Step::Downgrade(_))
}

fn are_leases_of_keys_only(step: &Step, one: &Value, other: &Value) -> bool {
    format!("{step:?}").contains("keys_only: true") && without_leases(one) == without_leases(other)
}

fn is_missing_lease_first(step: &Step, new: &Value, old: &Value) -> bool {
    let message = |answer: &Value| answer["error"]["message"].clone();
    matches!(step, Step::Txn(_))
        && message(new) == "etcdserver: requested lease not found"
        && message(old) == "etcdserver: key not found"
}

fn is_auth_status_for_anyone(step: &Step, new: &Value, old: &Value) -> bool {
    matches!(step, Step::Auth(AuthStep::Status))
        && new.get("error").is_none()
        && old.get("error").is_some()
}

fn is_hash_of_before(step: &Step, etcd: &Value, windlass: &Value) -> bool {
    matches!(step, Step::HashKv(request) if request.revision > 0)
        && windlass["hash_revision"] == windlass["compact_revision"]
        && etcd["compact_revision"] != windlass["compact_revision"]
}

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
