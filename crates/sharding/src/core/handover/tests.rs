use expect_test::{Expect, expect};

use super::*;
use crate::core::object::{GroupKind, ObjectName, Uid, Version};

const DEADLINE: i64 = 1_700_000_030;

fn id(name: &str) -> InstanceId {
    name.parse().unwrap()
}

/// `-`, `a`, `a+drain`, `a+true`.
fn object(labels: &str) -> Object {
    let (shard, drain) = labels.split_once('+').map_or((labels, None), |(a, b)| (a, Some(b)));
    let name = ObjectName {
        kind: GroupKind::new("", "Secret"),
        namespace: Some("shop".to_owned()),
        name: "x".to_owned(),
    };
    Object {
        name,
        uid: Uid("u".to_owned()),
        version: Version("1".to_owned()),
        shard: (shard != "-").then(|| id(shard)),
        drain: drain.map(|drain| match drain {
            "drain" => Drain::Until(u64::try_from(DEADLINE).unwrap()),
            _ => Drain::Unreadable,
        }),
        controller: None,
    }
}

#[derive(Clone, Copy)]
struct Setting {
    force: Force,
    is_harmless: bool,
    now: Timestamp,
}

fn early() -> Setting {
    let now = Timestamp::from_second(DEADLINE - 10).unwrap();
    Setting { force: Force::WhenSafe, is_harmless: false, now }
}

fn verdict(labels: &str, target: Target<'_>, owner: Option<Owner>, setting: Setting) -> Verdict {
    let Setting { force, is_harmless, now } = setting;
    let object = object(labels);
    judge(&Question { object: &object, target, owner, force, is_harmless, now })
}

fn told(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Settled => "settled".to_owned(),
        Verdict::Wait(Wait::Acknowledgement { .. }) => "wait: Acknowledgement".to_owned(),
        Verdict::Wait(wait) => format!("wait: {wait:?}"),
        Verdict::Write(Step::Assign(to)) => format!("assign to {to}"),
        Verdict::Write(Step::Follow(to)) => format!("follow to {to}"),
        Verdict::Write(Step::Force(to)) => {
            format!("force to {}", to.as_ref().map_or("nobody", InstanceId::as_str))
        }
        Verdict::Write(Step::TakeOver(to)) => {
            format!("take over to {}", to.as_ref().map_or("nobody", InstanceId::as_str))
        }
        Verdict::Write(step) => format!("{step:?}").to_lowercase(),
    }
}

/// Every owner's state against every target, for the labels.
#[track_caller]
fn check(labels: &str, setting: Setting, expected: &Expect) {
    let (a, b) = (id("a"), id("b"));
    let targets = [
        ("a", Target::Instance { id: &a, is_ready: true }),
        ("b", Target::Instance { id: &b, is_ready: true }),
        ("b, not ready", Target::Instance { id: &b, is_ready: false }),
        ("no instance", Target::NoInstance),
        ("outside", Target::Outside),
    ];
    let owners = if labels.starts_with('-') {
        vec![("nobody", None)]
    } else {
        vec![
            ("ready", Some(Owner::Ready)),
            ("silent", Some(Owner::Silent)),
            ("gone", Some(Owner::Gone { is_held: false })),
            ("held", Some(Owner::Gone { is_held: true })),
        ]
    };
    let mut lines = String::new();
    for (owner_word, owner) in owners {
        for (target_word, target) in targets {
            let verdict = told(&verdict(labels, target, owner, setting));
            lines.push_str(&format!("{owner_word:7} → {target_word:13} {verdict}\n"));
        }
    }
    expected.assert_eq(&lines);
}

