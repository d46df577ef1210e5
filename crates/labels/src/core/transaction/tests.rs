use expect_test::expect;

use super::*;
use crate::core::object::Labels;

const WORKER_7: &str = "8aca0dd300d2436b96f9d412b7b1b00d8e2454988fc9ada5607c2436a5bfbfa1";

fn name() -> TransactionName {
    format!("{WORKER_7}.4122").parse().unwrap()
}

fn document(annotations: &[(&str, &str)], data: &[(&str, &str)]) -> Document {
    let owned = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    Document {
        name: name().to_string(),
        annotations: owned(annotations),
        data: owned(data),
        ..Document::default()
    }
}

fn deleted() -> Transaction {
    Transaction {
        name: name(),
        node: "worker-7".to_owned(),
        uid: Some(Uid("6f1c".to_owned())),
        created: Some("2026-03-01T08:00:00Z".parse().unwrap()),
        source: Some(Source::Watch),
        kind: Kind::Deleted(Snapshot {
            node: "worker-7".to_owned(),
            uid: Some(Uid("6f1c".to_owned())),
            rv: "4122".parse().unwrap(),
            marker: Some(Marker("3071".to_owned())),
            labels: [("team/tier".to_owned(), "gold".to_owned())].into(),
        }),
    }
}

fn reason(annotations: &[(&str, &str)], data: &[(&str, &str)]) -> &'static str {
    let poison = Transaction::decode(&name(), &document(annotations, data)).unwrap_err();
    poison.reason().as_str()
}

#[test]
fn a_deletion_is_written_as_documented() {
    let document = deleted().encode().unwrap();
    expect![[r#"
        Document {
            name: "8aca0dd300d2436b96f9d412b7b1b00d8e2454988fc9ada5607c2436a5bfbfa1.4122",
            uid: None,
            rv: None,
            labels: {
                "app.kubernetes.io/managed-by": "windlass-labels",
            },
            annotations: {
                "labels.windlass.dev/node": "worker-7",
                "labels.windlass.dev/node-created": "2026-03-01T08:00:00Z",
                "labels.windlass.dev/node-uid": "6f1c",
                "labels.windlass.dev/source": "watch",
            },
            data: {
                "snapshot.json": "{\"v\":1,\"node\":\"worker-7\",\"uid\":\"6f1c\",\"rv\":\"4122\",\"marker\":\"3071\",\"labels\":{\"team/tier\":\"gold\"}}",
                "type": "deleted",
            },
            is_immutable: true,
        }
    "#]].assert_debug_eq(&document);
    assert_eq!(Transaction::decode(&name(), &document).unwrap(), deleted());
}

#[test]
fn an_addition_has_no_snapshot() {
    let added = Transaction { kind: Kind::Added, source: Some(Source::Gap), ..deleted() };
    let document = added.encode().unwrap();
    assert_eq!(document.data, [("type".to_owned(), "added".to_owned())].into());
    assert_eq!(Transaction::decode(&name(), &document).unwrap(), added);
}

/// The name orders; what the snapshot says of its version does not matter.
#[test]
fn the_version_is_the_names() {
    let mut document = deleted().encode().unwrap();
    let json = document.data[SNAPSHOT].replace("4122", "9999");
    document.data.insert(SNAPSHOT.to_owned(), json);
    assert_eq!(Transaction::decode(&name(), &document).unwrap(), deleted());
}

#[test]
fn reg10_flat_only_snapshots_are_decoded() {
    let earlier = document(
        &[],
        &[
            ("transaction_type", "deleted"),
            ("node_name", "worker-7"),
            ("last_store_resource_version", "4122"),
            ("label_version", "3"),
            ("labels_restored", "3071"),
            ("team---SLASH---tier", "gold"),
        ],
    );
    let transaction = Transaction::decode(&name(), &earlier).unwrap();
    assert_eq!((transaction.uid, transaction.created, transaction.source), (None, None, None));
    let Kind::Deleted(snapshot) = transaction.kind else { panic!("a deletion") };
    assert_eq!(snapshot.labels, Labels::from([("team/tier".to_owned(), "gold".to_owned())]));
    assert_eq!(snapshot.marker, Some(Marker("3071".to_owned())));
}

#[test]
fn an_addition_of_an_earlier_implementation() {
    let earlier = document(&[], &[("transaction_type", "added"), ("node_name", "worker-7")]);
    let transaction = Transaction::decode(&name(), &earlier).unwrap();
    assert_eq!((transaction.kind, transaction.uid), (Kind::Added, None));
}

#[test]
fn poison_is_told_apart() {
    let node = (NODE, "worker-7");
    assert_eq!(reason(&[node], &[]), "bad-type");
    assert_eq!(reason(&[node], &[("type", "moved")]), "bad-type");
    assert_eq!(reason(&[node], &[("type", "deleted"), (SNAPSHOT, "{")]), "bad-json");
    assert_eq!(
        reason(&[node], &[("type", "deleted"), (SNAPSHOT, r#"{"v":2}"#)]),
        "unknown-version"
    );
    assert_eq!(reason(&[node], &[("type", "deleted")]), "no-labels");
    assert_eq!(reason(&[], &[("type", "added")]), "no-node");
    assert_eq!(reason(&[(NODE, "")], &[("type", "added")]), "no-node");
    assert_eq!(reason(&[(NODE, "worker-8")], &[("type", "added")]), "wrong-hash");
    assert_eq!(reason(&[node, (NODE_CREATED, "noon")], &[("type", "added")]), "bad-time");
    let other = r#"{"v":1,"node":"worker-8","uid":null,"rv":"1","marker":null,"labels":{}}"#;
    assert_eq!(reason(&[node], &[("type", "deleted"), (SNAPSHOT, other)]), "wrong-hash");
}

#[test]
fn a_source_of_a_later_version_is_only_unknown() {
    let document = document(&[(NODE, "worker-7"), (SOURCE, "dream")], &[("type", "added")]);
    assert_eq!(Transaction::decode(&name(), &document).unwrap().source, None);
}

#[test]
fn what_is_too_large_is_not_encoded() {
    let Kind::Deleted(snapshot) = deleted().kind else { panic!("a deletion") };
    let labels = (0..20_000).map(|key| (format!("key-{key:05}"), "x".repeat(40))).collect();
    let large = Transaction { kind: Kind::Deleted(Snapshot { labels, ..snapshot }), ..deleted() };
    assert!(large.encode().is_err());
}
