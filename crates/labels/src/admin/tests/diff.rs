//! What a restore would change, told key by key.

use expect_test::{Expect, expect};

use super::{live, marked, snapshot};
use crate::{admin::diff::Diff, core::policy::Policy};

fn policy(rules: &[&str]) -> Policy {
    Policy { rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Policy::default() }
}

#[track_caller]
fn check(found: &str, kept: &str, rules: &[&str], expected: &Expect) {
    let node = marked(live("n", found), "7");
    let diff = Diff::of(&node, &snapshot("n", 9, kept), &policy(rules));
    let dash = || "-".to_owned();
    let lines = diff.keys.iter().map(|key| {
        let (live, stored) = (key.live.clone(), key.stored.clone());
        let (live, stored) = (live.unwrap_or_else(dash), stored.unwrap_or_else(dash));
        format!("{} {} ({}): {live} -> {stored}\n", key.action.as_str(), key.key, key.class)
    });
    let verdict = if diff.is_empty() { "same\n" } else { "differs\n" };
    expected.assert_eq(&(lines.collect::<String>() + verdict));
}

#[test]
fn every_key_that_differs_is_told_with_who_decides() {
    check(
        "same=1 tier=silver extra=1 topology.kubernetes.io/zone=b",
        "same=1 tier=gold rack=4 topology.kubernetes.io/zone=a",
        &[],
        &expect![[r#"
            remove extra (stored): 1 -> -
            add rack (stored): - -> 4
            change tier (stored): silver -> gold
            keep topology.kubernetes.io/zone (prefer-live): b -> a
            differs
        "#]],
    );
}

#[test]
fn what_stays_as_it_is_makes_no_difference() {
    check(
        "tier=silver",
        "tier=gold a/b/c=1",
        &["tier=live"],
        &expect![[r#"
            illegal a/b/c (stored): - -> 1
            keep tier (live): silver -> gold
            same
        "#]],
    );
    check("a=1", "a=1", &[], &expect!["same\n"]);
}
