//! Passes over small worlds.

use super::*;
use crate::core::{
    keys::{RESTORED_RV, RESTORED_UID, STORED_AT, STORED_RV, STORED_UID},
    object::{Labels, Uid},
};

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn now() -> Timestamp {
    "2026-03-31T00:00:00Z".parse().unwrap()
}

fn node(name: &str, uid: &str) -> LiveNode {
    LiveNode {
        name: name.to_owned(),
        uid: Uid(uid.to_owned()),
        rv: "9".parse().unwrap(),
        created: now(),
        labels: Labels::new(),
        marker: None,
        is_terminating: false,
    }
}

/// A record stored so many days ago from rv 5, and given to `restored` in the version `from`.
fn record(name: &str, days: i32, restored: Option<(&str, &str)>) -> Document {
    let mut annotations: BTreeMap<String, String> = [
        (STORED_UID.to_owned(), "old".to_owned()),
        (STORED_RV.to_owned(), "5".to_owned()),
        (STORED_AT.to_owned(), (now() - DAY * days).to_string()),
    ]
    .into();
    if let Some((uid, from)) = restored {
        annotations.insert(RESTORED_UID.to_owned(), uid.to_owned());
        annotations.insert(RESTORED_RV.to_owned(), from.to_owned());
    }
    Document {
        name: name.to_owned(),
        rv: Some("1".to_owned()),
        labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
        annotations,
        ..Document::default()
    }
}

fn pass(resync: &mut Resync, nodes: &[LiveNode], records: &[Document], queued: &[&str]) -> Plan {
    let queued: BTreeSet<NodeHash> = queued.iter().map(|node| NodeHash::of(node)).collect();
    resync.pass(&World {
        nodes,
        records,
        queued: &|hash| queued.contains(hash),
        retention: DAY * 30,
        now: now(),
    })
}

fn collected(plan: &Plan) -> Vec<&str> {
    plan.collect.iter().map(|record| record.name.as_str()).collect()
}

#[test]
fn nodes_without_their_labels_are_settled() {
    let nodes = ["done", "fresh", "amended", "other", "leaving", "expired", "unknown"]
        .map(|name| node(name, "new"));
    let mut nodes = nodes.to_vec();
    nodes[4].is_terminating = true;
    let records = [
        record("done", 1, Some(("new", "5"))),
        record("fresh", 1, None),
        record("amended", 1, Some(("new", "4"))),
        record("other", 1, Some(("old", "5"))),
        record("leaving", 1, None),
        record("expired", 31, None),
        record("absent", 1, None),
    ];
    let plan = pass(&mut Resync::default(), &nodes, &records, &[]);
    assert_eq!(plan.settle, ["fresh", "amended", "other"]);
    assert_eq!((plan.known, plan.restored), (6, 1));
}

#[test]
fn a_record_is_collected_when_all_conditions_hold_twice() {
    let nodes = [node("a", "u")];
    let records = [record("b", 31, None)];
    let mut resync = Resync::default();
    assert_eq!(collected(&pass(&mut resync, &nodes, &records, &[])), [""; 0]);
    assert_eq!(collected(&pass(&mut resync, &nodes, &records, &["b"])), [""; 0], "queued");
    assert_eq!(collected(&pass(&mut resync, &[], &records, &[])), [""; 0], "an empty list");
    assert_eq!(collected(&pass(&mut resync, &nodes, &records, &[])), ["b"]);

    pass(&mut resync, &[node("b", "u")], &records, &[]);
    assert_eq!(collected(&pass(&mut resync, &nodes, &records, &[])), [""; 0], "was alive");
}

#[test]
fn young_foreign_and_handwritten_records_stay() {
    let nodes = [node("a", "u")];
    let mut foreign = record("foreign", 31, None);
    foreign.labels.clear();
    let mut by_hand = record("by-hand", 31, None);
    by_hand.annotations.clear();
    let records = [record("young", 29, None), foreign, by_hand];
    let mut resync = Resync::default();
    pass(&mut resync, &nodes, &records, &[]);
    assert_eq!(collected(&pass(&mut resync, &nodes, &records, &[])), [""; 0]);
}

#[test]
fn at_most_a_tenth_goes_in_one_pass() {
    let nodes = [node("a", "u")];
    let records: Vec<Document> = (0..21).map(|n| record(&format!("n{n}"), 31, None)).collect();
    let mut resync = Resync::default();
    pass(&mut resync, &nodes, &records, &[]);
    assert_eq!(pass(&mut resync, &nodes, &records, &[]).collect.len(), 3);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "only differences from it are used")]
fn a_lock_is_abandoned_after_an_hour_without_change() {
    let lock = |rv: &str| Document { rv: Some(rv.to_owned()), ..record("a", 0, None) };
    let start = Instant::now();
    let minute = |minutes: u64| start + Duration::from_mins(minutes);
    let mut abandoned = Abandoned::default();
    assert_eq!(abandoned.pass(&[lock("1")], minute(0)), []);
    assert_eq!(abandoned.pass(&[lock("2")], minute(50)), []);
    assert_eq!(abandoned.pass(&[lock("2")], minute(109)), []);
    assert_eq!(abandoned.pass(&[lock("2")], minute(110)), [lock("2")]);
    assert_eq!(abandoned.pass(&[], minute(111)), []);
    assert_eq!(abandoned.pass(&[lock("2")], minute(200)), [], "a new one under an old name");
}
