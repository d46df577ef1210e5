use expect_test::{Expect, expect};

use super::*;
use crate::core::key::{KeyMode, MainKind};
use crate::core::object::{Controller, GroupKind, ObjectName, Uid, Version};
use crate::core::partition::{Load, Share, Slots};

fn id(name: &str) -> InstanceId {
    name.parse().unwrap()
}

fn kinds() -> Kinds {
    let controlled = [GroupKind::new("", "ConfigMap")].into();
    let main = MainKind { key: KeyMode::Own, is_namespaced: true, controlled };
    Kinds { main: [(GroupKind::new("", "Secret"), main)].into(), ..Kinds::default() }
}

fn table() -> Table {
    let share = |name| Share { id: id(name), weight: 100 };
    Table::Slots(Slots::empty(64).unwrap().with_members(&[share("b")], &Load::unknown()))
}

fn object(kind: &str, shard: Option<&str>, drain: Option<Drain>) -> Object {
    let name = ObjectName {
        kind: GroupKind::new("", kind),
        namespace: Some("shop".to_owned()),
        name: "token".to_owned(),
    };
    let controller = (kind == "ConfigMap").then(|| Controller {
        kind: GroupKind::new("", "Secret"),
        name: "token".to_owned(),
        uid: Uid("p".to_owned()),
    });
    let (uid, version) = (Uid("u".to_owned()), Version("1".to_owned()));
    Object { name, uid, version, shard: shard.map(id), drain, controller }
}

#[track_caller]
fn check(object: &Object, parent: Option<&Object>, states: &[(&str, State)], expected: &Expect) {
    let states = states.iter().map(|(name, state)| (id(name), *state)).collect();
    let explanation = explain(&Scene {
        object,
        parent,
        kinds: &kinds(),
        table: Some(&table()),
        states: &states,
        is_selected: true,
        force: Force::WhenSafe,
        is_fenced: false,
        now: Timestamp::from_second(1_700_000_000).unwrap(),
    });
    expected.assert_eq(&explanation.to_string());
}

#[test]
fn what_waits_says_for_what() {
    let ready = [("a", State::Ready), ("b", State::Ready)];
    check(
        &object("Secret", None, None),
        None,
        &[("b", State::Unknown)],
        &expect![[r#"
        key          /Secret/shop/token
        slot         20
        belongs to   b
        label        none
        waits for    the instance it belongs to, to be ready
    "#]],
    );
    check(
        &object("Secret", Some("a"), Some(Drain::Until(1_700_000_012))),
        None,
        &ready,
        &expect![[r#"
        key          /Secret/shop/token
        slot         20
        belongs to   b
        label        a (ready)
        draining     12 s left
        waits for    its owner to give it up
    "#]],
    );
    check(
        &object("Secret", Some("a"), Some(Drain::Until(1_600_000_000))),
        None,
        &ready,
        &expect![[r#"
        key          /Secret/shop/token
        slot         20
        belongs to   b
        label        a (ready)
        draining     overdue
        waits for    its owner to give it up; it is overdue and not safe to take
    "#]],
    );
    check(
        &object("Secret", Some("gone"), None),
        None,
        &ready,
        &expect![[r#"
        key          /Secret/shop/token
        slot         20
        belongs to   b
        label        gone (no Lease)
        waits for    its silent owner to return or be declared dead
    "#]],
    );
    check(
        &object("Secret", Some("b"), None),
        None,
        &ready,
        &expect![[r#"
        key          /Secret/shop/token
        slot         20
        belongs to   b
        label        b (ready)
        waits for    nothing
    "#]],
    );
}

#[test]
fn children_are_explained_by_their_parents() {
    let ready = [("a", State::Ready), ("b", State::Ready)];
    let parent = object("Secret", Some("a"), Some(Drain::Until(1_700_000_012)));
    check(
        &object("ConfigMap", None, None),
        Some(&parent),
        &ready,
        &expect![[r#"
        key          /Secret/shop/token
        counts as    /Secret/shop/token
        slot         20
        belongs to   b
        label        none
        waits for    its parent to settle
    "#]],
    );
    let stranger = Object { controller: None, ..object("ConfigMap", None, None) };
    check(
        &stranger,
        None,
        &ready,
        &expect![[r#"
        waits for    nothing: it does not belong to the ring
    "#]],
    );
}
