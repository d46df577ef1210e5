//! The definition of Rings says what `core::spec` says: the same defaults, the same refusals.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};

use super::server::{fill, refusals, unknown};
use crate::core::partition::{Slots, table::Kept};
use crate::core::spec::{self, Spec};
use crate::kubernetes::{MemberStatus, RingStatus};
use crate::manifests::definition;

fn schema() -> Value {
    definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

/// The least that is allowed, with the change merged in.
fn ring(name: &str, change: &Value) -> Value {
    let mut spec = json!({"resources": [{"resource": "secrets"}], "fence": "Off"});
    merge(&mut spec, change);
    let mut ring = json!({"metadata": {"name": name}, "spec": spec});
    fill(&schema(), &mut ring);
    ring
}

fn merge(into: &mut Value, change: &Value) {
    match (into.as_object_mut(), change.as_object()) {
        (Some(into), Some(change)) => {
            for (name, value) in change {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        _ => *into = change.clone(),
    }
}

/// The server refuses with these words, and `core::spec` finds something wrong too.
#[track_caller]
fn check_refused(change: &Value, expected: &Expect) {
    let ring = ring("websites", change);
    expected.assert_eq(&refusals(&schema(), &ring, None).join("\n"));
    let spec: Spec = serde_json::from_value(ring["spec"].clone()).unwrap();
    assert_ne!(spec::check("websites", &spec), [], "{change}");
}

#[track_caller]
fn check_allowed(change: &Value) {
    let ring = ring("websites", change);
    assert_eq!(refusals(&schema(), &ring, None), Vec::<String>::new());
    let spec: Spec = serde_json::from_value(ring["spec"].clone()).unwrap();
    assert_eq!(spec::check("websites", &spec), []);
}

/// After it became something else.
#[track_caller]
fn check_changed(before: &Value, after: &Value, expected: &Expect) {
    let (before, after) = (ring("websites", before), ring("websites", after));
    let refused = refusals(&schema(), &after, Some(&before));
    expected.assert_eq(&refused.join("\n"));
    let read = |ring: &Value| serde_json::from_value::<Spec>(ring["spec"].clone()).unwrap();
    let problems = spec::check_change(&read(&before), &read(&after));
    assert_eq!(problems.is_empty(), refused.is_empty(), "{problems:?}");
}

#[test]
fn the_server_fills_in_what_the_sharder_would() {
    let ring = ring("websites", &json!({}));
    let written: Spec =
        serde_json::from_value(json!({"resources": [{"resource": "secrets"}], "fence": "Off"}))
            .unwrap();
    let mut by_sharder = serde_json::to_value(&written).unwrap();
    fill(&schema()["properties"]["spec"], &mut by_sharder);
    assert_eq!(ring["spec"], by_sharder);
    assert_eq!(serde_json::from_value::<Spec>(ring["spec"].clone()).unwrap(), written);
}

/// The server judges defaults when the definition is applied, each as it stands there.
#[test]
fn defaults_are_allowed_by_themselves() {
    fn check(schema: &Value) {
        if let Some(default) = schema.get("default") {
            assert_eq!(refusals(schema, default, None), Vec::<String>::new(), "{default}");
        }
        schema["properties"].as_object().into_iter().flatten().for_each(|(_, field)| check(field));
    }
    check(&schema());
}

#[test]
fn the_least_is_enough() {
    check_allowed(&json!({}));
    check_allowed(&json!({"fence": "Managed", "instances": {"serviceAccounts": ["shop/sites"]}}));
    check_allowed(&json!({"fence": "External", "instances": {
        "identity": "Username", "usernamePrefix": "site:",
    }}));
    check_allowed(
        &json!({"names": {"preset": "Timebertt"}, "partitioning": {"algorithm": "Ring"}}),
    );
    check_allowed(&json!({"names": {"prefix": "sharding.example.com"}}));
    check_allowed(&json!({"partitioning": {"slots": 8192}, "handover": {"graceSeconds": 29}}));
}

#[test]
fn resources_are_few_and_each_in_one_place() {
    check_refused(&json!({"resources": []}), &expect!["Invalid value"]);
    check_refused(
        &json!({"resources": [{"resource": "secrets"}, {"group": "", "resource": "secrets"}]}),
        &expect!["Duplicate value"],
    );
    check_refused(
        &json!({"resources": [
            {"resource": "secrets"},
            {"group": "apps", "resource": "deployments", "controlled": [{"resource": "secrets"}]},
        ]}),
        &expect!["a resource is either a main one or controlled, not both"],
    );
    check_refused(
        &json!({"resources": [{"resource": "secrets", "controlled": [
            {"resource": "pods"}, {"resource": "pods"},
        ]}]}),
        &expect!["Duplicate value"],
    );
    check_refused(&json!({"resources": [{"resource": ""}]}), &expect!["Invalid value"]);
}

#[test]
fn numbers_have_their_bounds() {
    check_refused(
        &json!({"handover": {"graceSeconds": 30}}),
        &expect!["graceSeconds must be less than drainTimeoutSeconds"],
    );
    check_refused(&json!({"handover": {"concurrentMoves": 0}}), &expect!["Invalid value"]);
    check_refused(&json!({"handover": {"concurrentMoves": 1001}}), &expect!["Invalid value"]);
    for slots in [32, 1000, 16_384] {
        let change = json!({"partitioning": {"slots": slots}});
        check_refused(&change, &expect!["Unsupported value"]);
    }
    check_refused(&json!({"partitioning": {"maxMovePercent": 101}}), &expect!["Invalid value"]);
}

#[test]
fn names_are_those_of_domains() {
    for prefix in ["Windlass.dev", "-a", "a..b", "a_b", &"a".repeat(64), &["a"; 130].join(".")] {
        let change = json!({"names": {"prefix": prefix}});
        let ring = ring("websites", &change);
        assert_ne!(refusals(&schema(), &ring, None), Vec::<String>::new(), "{prefix}");
        let spec: Spec = serde_json::from_value(ring["spec"].clone()).unwrap();
        assert_ne!(spec::check("websites", &spec), [], "{prefix}");
    }
    for name in ["web.sites", "web-", &"a".repeat(64)] {
        let refusals = refusals(&schema(), &ring(name, &json!({})), None);
        expect!["the name of a Ring is an RFC 1123 label: at most 63 of a-z, 0-9 and -, no - at either end"].assert_eq(&refusals.join("\n"));
    }
}

#[test]
fn what_needs_something_else_says_so() {
    check_refused(
        &json!({"names": {"preset": "Timebertt"}}),
        &expect!["names.preset Timebertt needs partitioning.algorithm Ring"],
    );
    check_refused(
        &json!({"fence": "Managed"}),
        &expect![
            "a fence needs instances.serviceAccounts or instances.usernamePrefix; or say fence: Off"
        ],
    );
    check_refused(
        &json!({"fence": "External", "instances": {"usernamePrefix": ""}}),
        &expect![
            "a fence needs instances.serviceAccounts or instances.usernamePrefix; or say fence: Off"
        ],
    );
    check_refused(
        &json!({"instances": {"identity": "Username", "serviceAccounts": ["shop/sites"]}}),
        &expect!["identity Username needs usernamePrefix"],
    );
    check_refused(
        &json!({"instances": {"serviceAccounts": ["sites"]}}),
        &expect!["write namespace/name"],
    );
}

#[test]
fn what_labels_depend_on_cannot_be_changed() {
    let nothing = json!({});
    check_changed(
        &nothing,
        &json!({"partitioning": {"slots": 64}}),
        &expect!["partitioning.slots cannot be changed; create another Ring"],
    );
    check_changed(
        &nothing,
        &json!({"partitioning": {"algorithm": "Ring"}}),
        &expect!["partitioning.algorithm cannot be changed; create another Ring"],
    );
    check_changed(
        &nothing,
        &json!({"names": {"prefix": "a.b"}}),
        &expect!["names cannot be changed; create another Ring"],
    );
    let timebertt =
        json!({"names": {"preset": "Timebertt"}, "partitioning": {"algorithm": "Ring"}});
    check_changed(
        &timebertt,
        &json!({"partitioning": {"algorithm": "Ring"}}),
        &expect!["names cannot be changed; create another Ring"],
    );
    check_changed(&nothing, &json!({"handover": {"force": "Never"}}), &expect![""]);
}

/// What the schema does not know the server would drop, and with it what the sharder remembers.
#[test]
fn the_server_keeps_everything_the_sharder_tells() {
    let status = RingStatus {
        observed_generation: Some(1),
        members: vec![MemberStatus {
            id: "site-0".parse().unwrap(),
            namespace: "shop".to_owned(),
            state: "ready".to_owned(),
            weight: 100,
            slots: 64,
            objects: 7,
            since: Time(Timestamp::UNIX_EPOCH),
        }],
        table: Some(Kept::new(3, &Slots::empty(64).unwrap())),
        imbalance: Some(1.5),
        resources: vec![serde_json::from_value(json!({"resource": "secrets"})).unwrap()],
        conditions: vec![Condition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: "InstancesReady".to_owned(),
            message: String::new(),
            observed_generation: Some(1),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }],
        ..RingStatus::default()
    };
    let (schema, status) = (&schema()["properties"]["status"], json!(status));
    assert_eq!(refusals(schema, &status, None), Vec::<String>::new());
    assert_eq!(unknown(schema, &status), Vec::<String>::new());
}