#[test]
fn objects_of_nobody() {
    check(
        "-",
        early(),
        &expect![[r#"
        nobody  → a             assign to a
        nobody  → b             assign to b
        nobody  → b, not ready  wait: Target
        nobody  → no instance   wait: Instance
        nobody  → outside       settled
    "#]],
    );
    check(
        "-+drain",
        early(),
        &expect![[r#"
        nobody  → a             assign to a
        nobody  → b             assign to b
        nobody  → b, not ready  wait: Target
        nobody  → no instance   wait: Instance
        nobody  → outside       tidy
    "#]],
    );
}

#[test]
fn objects_of_an_instance() {
    check(
        "a",
        early(),
        &expect![[r#"
        ready   → a             settled
        ready   → b             drain
        ready   → b, not ready  wait: Target
        ready   → no instance   wait: Instance
        ready   → outside       drain
        silent  → a             settled
        silent  → b             wait: Owner
        silent  → b, not ready  wait: Owner
        silent  → no instance   wait: Owner
        silent  → outside       wait: Owner
        gone    → a             wait: Target
        gone    → b             wait: Hold
        gone    → b, not ready  wait: Target
        gone    → no instance   wait: Instance
        gone    → outside       wait: Hold
        held    → a             wait: Target
        held    → b             take over to b
        held    → b, not ready  wait: Target
        held    → no instance   wait: Instance
        held    → outside       take over to nobody
    "#]],
    );
}

#[test]
fn objects_that_are_draining() {
    check(
        "a+drain",
        early(),
        &expect![[r#"
        ready   → a             undrain
        ready   → b             wait: Acknowledgement
        ready   → b, not ready  wait: Target
        ready   → no instance   undrain
        ready   → outside       wait: Acknowledgement
        silent  → a             undrain
        silent  → b             wait: Owner
        silent  → b, not ready  wait: Owner
        silent  → no instance   wait: Owner
        silent  → outside       wait: Owner
        gone    → a             wait: Target
        gone    → b             wait: Hold
        gone    → b, not ready  wait: Target
        gone    → no instance   wait: Instance
        gone    → outside       wait: Hold
        held    → a             wait: Target
        held    → b             take over to b
        held    → b, not ready  wait: Target
        held    → no instance   wait: Instance
        held    → outside       take over to nobody
    "#]],
    );
}

#[test]
fn a_drain_label_that_is_no_time_is_written_anew() {
    let b = id("b");
    let target = Target::Instance { id: &b, is_ready: true };
    let found = verdict("a+true", target, Some(Owner::Ready), early());
    assert_eq!(found, Verdict::Write(Step::Drain));
}

#[test]
fn nothing_is_forced_before_its_time_or_without_leave() {
    let b = id("b");
    let ready = Target::Instance { id: &b, is_ready: true };
    let at = |millis: i64| Timestamp::from_millisecond(DEADLINE * 1000 + millis).unwrap();
    for (force, is_harmless, may) in [
        (Force::WhenSafe, false, false),
        (Force::WhenSafe, true, true),
        (Force::Always, false, true),
        (Force::Never, true, false),
    ] {
        let found = |millis, target| {
            let setting = Setting { force, is_harmless, now: at(millis) };
            told(&verdict("a+drain", target, Some(Owner::Ready), setting))
        };
        assert_eq!(found(-1, ready), "wait: Acknowledgement");
        for millis in [0, 1] {
            let (forced, stripped) = (found(millis, ready), found(millis, Target::Outside));
            assert_eq!(forced, if may { "force to b" } else { "wait: Overdue" });
            assert_eq!(stripped, if may { "force to nobody" } else { "wait: Overdue" });
        }
    }
}

#[test]
fn deadlines_are_rounded_up() {
    let timeout = Duration::from_secs(30);
    for (millis, expected) in [(0, 30), (1, 31), (999, 31), (1000, 31)] {
        let now = Timestamp::from_millisecond(millis).unwrap();
        let change = Step::Drain.change(now, timeout);
        assert_eq!(change, LabelChange::Drain(Drain::Until(expected)), "{millis}");
    }
}

#[test]
fn children_go_where_their_parents_are() {
    for (child, parent, is_ready, expected) in [
        ("-", None, true, "settled"),
        ("-", Some("-"), true, "wait: Parent"),
        ("-", Some("a"), true, "assign to a"),
        ("-", Some("a"), false, "wait: Target"),
        ("-", Some("a+drain"), true, "wait: Parent"),
        ("a", Some("a"), true, "settled"),
        ("a", Some("a+drain"), true, "settled"),
        ("a", Some("-"), true, "wait: Parent"),
        ("a", Some("b"), true, "follow to b"),
        ("a", Some("b"), false, "wait: Parent"),
        ("a", Some("b+drain"), true, "wait: Parent"),
        ("a", None, true, "settled"),
    ] {
        let (child_object, parent_object) = (object(child), parent.map(object));
        let found = judge_child(&child_object, parent_object.as_ref(), |_| is_ready);
        assert_eq!(told(&found), expected, "{child} below {parent:?}");
    }
}
