//! Which snapshots are kept, and what changed between them.

use expect_test::expect;

use super::{at, record, snapshot};
use crate::admin::history::History;

#[test]
fn snapshots_are_told_newest_first_with_what_changed() {
    let record = record("n", 5, "tier=silver old=1")
        .replaced_by(snapshot("n", 7, "tier=silver"), at(2))
        .replaced_by(snapshot("n", 12, "tier=gold"), at(3));
    let history = History::of(&record);
    assert_eq!(history.stored_at, Some(at(3)));
    let mut lines = String::new();
    for entry in &history.snapshots {
        lines += &format!("{}\n", entry.rv);
        for change in &entry.changes {
            lines += &format!("  {} {:?} {:?}\n", change.key, change.before, change.after);
        }
    }
    expect![[r#"
        12
          tier Some("silver") Some("gold")
        7
          old Some("1") None
        5
          old None Some("1")
          tier None Some("silver")
    "#]]
    .assert_eq(&lines);
}
