//! Who is listed, and with what.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};

use super::{at, foreign, live, record, stored};
use crate::{
    admin::list::World,
    core::{
        keys::{NODE, QUARANTINED, SNAPSHOT},
        names::NodeHash,
        object::{Document, LiveNode},
    },
};

fn queued(node: &str, rv: u32, is_quarantined: bool) -> Document {
    let reason = is_quarantined.then(|| (QUARANTINED.to_owned(), "bad-json".to_owned()));
    Document {
        name: format!("{}.{rv}", NodeHash::of(node)),
        labels: reason.into_iter().collect(),
        annotations: BTreeMap::from([(NODE.to_owned(), node.to_owned())]),
        ..Document::default()
    }
}

#[track_caller]
fn check(
    records: Vec<Document>,
    nodes: &[LiveNode],
    transactions: Vec<Document>,
    expected: &Expect,
) {
    let nodes = nodes.iter().map(|node| (node.name.clone(), node.clone())).collect();
    let entries = World { records, nodes, transactions }.entries();
    let lines = entries.iter().map(|entry| {
        format!(
            "{}: live {}, restored {}, labels {:?}, queued {}, quarantined {}, problem {:?}\n",
            entry.node,
            entry.is_live,
            entry.is_restored,
            entry.labels,
            entry.queued,
            entry.quarantined,
            entry.problem
        )
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn restored_means_the_live_incarnation_and_the_newest_labels() {
    let (a, b, c) = (live("a", ""), live("b", ""), live("c", ""));
    let given = record("b", 7, "x=1 y=2").given_to(&b, at(1));
    let outdated = record("c", 7, "x=1").given_to(&c, at(1));
    let outdated = outdated.replaced_by(super::snapshot("c", 9, "x=2"), at(2));
    check(
        vec![stored(&record("a", 7, "x=1")), stored(&given), stored(&outdated)],
        &[a, b, c],
        vec![],
        &expect![[r#"
            a: live true, restored false, labels Some(1), queued 0, quarantined 0, problem None
            b: live true, restored true, labels Some(2), queued 0, quarantined 0, problem None
            c: live true, restored false, labels Some(1), queued 0, quarantined 0, problem None
        "#]],
    );
}

#[test]
fn the_queue_counts_with_and_without_a_record_and_strangers_do_not() {
    check(
        vec![stored(&record("a", 7, "x=1")), foreign("kube-root-ca.crt")],
        &[live("new", "")],
        vec![
            queued("a", 8, false),
            queued("a", 9, true),
            queued("new", 10, false),
            foreign("kube-root-ca.crt"),
        ],
        &expect![[r#"
            a: live false, restored false, labels Some(1), queued 1, quarantined 1, problem None
            new: live true, restored false, labels None, queued 1, quarantined 0, problem None
        "#]],
    );
}

#[test]
fn a_record_that_cannot_be_read_is_told_as_such() {
    let mut broken = stored(&record("a", 7, "x=1"));
    broken.data.insert(SNAPSHOT.to_owned(), "{".to_owned());
    check(
        vec![broken],
        &[],
        vec![],
        &expect![[r#"
            a: live false, restored false, labels None, queued 0, quarantined 0, problem Some("`snapshot.json` cannot be read")
        "#]],
    );
}
