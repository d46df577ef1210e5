//! What is stored and what the core has, one against the other.

use expect_test::{Expect, expect};
use k8s_openapi::api::coordination::v1 as api;
use kube::core::{ObjectMeta, Status};
use serde_json::{Value, json};

use super::*;
use crate::core::lease::Lease;
use crate::core::names::{Dialect, Names};
use crate::core::object::{Drain, GroupKind, LabelChange, Version};

fn own() -> Names {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Names::new("sites".parse().unwrap(), dialect)
}

fn timebertt() -> Names {
    Names::new("sites".parse().unwrap(), Dialect::Timebertt)
}

fn stored_lease() -> api::Lease {
    let stored = json!({
        "metadata": {
            "name": "a-0", "namespace": "shop", "resourceVersion": "41",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"windlass.dev/ring": "sites", "windlass.dev/virtual-nodes": "50"},
            "annotations": {
                "windlass.dev/incarnation": "i1", "windlass.dev/pod": "p/c",
                "windlass.dev/hold-seconds": "60", "windlass.dev/drain-epoch": "3",
                "windlass.dev/drain-seen": "two",
            },
        },
        "spec": {
            "holderIdentity": "a-0", "leaseDurationSeconds": 15, "leaseTransitions": 2,
            "renewTime": "2026-01-01T00:00:10.000001Z",
        },
    });
    serde_json::from_value(stored).unwrap()
}

fn text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_lease_is_read_and_what_cannot_be_read_counts_as_absent() {
    let read = lease(&own(), &stored_lease()).unwrap();
    assert_eq!((read.id.as_str(), read.namespace.as_str()), ("a-0", "shop"));
    assert_eq!(read.weight.as_deref(), Some("50"));
    assert_eq!(read.marks.hold, Some(Duration::from_secs(60)));
    assert_eq!((read.marks.drain_epoch, read.marks.drain_seen), (3, 0));
    let foreign = lease(&timebertt(), &stored_lease()).unwrap();
    assert_eq!((foreign.weight, foreign.marks.hold), (None, None));
}

#[test]
fn an_empty_holder_is_nobody_and_a_bare_lease_has_defaults() {
    let mut stored = stored_lease();
    stored.spec.as_mut().unwrap().holder_identity = Some(String::new());
    assert_eq!(lease(&own(), &stored).unwrap().holder, None);
    stored.spec = None;
    let bare = lease(&own(), &stored).unwrap();
    assert_eq!((bare.duration_s, bare.renewed, bare.transitions), (None, None, 0));
}

#[test]
fn a_lease_whose_name_is_no_id_is_refused() {
    let mut stored = stored_lease();
    stored.metadata.name = Some("a.b".to_owned());
    assert!(matches!(lease(&own(), &stored), Err(Unreadable::Id(_))));
    stored.metadata.resource_version = None;
    stored.metadata.name = Some("a".to_owned());
    assert_eq!(lease(&own(), &stored), Err(Unreadable::Missing("resource version")));
}

#[track_caller]
fn check_patch(change: impl FnOnce(Lease) -> Lease, expected: &Expect) {
    let wanted = change(lease(&own(), &stored_lease()).unwrap());
    expected.assert_eq(&text(&lease_patch(&own(), &wanted, true)));
}

