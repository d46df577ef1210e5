//! What cannot be read leads to no write: poison, broken records, ConfigMaps of others.

use expect_test::{Expect, expect};
use labels::core::{
    decide::{decide, poisoned},
    keys::{MANAGED_BY, MANAGER, MARKER, SNAPSHOT},
    object::Document,
    policy::Policy,
    reading::Reading,
    record::Stored,
    settle::{Cause, settle},
    transaction::Transaction,
};

use crate::scene::{NODE, Scene, now, show};

/// A ConfigMap under the node's name, beside a live node and a deletion of another incarnation.
#[track_caller]
fn check_record(labels: &[(&str, &str)], data: &[(&str, &str)], expected: &Expect) {
    let owned = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let document = Document {
        name: NODE.to_owned(),
        labels: owned(labels),
        data: owned(data),
        ..Document::default()
    };
    let scene = Scene::parse("live uid=u2 rv=20 {a=1}\n deleted uid=u1 rv=10 {a=1}");
    let reading = Reading { stored: Stored::read(Some(&document)), live: scene.reading.live };
    let policy = Policy::default();
    assert!(settle(&reading, Cause::Resync, &policy, now()).commands.is_empty());
    let transaction = scene.transaction.expect("a deletion");
    expected.assert_eq(&show(&decide(&reading, &transaction, &policy, now())));
}

#[test]
fn a_configmap_of_somebody_else_is_never_touched() {
    check_record(
        &[],
        &[("ca.crt", "x")],
        &expect![[r#"
        unreadable
        quarantine name-clash
        event NameClash"#]],
    );
    check_record(
        &[],
        &[(SNAPSHOT, "{}")],
        &expect![[r#"
        unreadable
        quarantine name-clash
        event NameClash"#]],
    );
    check_record(
        &[(MANAGED_BY, "helm")],
        &[("a", "1")],
        &expect![[r#"
        unreadable
        quarantine name-clash
        event NameClash"#]],
    );
}

#[test]
fn a_broken_record_keeps_the_transactions() {
    let ours = [(MANAGED_BY, MANAGER)];
    check_record(
        &ours,
        &[],
        &expect![[r#"
        unreadable
        quarantine record-unreadable
        event Quarantined"#]],
    );
    check_record(
        &ours,
        &[(MARKER, "9"), (SNAPSHOT, "{")],
        &expect![[r#"
        unreadable
        quarantine record-unreadable
        event Quarantined"#]],
    );
    check_record(
        &ours,
        &[(MARKER, "x"), ("a", "1")],
        &expect![[r#"
        unreadable
        quarantine record-unreadable
        event Quarantined"#]],
    );
    check_record(
        &[],
        &[("label_version", "1")],
        &expect![[r#"
        unreadable
        quarantine record-unreadable
        event Quarantined"#]],
    );
}

#[test]
fn poison_is_put_aside() {
    let name = Scene::parse("added uid=u1 rv=10").transaction.unwrap().name;
    let poison = Transaction::decode(&name, &Document::default()).unwrap_err();
    expect![[r#"
        poison
        quarantine no-node
        event Quarantined"#]]
    .assert_eq(&show(&poisoned(&name, &poison)));
}
