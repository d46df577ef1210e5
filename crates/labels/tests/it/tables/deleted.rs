//! `deleted`: D0 to D5.

use expect_test::expect;

use crate::scene::check;

#[test]
fn d0_the_deleted_node_lives() {
    check(
        "live uid=u1 rv=30\n deleted uid=u1 rv=20 {a=1}",
        &expect![[r#"
        D0
        delete
        event DeleteContradicted"#]],
    );
    check(
        "live uid=u1 rv=30 terminating\n deleted uid=u1 rv=20 {a=1}",
        &expect![[r#"
        D1
        store 20 u1 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        "live uid=u2 rv=30\n deleted uid=u1 rv=20 {a=1}",
        &expect![[r#"
        D1
        store 20 u1 {a=1}
        delete
        event LabelsStored"#]],
    );
}

#[test]
fn d1_there_is_no_record() {
    check(
        "deleted uid=u1 rv=20 marker=7 {a=1 team/tier=gold}",
        &expect![[r#"
        D1
        store 20 u1 {a=1 team/tier=gold}
        delete
        event LabelsStored"#]],
    );
    check(
        "deleted uid=u1 rv=20",
        &expect![[r#"
        D1
        store 20 u1 {}
        delete
        event LabelsStored"#]],
    );
}

/// A record that is too old to be restored must not keep newer labels out either.
#[test]
fn d1_the_record_is_past_its_retention() {
    let old = "record rv=10 uid=u1 at=43201 {a=1}";
    check(
        &format!("{old}\n deleted uid=u2 rv=20 {{b=2}}"),
        &expect![[r#"
        D1
        store 20 u2 {b=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{old}\n deleted uid=u2 rv=20 marker=x {{b=2}}"),
        &expect![[r#"
        D1
        store 20 u2 {b=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{old}\n deleted uid=u2 rv=9 {{b=2}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 9 {b=2}
        delete
        event LateDelete"#]],
    );
    let just_not = "record rv=10 uid=u1 at=43200 {a=1}";
    check(
        &format!("{just_not}\n deleted uid=u2 rv=20 {{b=2}}"),
        &expect![[r#"
        D5
        delete"#]],
    );
}

#[test]
fn d2_a_later_word_on_the_stored_incarnation() {
    let record = "record rv=10 uid=u1 given=u2:10 {a=1}";
    check(
        &format!("{record}\n deleted uid=u1 rv=11 {{a=2}}"),
        &expect![[r#"
        D2
        store 11 u1 {a=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u1 rv=10 {{a=2}}"),
        &expect![[r#"
        D2
        delete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u1 rv=9 {{a=2}}"),
        &expect![[r#"
        D2
        delete"#]],
    );
}

/// The first word on u2 was amended from snapshot 5 to 8; the second needs it too.
#[test]
fn d2_a_later_word_is_amended_like_the_first() {
    let record = "record rv=10 uid=u2 marker=8 {a=2}
                  past rv=8 uid=u1 {a=2}
                  past rv=5 uid=u1 {a=1}";
    check(
        &format!("{record}\n deleted uid=u2 rv=12 marker=5 {{a=1 b=1}}"),
        &expect![[r#"
        D2
        store 12 u2 {a=2 b=1}, past 10 {a=2}, past 8 {a=2}, past 5 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=12 marker=8 {{a=1 b=1}}"),
        &expect![[r#"
        D2
        store 12 u2 {a=1 b=1}, past 10 {a=2}, past 8 {a=2}, past 5 {a=1}
        delete
        event LabelsStored"#]],
    );
}

#[test]
fn d3_the_record_was_given_to_it() {
    let record = "record rv=10 uid=u1 given=u2:10@15 {a=1}";
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=10 {{a=2}}"),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 {{a=2}}"),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=forged {{a=2}}"),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u3 rv=20 {{a=2}}"),
        &expect![[r#"
        D5
        delete"#]],
    );
}

/// A checkpoint taken before the restore has none of the restored labels.
#[test]
fn d3_but_the_snapshot_is_from_before_the_restore() {
    let record = "record rv=10 uid=u1 given=u2:10@15 {a=1}";
    check(
        &format!("{record}\n deleted uid=u2 rv=16 {{b=1}}"),
        &expect![[r#"
        D5
        delete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=17 {{b=1}}"),
        &expect![[r#"
        D3
        store 17 u2 {b=1}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=16 marker=10 {{b=1}}"),
        &expect![[r#"
        D3
        store 16 u2 {b=1}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
}

/// The crash between patch and mark leaves only the marker.
#[test]
fn d3_the_marker_names_the_record_or_its_past() {
    let record = "record rv=10 uid=u1 {a=1}
                  past rv=5 uid=u0 {a=0}";
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=10 {{a=2}}"),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 10 {a=1}, past 5 {a=0}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=5 {{a=2}}"),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 10 {a=1}, past 5 {a=0}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=6 {{a=2}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 20 {a=2}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=9 marker=5 {{a=2}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 9 {a=2}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
}

/// u2 was restored from snapshot 5, then a late word on u1 became snapshot 10.
#[test]
fn d3_amends_what_was_restored_from_an_older_snapshot() {
    let record = "record rv=10 uid=u1 given=u2:5@15 {same=x changed=new added=new edited=new}
                  past rv=5 uid=u1 {same=x changed=old gone=old edited=old}";
    let labels = "{same=x changed=old gone=old edited=mine own=mine}";
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=5 {labels}"),
        &expect![[r#"
        D3
        store 20 u2 {added=new changed=new edited=mine own=mine same=x}, past 10 {added=new changed=new edited=new same=x}, past 5 {changed=old edited=old gone=old same=x}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 {labels}"),
        &expect![[r#"
        D3
        store 20 u2 {added=new changed=new edited=mine own=mine same=x}, past 10 {added=new changed=new edited=new same=x}, past 5 {changed=old edited=old gone=old same=x}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=10 {labels}"),
        &expect![[r#"
        D3
        store 20 u2 {changed=old edited=mine gone=old own=mine same=x}, past 10 {added=new changed=new edited=new same=x}, past 5 {changed=old edited=old gone=old same=x}
        delete
        event LabelsStored"#]],
    );
}

/// Versions went back within the ten minutes: u2 has lower ones, but it was given this record.
#[test]
fn d3_what_this_very_record_was_given_to_is_later_than_it() {
    let deleted = "deleted uid=u2 rv=8 {a=2}";
    check(
        &format!("record rv=10 uid=u1 given=u2:10@5 {{a=1}}\n {deleted}"),
        &expect![[r#"
        D3
        store 8 u2 {a=2}, past 10 {a=1}
        delete
        event LabelsStored
        event ResourceVersionWentBack"#]],
    );
    check(
        &format!("record rv=10 uid=u3 given=u2:6@5 {{a=1}}\n {deleted}"),
        &expect![[r#"
        D4
        store 10 u3 {a=1}, past 8 {a=2}
        delete
        event LateDelete"#]],
    );
}

#[test]
fn d4_too_late_or_of_unknown_origin() {
    let record = "record rv=10 uid=u1 {a=1}
                  past rv=5 uid=u0 {a=0}";
    check(
        &format!("{record}\n deleted uid=u2 rv=10 {{b=1}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 10 {b=1}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=7 {{b=1}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 7 {b=1}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=3 {{b=1}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 5 {a=0}, past 3 {b=1}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 marker=mine {{b=1}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 20 {b=1}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
}

#[test]
fn d4_what_is_known_is_not_kept_twice() {
    let record = "record rv=10 uid=u1 {a=1}
                  past rv=5 uid=u0 {a=0}";
    check(
        &format!("{record}\n deleted uid=u2 rv=7 {{a=1}}"),
        &expect![[r#"
        D4
        delete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=7 {{a=0}}"),
        &expect![[r#"
        D4
        delete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u0 rv=5 {{b=1}}"),
        &expect![[r#"
        D4
        delete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u0 rv=6 {{b=1}}"),
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 6 {b=1}, past 5 {a=0}
        delete
        event LateDelete"#]],
    );
}

#[test]
fn d5_never_restored() {
    check(
        "record rv=10 uid=u1 {a=1}\n deleted uid=u2 rv=20",
        &expect![[r#"
        D5
        delete"#]],
    );
    check(
        "record rv=10 uid=u1 {a=1}\n deleted uid=u2 rv=10",
        &expect![[r#"
        D4
        store 10 u1 {a=1}, past 10 {}
        delete
        event LateDelete"#]],
    );
}

/// An earlier implementation did not write down whose labels they were.
#[test]
fn without_uid_the_marker_decides() {
    let record = "record rv=10 {a=1}";
    check(
        "deleted rv=20 {a=2}",
        &expect![[r#"
        D1
        store 20 - {a=2}
        delete
        event LabelsStored"#]],
    );
    check(
        "live uid=u2 rv=30\n deleted rv=20 {a=2}",
        &expect![[r#"
        D1
        store 20 - {a=2}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted rv=20 marker=10 {{a=2}}"),
        &expect![[r#"
        D3
        store 20 - {a=2}, past 10 {a=1}
        delete
        event LabelsStored"#]],
    );
    check(
        &format!("{record}\n deleted rv=10 {{a=2}}"),
        &expect![[r#"
        D4
        store 10 - {a=1}, past 10 {a=2}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted rv=20 {{a=2}}"),
        &expect![[r#"
        D5
        delete"#]],
    );
}

#[test]
fn epoch_a_node_much_younger_than_the_record_is_later() {
    let record = "record rv=1000 uid=u1 at=60 {a=1}";
    let deleted = |created: u32| {
        format!("{record}\n deleted uid=u2 rv=20 marker=1000 created={created} {{a=2}}")
    };
    check(
        &deleted(49),
        &expect![[r#"
        D3
        store 20 u2 {a=2}, past 1000 {a=1}
        delete
        event LabelsStored
        event ResourceVersionWentBack"#]],
    );
    check(
        &deleted(50),
        &expect![[r#"
        D4
        store 1000 u1 {a=1}, past 20 {a=2}
        delete
        event LateDelete"#]],
    );
    check(
        &format!("{record}\n deleted uid=u2 rv=20 created=49"),
        &expect![[r#"
        D5
        delete
        event ResourceVersionWentBack"#]],
    );
    check(
        &format!("{record}\n deleted uid=u1 rv=20 created=49 {{a=2}}"),
        &expect![[r#"
        D2
        store 20 u1 {a=2}, past 1000 {a=1}
        delete
        event LabelsStored
        event ResourceVersionWentBack"#]],
    );
}