#[test]
fn taking_a_lease_keeps_what_it_does_not_name() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    check_patch(
        |lease| lease.acquired("windlass-sharder", now),
        &expect![[r#"
            {
              "metadata": {
                "annotations": {
                  "windlass.dev/drain-epoch": "3",
                  "windlass.dev/drain-seen": null,
                  "windlass.dev/hold-seconds": null,
                  "windlass.dev/incarnation": "i1",
                  "windlass.dev/pod": "p/c"
                },
                "labels": {
                  "windlass.dev/state": null,
                  "windlass.dev/virtual-nodes": "50"
                },
                "resourceVersion": "41"
              },
              "spec": {
                "acquireTime": "2026-01-01T00:01:00.000000Z",
                "holderIdentity": "windlass-sharder",
                "leaseDurationSeconds": 30,
                "leaseTransitions": 3,
                "renewTime": "2026-01-01T00:01:00.000000Z"
              }
            }"#]],
    );
}

#[test]
fn a_created_lease_reads_as_it_was_meant() {
    let wanted = lease(&own(), &stored_lease()).unwrap();
    let mut created: api::Lease = serde_json::from_value(new_lease(&own(), &wanted)).unwrap();
    let labels = created.metadata.labels.clone().unwrap();
    assert_eq!(labels["windlass.dev/ring"], "sites");
    assert!(!labels.contains_key("windlass.dev/state"), "nothing stands for nothing");
    created.metadata.resource_version = Some("41".to_owned());
    created.metadata.creation_timestamp = stored_lease().metadata.creation_timestamp;
    assert_eq!(lease(&own(), &created).unwrap(), wanted);
}

#[test]
fn an_object_is_its_labels_and_the_owner_that_controls_it() {
    let metadata = json!({
        "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
        "labels": {"shard.windlass.dev/sites": "a-0", "drain.windlass.dev/sites": "1700000000"},
        "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Service", "name": "s", "uid": "u2"},
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u3", "controller": true},
        ],
    });
    let kind = GroupKind::new("", "ConfigMap");
    let narrow: Metadata = serde_json::from_value(metadata.clone()).unwrap();
    let whole: ObjectMeta = serde_json::from_value(metadata).unwrap();
    let read = object(&own(), &kind, &narrow).unwrap();
    assert_eq!(read, object(&own(), &kind, &whole).unwrap());
    assert_eq!(read.name.to_string(), "/ConfigMap/shop/web");
    assert_eq!(read.shard.unwrap().as_str(), "a-0");
    assert_eq!(read.drain, Some(Drain::Until(1_700_000_000)));
    assert_eq!(read.controller.unwrap().kind, GroupKind::new("apps", "Deployment"));
}

#[test]
fn every_change_of_labels_is_one_guarded_patch() {
    let version = Version("7".to_owned());
    let patch = |change| label_patch(&own(), &version, &change)["metadata"].clone();
    let (shard, drain) = ("shard.windlass.dev/sites", "drain.windlass.dev/sites");
    let to = LabelChange::Shard("b".parse().unwrap());
    for (change, labels) in [
        (to, json!({shard: "b", drain: null})),
        (LabelChange::Drain(Drain::Until(5)), json!({drain: "5"})),
        (LabelChange::Undrain, json!({drain: null})),
        (LabelChange::Clear, json!({shard: null, drain: null})),
    ] {
        assert_eq!(patch(change), json!({"resourceVersion": "7", "labels": labels}));
    }
}

#[test]
fn answers_are_told_apart_by_what_to_do() {
    for (code, meaning) in [
        (409, Meaning::Conflict),
        (404, Meaning::Gone),
        (401, Meaning::Forbidden),
        (403, Meaning::Forbidden),
        (422, Meaning::Invalid),
        (429, Meaning::Busy),
        (410, Meaning::Expired),
        (500, Meaning::Unknown),
        (503, Meaning::Unknown),
    ] {
        let status: Status = serde_json::from_value(json!({"code": code})).unwrap();
        let error = Error::refused(Verb::Patch, "Ring a", kube::Error::Api(status.boxed()));
        assert_eq!(error.meaning(), meaning, "{code}");
    }
}

#[test]
fn a_ring_of_another_version_is_refused_by_itself() {
    let ring = |spec: Value| {
        let stored = json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "Ring", "metadata": {"name": "a"}, "spec": spec});
        Ring::read(serde_json::from_value(stored).unwrap())
    };
    let spec = json!({"resources": [{"resource": "configmaps"}]});
    assert_eq!(ring(spec).unwrap().name().unwrap().as_str(), "a");
    let newer = json!({"resources": [], "colour": "red"});
    assert!(matches!(ring(newer), Err(Unreadable::Spec(_))));
}
