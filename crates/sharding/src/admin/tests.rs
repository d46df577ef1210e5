//! Answers, from what was read to what is told. What needs a cluster is tested with one.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::explain::{Target, find};
use super::status::Moves;
use super::view::{Catalogue, View};
use crate::core::lease::Lease;
use crate::core::names::{Dialect, Names};
use crate::kubernetes::{Ring, lease};

fn now() -> Timestamp {
    "2026-03-01T08:00:00Z".parse().unwrap()
}

fn ring(status: Value) -> Ring {
    serde_json::from_value(json!({
        "apiVersion": "windlass.dev/v1alpha1",
        "kind": "Ring",
        "metadata": {"name": "websites"},
        "spec": {"resources": [{"resource": "secrets"}], "partitioning": {"slots": 64}},
        "status": status,
    }))
    .unwrap()
}

/// A Lease of namespace `shop`, renewed some seconds ago.
fn stored(id: &str, namespace: &str, (holder, renewed_s): (&str, i64)) -> Lease {
    let renewed = Timestamp::from_second(now().as_second() - renewed_s).unwrap();
    let names =
        Names::new("websites".parse().unwrap(), Dialect::Own { prefix: "windlass.dev".to_owned() });
    let created = if namespace == "shop" { "2026-03-01T06:00:00Z" } else { "2026-03-01T07:00:00Z" };
    let object = json!({
        "metadata": {
            "name": id,
            "namespace": namespace,
            "resourceVersion": "7",
            "creationTimestamp": created,
            "labels": {"windlass.dev/ring": "websites", "windlass.dev/virtual-nodes": "50"},
        },
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": format!("{renewed:.6}"),
        },
    });
    lease(&names, &serde_json::from_value(object).unwrap()).unwrap()
}

#[track_caller]
fn check_members(status: Value, leases: Vec<Lease>, expected: &Expect) {
    let view = View::new(ring(status), leases, Vec::new(), now());
    let told = view.status(Moves::default()).unwrap();
    let line = |it: &super::status::Member| {
        let at = |at: Option<Timestamp>| {
            at.map_or("-".to_owned(), |at| format!("{}s", now().duration_since(at).as_secs()))
        };
        let namespace = it.namespace.as_deref().unwrap_or("-");
        let (since, renewed) = (at(it.since), at(it.renewed));
        let objects = it.objects.map_or("-".to_owned(), |objects| objects.to_string());
        format!(
            "{namespace}/{} {} for {since}, renewed {renewed}, weight {}, {} slots, {objects} objects\n",
            it.id, it.state, it.weight, it.slots
        )
    };
    expected.assert_eq(&told.members.iter().map(line).collect::<String>());
}

#[test]
fn instances_are_told_as_the_sharder_told_them_and_new_ones_by_their_leases() {
    let mut owners = vec![0; 48];
    owners.extend([1; 16]);
    check_members(
        json!({
            "members": [{
                "id": "a", "namespace": "shop", "state": "ready", "weight": 100, "slots": 9,
                "objects": 7, "since": "2026-03-01T07:59:00Z",
            }, {
                "id": "gone", "state": "unknown", "weight": 0, "slots": 0, "objects": 2,
                "since": "2026-03-01T07:59:50Z",
            }],
            "table": {
                "epoch": 3,
                "instances": [{"id": "a", "weight": 100}, {"id": "b", "weight": 50}],
                "slots": owners,
            },
        }),
        vec![
            stored("a", "shop", ("a", 2)),
            stored("b", "shop", ("b", 20)),
            stored("b", "yard", ("b", 1)),
            stored("c", "shop", ("windlass-sharder", 3)),
            stored("d", "shop", ("", 3)),
        ],
        &expect![[r#"
            shop/a ready for 60s, renewed 2s, weight 100, 48 slots, 7 objects
            shop/b unknown for -, renewed 20s, weight 50, 16 slots, - objects
            yard/b conflict for -, renewed 1s, weight 50, 0 slots, - objects
            shop/c dead for -, renewed 3s, weight 50, 0 slots, - objects
            shop/d released for -, renewed 3s, weight 50, 0 slots, - objects
            -/gone unknown for 10s, renewed -, weight 0, 0 slots, 2 objects
        "#]],
    );
}

#[test]
fn before_the_sharder_told_anything_leases_do() {
    check_members(
        Value::Null,
        vec![stored("a", "shop", ("a", 14))],
        &expect![[r#"
        shop/a ready for -, renewed 14s, weight 50, 0 slots, - objects
    "#]],
    );
}

#[test]
fn a_table_that_cannot_be_read_is_an_error_and_not_an_empty_one() {
    let table = json!({"epoch": 1, "instances": [], "slots": [0, 1]});
    let view = View::new(ring(json!({"table": table})), Vec::new(), Vec::new(), now());
    let error = view.status(Moves::default()).unwrap_err();
    expect!["the table of Ring `websites` cannot be read"].assert_eq(&error.to_string());
}

#[test]
fn a_kind_that_no_ring_has_is_answered_with_those_they_have() {
    let target =
        Target { kind: "pod".to_owned(), name: "x".to_owned(), namespace: "shop".to_owned() };
    let error = find(&target, &Catalogue::new()).unwrap_err();
    expect!["no Ring has the kind `pod`"].assert_eq(&error.to_string());
}
