//! `added`: A1 to A3.

use expect_test::expect;

use crate::scene::check;

#[test]
fn a1_the_added_node_is_not_there() {
    let record = "record rv=10 uid=u1 {a=1}";
    check(
        &format!("{record}\n added uid=u2 rv=20"),
        &expect![[r#"
        A1
        delete"#]],
    );
    check(
        &format!("{record}\n live uid=u3 rv=30\n added uid=u2 rv=20"),
        &expect![[r#"
        A1
        delete"#]],
    );
    check(
        &format!("{record}\n live uid=u2 rv=30 terminating\n added uid=u2 rv=20"),
        &expect![[r#"
            A1
            delete"#]],
    );
}

#[test]
fn a2_nothing_is_stored() {
    check(
        "live uid=u2 rv=20 {a=1}\n added uid=u2 rv=20",
        &expect![[r#"
        A2
        delete"#]],
    );
}

#[test]
fn a3_settles() {
    let record = "record rv=10 uid=u1 {a=1}";
    check(
        &format!("{record}\n live uid=u2 rv=20\n added uid=u2 rv=20"),
        &expect![[r#"
        A3, S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        delete
        event LabelsRestored"#]],
    );
    check(
        &format!("{record}\n live uid=u2 rv=20 marker=10\n added uid=u2 rv=20"),
        &expect![[r#"
            A3, S3
            mark u2:10
            delete"#]],
    );
}

#[test]
fn without_uid_the_live_node_is_meant() {
    let record = "record rv=10 uid=u1 {a=1}";
    check(
        &format!("{record}\n live uid=u2 rv=20\n added rv=19"),
        &expect![[r#"
        A3, S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        delete
        event LabelsRestored"#]],
    );
    check(
        &format!("{record}\n added rv=19"),
        &expect![[r#"
        A1
        delete"#]],
    );
}

#[test]
fn a_record_by_hand_applies_to_a_node_that_is_added() {
    check(
        "record rv=1 {a=1}\n live uid=u2 rv=20\n added uid=u2 rv=20",
        &expect![[r#"
        A3, S6
        patch u2@20 a=1 labels_restored=1 annotation=1
        mark u2:1
        delete
        event LabelsRestored"#]],
    );
}
