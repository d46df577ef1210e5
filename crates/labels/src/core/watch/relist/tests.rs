use super::*;
use crate::core::{
    ledger::Restored,
    watch::notation::{node, rv, saved, show_all, uid},
};

const STORED_AT: &str = "2026-03-01T00:00:00Z";

/// What is remembered and what is there, in lines of [`notation`](crate::core::watch::notation).
#[derive(Default)]
struct World<'a> {
    memory: &'a [&'a str],
    gone: &'a [&'a str],
    alive: &'a [&'a str],
    checkpoints: &'a [&'a str],
    records: &'a [(&'a str, Ledger)],
    queued: &'a [&'a str],
}

impl World<'_> {
    #[track_caller]
    fn check(&self, expected: &[&str]) {
        let nodes = |lines: &[&str]| lines.iter().map(|line| node(line)).collect::<Vec<_>>();
        let mut index = Index::default();
        index.on_relisted(nodes(self.memory));
        self.gone.iter().for_each(|gone| index.on_recovered(uid(gone)));
        let records = self.records.iter().cloned();
        let listing = Listing {
            position: rv("100"),
            nodes: nodes(self.alive),
            checkpoints: self.checkpoints.iter().map(|line| saved(line)).collect(),
            records: records.map(|(name, ledger)| (name.to_owned(), ledger)).collect(),
            queued: self.queued.iter().map(|text| uid(text)).collect(),
        };
        assert_eq!(show_all(&plan(&index, &listing, retention())), expected);
    }
}

fn retention() -> Retention {
    let now = STORED_AT.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24);
    Retention { period: SignedDuration::from_hours(48), now }
}

/// A record of `stored`'s labels at version 5, given to `restored` as of the version beside it.
fn ledger(stored: &str, restored: Option<(&str, &str)>) -> Ledger {
    let restored =
        restored.map(|(to, from)| Restored { uid: uid(to), rv: rv(from), at: None, node_rv: None });
    Ledger {
        stored_uid: Some(uid(stored)),
        stored_rv: Some(rv("5")),
        stored_at: STORED_AT.parse().ok(),
        restored,
    }
}

#[test]
fn who_is_missing_is_told_from_memory_or_from_its_checkpoint_whichever_is_newer() {
    let memory = "a.7 deleted u1 (list) x=1";
    let checkpoint = "deleted u1 (checkpoint)";
    let world = World { memory: &["a u1 7 x=1"], ..World::default() };
    world.check(&[memory]);
    World { checkpoints: &["a u1 6 x=0"], ..world }.check(&[memory]);
    World { checkpoints: &["a u1 7 x=1"], ..world }.check(&[memory]);
    World { checkpoints: &["a u1 8 x=2"], ..world }.check(&[checkpoint]);
    World { memory: &[], checkpoints: &["a u1 6 x=0"], ..world }.check(&[checkpoint]);
}

#[test]
fn each_incarnation_is_told_in_the_order_of_its_last_sighting() {
    let memory = "a.9 deleted u2 (list)";
    let checkpoint = "deleted u1 (checkpoint)";
    let world = World { memory: &["a u2 9"], checkpoints: &["a u1 7"], ..World::default() };
    world.check(&[checkpoint, memory]);
    World { checkpoints: &["a u1 10"], ..world }.check(&[memory, checkpoint]);
}

#[test]
fn who_lives_or_is_stored_or_was_told_is_not_told_again() {
    let world = World { memory: &["a u1 7"], checkpoints: &["a u1 8"], ..World::default() };
    World { alive: &["a u1 9"], ..world }.check(&[]);
    World { records: &[("a", ledger("u1", None))], ..world }.check(&[]);
    World { gone: &["u1"], ..world }.check(&[]);
    World { records: &[("a", ledger("u0", None))], ..world }.check(&["deleted u1 (checkpoint)"]);
    World { records: &[("b", ledger("u1", None))], ..world }.check(&["deleted u1 (checkpoint)"]);
}

#[test]
fn an_arrival_is_told_where_settling_would_act() {
    let told: &[&str] = &["a.90 added u2 (list)"];
    let check = |alive: &str, ledger: Ledger, expected: &[&str]| {
        World { alive: &[alive], records: &[("a", ledger)], ..World::default() }.check(expected);
    };
    let live = "a u2 90 x=1";
    check(live, ledger("u1", None), told);
    check(live, ledger("u1", Some(("u1", "3"))), told);
    // Restored.
    check(live, ledger("u1", Some(("u2", "5"))), &[]);
    // Restored, but a later deletion has been stored since.
    check(live, ledger("u1", Some(("u2", "4"))), told);
    // Written by hand, beside a node that lives.
    check(live, Ledger { stored_uid: None, ..ledger("u1", None) }, &[]);
    check(live, Ledger::default(), &[]);
    World { alive: &[live], ..World::default() }.check(&[]);
}

#[test]
fn labels_past_their_retention_are_no_reason_to_tell_unless_given_already() {
    let old = |ledger: Ledger| Ledger { stored_at: "2026-01-01T00:00:00Z".parse().ok(), ..ledger };
    let check = |alive: &str, ledger: Ledger, expected: &[&str]| {
        World { alive: &[alive], records: &[("a", ledger)], ..World::default() }.check(expected);
    };
    check("a u2 90", old(ledger("u1", None)), &[]);
    // It may name a snapshot of the past, which the bookkeeping alone does not tell.
    check("a u2 90 m=4", old(ledger("u1", None)), &["a.90 added u2 (list)"]);
    check("a u2 90 m=5", old(ledger("u1", None)), &["a.90 added u2 (list)"]);
    check("a u2 90", old(ledger("u1", Some(("u2", "4")))), &["a.90 added u2 (list)"]);
}

#[test]
fn a_queued_arrival_is_not_told_again() {
    let records = [("a", ledger("u1", None))];
    let world = World { alive: &["a u2 90"], records: &records, ..World::default() };
    World { queued: &["u2"], ..world }.check(&[]);
    World { queued: &["u1"], ..world }.check(&["a.90 added u2 (list)"]);
}

#[test]
fn a_node_on_its_way_out_gets_nothing() {
    let mut leaving = node("a u2 90");
    leaving.is_terminating = true;
    let Retention { period, now } = retention();
    assert!(!is_due(&ledger("u1", None), &leaving, period, now));
}

#[test]
fn a_nodes_end_comes_before_the_arrival_of_the_next() {
    World {
        memory: &["a u1 7 x=1"],
        alive: &["a u2 90"],
        records: &[("a", ledger("u0", None))],
        ..World::default()
    }
    .check(&["a.7 deleted u1 (list) x=1", "a.90 added u2 (list)"]);
}
