//! Records that leave one cluster and enter another.

use super::{at, foreign, live, record, stored};
use crate::{
    admin::transfer::{Arrival, Export, Outcome, Records},
    core::{
        object::{Document, LiveNode},
        record::Record,
    },
};

/// A record on its way from one cluster to another.
fn carried(record: &Record) -> Document {
    let export = Export::of(&[stored(record)]);
    let json = serde_json::to_string(&export.records).unwrap();
    let records: Records = serde_json::from_str(&json).unwrap();
    records.items.into_iter().next().unwrap().into()
}

#[track_caller]
fn check(
    document: &Document,
    live: Option<&LiveNode>,
    present: Option<&Document>,
    replace: bool,
    expected: Outcome,
) -> Option<Document> {
    let plan = Arrival { document, live, present, now: at(5) }.plan(replace);
    assert_eq!(plan.outcome, expected);
    plan.wanted
}

#[test]
fn a_record_arrives_as_it_left() {
    let sent = record("n", 7, "tier=gold team/x=1");
    let wanted = check(&carried(&sent), None, None, false, Outcome::Created).unwrap();
    assert_eq!((&wanted.uid, &wanted.rv), (&None, &None), "it is new to this cluster");
    let arrived = Record::decode(&wanted).unwrap();
    assert_eq!(arrived.snapshot, sent.snapshot);
    assert_eq!(arrived.ledger, sent.ledger);
}

#[test]
fn a_live_node_counts_as_restored() {
    let node = live("n", "tier=silver");
    let carried = carried(&record("n", 7, "tier=gold"));
    let wanted = check(&carried, Some(&node), None, false, Outcome::Created).unwrap();
    let restored = Record::decode(&wanted).unwrap().ledger.restored.unwrap();
    assert_eq!((restored.uid, restored.rv), (node.uid, "7".parse().unwrap()));
}

#[test]
fn what_is_there_stays_unless_asked_otherwise() {
    let carried = carried(&record("n", 7, "tier=gold"));
    let same = stored(&record("n", 7, "tier=gold"));
    assert_eq!(check(&carried, None, Some(&same), true, Outcome::Unchanged), None);
    let other = stored(&record("n", 9, "tier=silver"));
    assert_eq!(check(&carried, None, Some(&other), false, Outcome::Kept), None);
    let wanted = check(&carried, None, Some(&other), true, Outcome::Replaced).unwrap();
    assert_eq!((&wanted.uid, &wanted.rv), (&other.uid, &other.rv), "under its guards");
}

#[test]
fn strangers_are_neither_read_nor_written() {
    let carried = carried(&record("n", 7, "tier=gold"));
    assert_eq!(check(&carried, None, Some(&foreign("n")), true, Outcome::Refused), None);
    assert_eq!(check(&foreign("n"), None, None, true, Outcome::Refused), None);
    assert_eq!(Export::of(&[foreign("kube-root-ca.crt")]).records.items, []);
}

#[test]
fn what_cannot_be_read_is_left_out_by_name() {
    let mut broken = stored(&record("n", 7, "tier=gold"));
    broken.data.insert("labels_restored".to_owned(), "x".to_owned());
    let export = Export::of(&[broken]);
    assert_eq!(export.records.items, []);
    assert_eq!(export.unreadable[0].0, "n");
}

#[test]
fn annotations_of_other_tools_stay_at_home() {
    let mut noted = stored(&record("n", 7, "tier=gold"));
    noted.annotations.insert("kubectl.kubernetes.io/last-applied".to_owned(), "{}".to_owned());
    let export = Export::of(&[noted]);
    let keys = export.records.items[0].metadata.annotations.keys();
    assert!(keys.into_iter().all(|key| key.starts_with("labels.windlass.dev/")));
}

/// Whoever edits an export edits the keys that can be read; the import said nothing of it.
#[test]
fn edited_keys_that_do_not_count_are_named() {
    let mut edited = carried(&record("n", 7, "team/tier=gold rack=r7"));
    edited.data.insert("team---SLASH---tier".to_owned(), "platinum".to_owned());
    let other = stored(&record("n", 9, "team/tier=silver"));
    for (present, outcome) in [(None, Outcome::Created), (Some(&other), Outcome::Replaced)] {
        let plan = Arrival { document: &edited, live: None, present, now: at(5) }.plan(true);
        let problem = plan.problem.unwrap_or_default();
        assert_eq!(plan.outcome, outcome);
        assert!(problem.ends_with("snapshot.json, which counts: team/tier"), "{problem}");
    }
}
