use expect_test::expect;

use super::*;
use crate::core::snapshot::TooLarge;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn snapshot(rv: u32, labels: Labels) -> Snapshot {
    Snapshot {
        node: "worker-7".to_owned(),
        uid: Some(Uid(format!("u{rv}"))),
        rv: rv.to_string().parse().unwrap(),
        marker: None,
        labels,
    }
}

fn now() -> Timestamp {
    "2026-03-01T08:00:00Z".parse().unwrap()
}

fn large(rv: u32, bytes: usize) -> Snapshot {
    let keys = bytes / 80;
    snapshot(rv, (0..keys).map(|key| (format!("{rv}-{key:08}"), "x".repeat(60))).collect())
}

fn document(data: &[(&str, &str)]) -> Document {
    Document { name: "worker-7".to_owned(), data: labels(data), ..Document::default() }
}

#[test]
fn a_record_is_written_as_documented() {
    let first = Record::new(snapshot(10, labels(&[("team/tier", "silver")])), now());
    let record = first.replaced_by(snapshot(20, labels(&[("team/tier", "gold")])), now());
    let document = record.encode();
    expect![[r#"
        Document {
            name: "worker-7",
            uid: None,
            rv: None,
            labels: {
                "app.kubernetes.io/managed-by": "windlass-labels",
            },
            annotations: {
                "labels.windlass.dev/stored-at": "2026-03-01T08:00:00Z",
                "labels.windlass.dev/stored-rv": "20",
                "labels.windlass.dev/stored-uid": "u20",
            },
            data: {
                "history.json": "[{\"v\":1,\"node\":\"worker-7\",\"uid\":\"u10\",\"rv\":\"10\",\"marker\":null,\"labels\":{\"team/tier\":\"silver\"}}]",
                "labels_restored": "20",
                "snapshot.json": "{\"v\":1,\"node\":\"worker-7\",\"uid\":\"u20\",\"rv\":\"20\",\"marker\":null,\"labels\":{\"team/tier\":\"gold\"}}",
                "team---SLASH---tier": "gold",
            },
            is_immutable: false,
        }
    "#]].assert_debug_eq(&document);
    let decoded = Record::decode(&document).unwrap();
    assert_eq!((decoded.snapshot, decoded.past), (record.snapshot, record.past));
}

/// What others put on the ConfigMap stays, and so do the guards.
#[test]
fn replacing_keeps_what_is_not_ours() {
    let mut document = Record::new(snapshot(10, labels(&[("a", "1")])), now()).encode();
    document.uid = Some(Uid("r".to_owned()));
    document.rv = Some("77".to_owned());
    document.labels.insert("theirs".to_owned(), "x".to_owned());
    document.annotations.insert("theirs".to_owned(), "x".to_owned());
    let record = Record::decode(&document).unwrap();
    let replaced = record.replaced_by(snapshot(20, labels(&[("b", "2")])), now()).encode();
    assert_eq!((&replaced.uid, &replaced.rv), (&document.uid, &document.rv));
    assert_eq!(replaced.labels["theirs"], "x");
    assert_eq!(replaced.annotations["theirs"], "x");
    assert!(!replaced.data.contains_key("a"), "the mirror is the new labels' alone");
}

#[test]
fn marking_leaves_the_labels_as_they_stand() {
    let by_hand = document(&[("labels_restored", "5"), ("team---SLASH---tier", "gold")]);
    let record = Record::decode(&by_hand).unwrap();
    let live = LiveNode {
        name: "worker-7".to_owned(),
        uid: Uid("u2".to_owned()),
        rv: "30".parse().unwrap(),
        created: now(),
        labels: Labels::new(),
        marker: None,
        is_terminating: false,
    };
    let marked = record.given_to(&live, now()).encode_ledger();
    assert_eq!(marked.data, by_hand.data);
    let restored = Record::decode(&marked).unwrap().ledger.restored.unwrap();
    assert_eq!((restored.uid, restored.rv), (live.uid, "5".parse().unwrap()));
}

#[test]
fn records_by_hand_and_of_an_earlier_implementation_are_read() {
    let read = |data: &[(&str, &str)]| Record::decode(&document(data)).unwrap();
    let gold = labels(&[("team/tier", "gold")]);
    let by_hand = read(&[("labels_restored", "5"), ("team---SLASH---tier", "gold")]);
    assert_eq!((by_hand.rv().as_str(), by_hand.uid(), by_hand.labels()), ("5", None, &gold));
    let earlier = read(&[
        ("last_store_resource_version", "9"),
        ("label_version", "2"),
        ("transaction_type", "deleted"),
        ("node_name", "worker-7"),
        ("team---SLASH---tier", "gold"),
    ]);
    assert_eq!((earlier.rv().as_str(), earlier.labels()), ("9", &gold));
    assert_eq!(read(&[("label_version", "2"), ("a", "1")]).rv().as_str(), "1");
    assert_eq!(
        read(&[("labels_restored", "5"), ("last_store_resource_version", "9"), ("a", "1")])
            .rv()
            .as_str(),
        "5"
    );
}

#[test]
fn zero_labels_need_a_snapshot_that_says_so() {
    let empty = Record::new(snapshot(10, Labels::new()), now()).encode();
    assert!(Record::decode(&empty).unwrap().labels().is_empty());
    let bare = document(&[("labels_restored", "5")]);
    assert!(matches!(Record::decode(&bare), Err(Unreadable::Empty)));
}

#[test]
fn a_mirror_that_differs_is_noticed_and_the_snapshot_counts() {
    let mut document = Record::new(snapshot(10, labels(&[("a", "1"), ("b", "2")])), now()).encode();
    assert!(Record::decode(&document).unwrap().drift.is_empty());
    document.data.insert("a".to_owned(), "edited".to_owned());
    document.data.remove("b");
    document.data.insert("c---SLASH---d".to_owned(), "new".to_owned());
    let record = Record::decode(&document).unwrap();
    assert_eq!(record.drift, ["a", "b", "c/d"].map(ToOwned::to_owned).into());
    assert_eq!(record.labels()["a"], "1");
}

#[test]
fn labels_that_fit_no_key_are_only_in_the_snapshot() {
    let long = format!("{}/{}", "p".repeat(253), "n".repeat(63));
    let all = labels(&[("type", "x"), ("a---SLASH---b", "x"), (&long, "x"), ("fits", "x")]);
    let document = Record::new(snapshot(10, all.clone()), now()).encode();
    let flat: Vec<&String> = document.data.keys().collect();
    assert_eq!(flat, ["fits", "labels_restored", "snapshot.json"]);
    let record = Record::decode(&document).unwrap();
    assert_eq!(record.labels(), &all);
    assert!(record.drift.is_empty());
}

#[test]
fn flat_keys_give_way_before_the_history_and_the_snapshot_never() {
    let size = |document: &Document| {
        document.data.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>()
    };
    let keys = |record: &Record| {
        let document = record.encode();
        let is_flat = document.data.keys().any(|key| key.contains("-0000"));
        assert!(size(&document) < 1024 * 1024, "{}", size(&document));
        (is_flat, Record::decode(&document).unwrap().past.iter().count())
    };
    let small = Record::new(large(1, 100_000), now());
    assert_eq!(keys(&small.replaced_by(large(2, 200_000), now())), (true, 1));
    assert_eq!(keys(&small.replaced_by(large(2, 550_000), now())), (false, 1));
    assert_eq!(keys(&small.replaced_by(large(2, 900_000), now())), (false, 0));
}

#[test]
fn what_cannot_be_read_says_what() {
    let broken = |change: fn(&mut Document)| {
        let first = Record::new(snapshot(10, labels(&[("a", "1")])), now());
        let mut document = first.replaced_by(snapshot(20, labels(&[("a", "2")])), now()).encode();
        change(&mut document);
        Record::decode(&document).unwrap_err().to_string()
    };
    let messages = [
        broken(|document| drop(document.data.insert(MARKER.to_owned(), "x".to_owned()))),
        broken(|document| drop(document.data.insert(SNAPSHOT.to_owned(), "{".to_owned()))),
        broken(|document| drop(document.data.insert(HISTORY.to_owned(), "{".to_owned()))),
        broken(|document| {
            document.annotations.insert(crate::core::keys::STORED_AT.to_owned(), "noon".to_owned());
        }),
    ];
    expect![[r#"
        `labels_restored` is no resource version
        `snapshot.json` cannot be read
        `history.json` cannot be read
        the bookkeeping cannot be read"#]]
    .assert_eq(&messages.join("\n"));
    let mut foreign = document(&[("ca.crt", "x")]);
    assert!(matches!(Record::decode(&foreign), Err(Unreadable::Foreign)));
    foreign.data.insert(EARLIER_VERSION.to_owned(), "1".to_owned());
    assert!(Record::decode(&foreign).is_ok());
}

#[test]
fn only_an_amended_snapshot_can_exceed_the_bound() {
    assert_eq!(large(1, 700_000).to_bounded_json().map(drop), Ok(()));
    assert!(matches!(large(1, 1_200_000).to_bounded_json(), Err(TooLarge { .. })));
}
