//! Answers that differ only in the order of what sorts alike.
//!
//! etcd sorts with Go's `sort.Sort`, which keeps equal elements in their order only where there are
//! few; windlass always does.

use std::collections::BTreeSet;

use etcd_api::etcdserverpb as pb;
use pb::range_request::SortTarget;
use pb::request_op::Request;
use serde_json::{Map, Value};

use super::super::step::Step;

/// As many elements Go sorts by insertion, which keeps equal ones in order.
const STABLE_MAX: i64 = 12;

/// Whether nothing differs but the order of key-values that are equal in what they were sorted by.
pub(super) fn are_all(step: &Step, left: &Value, right: &Value) -> bool {
    let mut fields = BTreeSet::new();
    match step {
        Step::Range(request) => fields.extend(sort_field(request)),
        Step::Txn(request) => collect_fields(request, &mut fields),
        _ => {}
    }
    is_alike(left, right, &fields)
}

fn collect_fields(request: &pb::TxnRequest, fields: &mut BTreeSet<&'static str>) {
    for operation in request.success.iter().chain(&request.failure) {
        match &operation.request {
            Some(Request::RequestRange(range)) => fields.extend(sort_field(range)),
            Some(Request::RequestTxn(inner)) => collect_fields(inner, fields),
            _ => {}
        }
    }
}

fn sort_field(request: &pb::RangeRequest) -> Option<&'static str> {
    match request.sort_target() {
        // No two key-values have the same.
        SortTarget::Key => None,
        SortTarget::Version => Some("version"),
        SortTarget::Create => Some("create_revision"),
        SortTarget::Mod => Some("mod_revision"),
        SortTarget::Value => Some("value"),
    }
}

fn is_alike(left: &Value, right: &Value, fields: &BTreeSet<&str>) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| is_alike(left, right, fields))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_found = |name: &String, value| match right.get(name) {
                Some(other) if name == "kvs" && value != other => {
                    fields.iter().any(|field| are_ties(left, right, field))
                }
                Some(other) => is_alike(value, other, fields),
                None => false,
            };
            left.len() == right.len() && left.iter().all(|(name, value)| is_found(name, value))
        }
        _ => left == right,
    }
}

/// Whether both ranges, equally long, go through the same values of a field. Where a limit cut
/// among equal ones, either may have been left out.
fn are_ties(left: &Map<String, Value>, right: &Map<String, Value>, field: &str) -> bool {
    let (Some(one), Some(other)) = (key_values(left), key_values(right)) else { return false };
    let is_cut = left.contains_key("more");
    let sorted = |kvs: &[Value]| kvs.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    let is_same_set = is_cut || sorted(one) == sorted(other);
    let is_same_order = one.iter().map(|kv| &kv[field]).eq(other.iter().map(|kv| &kv[field]));
    count(left) > STABLE_MAX && is_same_set && is_same_order
}

fn key_values(range: &Map<String, Value>) -> Option<&[Value]> {
    range.get("kvs")?.as_array().map(Vec::as_slice)
}

fn count(range: &Map<String, Value>) -> i64 {
    let text = range.get("count").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(target: SortTarget, count: usize, left: [&str; 3], right: [&str; 3]) -> bool {
        let request = pb::RangeRequest { sort_target: target as i32, ..Default::default() };
        let answer = |keys: [&str; 3]| {
            let kv = |key: &&str| json!({"key": key, "version": &key[..1]});
            let kvs: Vec<Value> = keys.iter().map(kv).collect();
            json!({"count": count.to_string(), "kvs": kvs})
        };
        are_all(&Step::Range(request), &answer(left), &answer(right))
    }

    #[test]
    fn only_ties_of_long_answers_may_change_places() {
        let by_version = SortTarget::Version;
        assert!(check(by_version, 13, ["1a", "1b", "2c"], ["1b", "1a", "2c"]));
        assert!(!check(by_version, 12, ["1a", "1b", "2c"], ["1b", "1a", "2c"]), "few are stable");
        assert!(!check(by_version, 13, ["1a", "1b", "2c"], ["2c", "1a", "1b"]), "another order");
        assert!(!check(by_version, 13, ["1a", "1b", "2c"], ["1a", "1d", "2c"]), "another key");
        assert!(!check(SortTarget::Key, 13, ["1a", "1b", "2c"], ["1b", "1a", "2c"]));
    }
}
