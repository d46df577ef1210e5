//! *Settle*: S1 to S6, and records that did not come from a deletion.

use expect_test::{Expect, expect};
use labels::core::{
    command::Row,
    settle::{Cause, settle},
};

use crate::scene::{Scene, check_settle, now};

#[track_caller]
fn check(text: &str, expected: &Expect) {
    check_settle(Cause::Queue, text, expected);
}

#[test]
fn s1_nothing_to_settle() {
    check("record rv=10 uid=u1 {a=1}", &expect!["S1"]);
    check("live uid=u2 rv=20", &expect!["S1"]);
    check("record rv=10 uid=u1 {a=1}\n live uid=u2 rv=20 terminating", &expect!["S1"]);
}

#[test]
fn s2_done() {
    let live = "live uid=u2 rv=20 {a=edited}";
    check(&format!("record rv=10 uid=u1 given=u2:10 {{a=1}}\n {live}"), &expect!["S2"]);
    check(
        &format!("record rv=10 uid=u1 given=u3:10 {{a=1}}\n {live}"),
        &expect![[r#"
        S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn s3_patched_but_not_marked() {
    let record = "record rv=10 uid=u1 {a=1}";
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=10 {{a=edited}}"),
        &expect![[r#"
        S3
        mark u2:10"#]],
    );
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=9 {{a=edited}}"),
        &expect![[r#"
        S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn s4_amends_what_has_an_older_snapshot() {
    let record = "record rv=10 uid=u1 given=u2:5 {a=new b=new}
                  past rv=5 uid=u1 {a=old b=old}";
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=5 {{a=old b=mine}}"),
        &expect![[r#"
        S4
        patch u2@20 a=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
    check(
        &format!("{record}\n live uid=u2 rv=20 {{a=old b=mine}}"),
        &expect![[r#"
        S4
        patch u2@20 a=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
    let unmarked = record.replace("given=u2:5", "");
    check(
        &format!("{unmarked}\n live uid=u2 rv=20 marker=5 {{a=old b=mine}}"),
        &expect![[r#"
        S4
        patch u2@20 a=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
    check(
        &format!("{unmarked}\n live uid=u2 rv=20 marker=6 {{a=old b=mine}}"),
        &expect![[r#"
        S6
        patch u2@20 a=new b=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

/// The node was amended to 8 and nobody marked the record before it was replaced once more.
#[test]
fn s4_starts_from_the_newer_of_mark_and_marker() {
    let past = "past rv=8 uid=u1 {a=8}
                past rv=5 uid=u1 {a=5}";
    let record = format!("record rv=10 uid=u1 given=u2:5 {{a=10}}\n {past}");
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=8 {{a=8}}"),
        &expect![[r#"
        S4
        patch u2@20 a=10 labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
    let record = format!("record rv=10 uid=u1 given=u2:8 {{a=10}}\n {past}");
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=5 {{a=8}}"),
        &expect![[r#"
        S4
        patch u2@20 a=10 labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
}

#[test]
fn s4_only_tells_when_the_base_is_forgotten() {
    let record = "record rv=10 uid=u1 given=u2:5 {a=new}";
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=5 {{a=old}}"),
        &expect![[r#"
        S4
        event RestoreSkipped"#]],
    );
}

#[test]
fn s5_too_old() {
    let live = "live uid=u2 rv=20";
    check(
        &format!("record rv=10 uid=u1 at=43201 {{a=1}}\n {live}"),
        &expect![[r#"
        S5
        event RestoreSkipped"#]],
    );
    check(
        &format!("record rv=10 uid=u1 at=43200 {{a=1}}\n {live}"),
        &expect![[r#"
        S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    let amended = "record rv=10 uid=u1 at=43201 given=u2:5 {a=1}\n past rv=5 uid=u1";
    check(
        &format!("{amended}\n {live}"),
        &expect![[r#"
        S4
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
}

#[test]
fn s6_restores() {
    check(
        "record rv=10 uid=u1 {a=1}\n live uid=u2 rv=20 {a=0 b=1}",
        &expect![[r#"
        S6
        patch u2@20 a=1 -b labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    check(
        "record rv=10 uid=u1\n live uid=u2 rv=20 {b=1}",
        &expect![[r#"
        S6
        patch u2@20 -b labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

/// Else a first start would undo months of edits.
#[test]
fn adoption_a_record_by_hand_beside_a_live_node() {
    let scene = "record rv=1 {a=1}\n live uid=u2 rv=20 {a=edited}";
    check_settle(Cause::Queue, scene, &expect!["adoption"]);
    check_settle(
        Cause::Resync,
        scene,
        &expect![[r#"
        adoption
        mark u2:1"#]],
    );
    check_settle(
        Cause::Added,
        scene,
        &expect![[r#"
        S6
        patch u2@20 a=1 labels_restored=1 annotation=1
        mark u2:1
        event LabelsRestored"#]],
    );
    let marked = "record rv=1 given=u2:1 {a=1}\n live uid=u2 rv=20 {a=edited}";
    check_settle(Cause::Resync, marked, &expect!["S2"]);
}

#[test]
fn causes_differ_in_nothing_else() {
    let scene = Scene::parse("record rv=10 uid=u1 {a=1}\n live uid=u2 rv=20");
    let decided = |cause| settle(&scene.reading, cause, &scene.policy, now());
    assert_eq!(decided(Cause::Queue).row, Row::S6);
    assert_eq!(decided(Cause::Queue), decided(Cause::Added));
    assert_eq!(decided(Cause::Queue), decided(Cause::Resync));
}
