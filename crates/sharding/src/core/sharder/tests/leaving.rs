//! Kinds that leave the ring: drained, then stripped, their children with them.

use super::families::{child, child_kind, parent_kind, with_children};
use super::*;

/// A ring that has settled and becomes another; the children are found when asked for.
fn becoming(options: Options, children: &[Object]) -> Stage {
    let mut stage = Stage::settled(&["a"], vec![object("x", 5, Some("a"))]);
    stage.become_another(options, children);
    stage
}

fn read_parent(stage: &mut Stage, parent: Object) {
    let index = stage.open.iter().position(|it| matches!(it, Command::ReadObject { .. }));
    let Command::ReadObject { token, name } = stage.open.remove(index.unwrap()) else { panic!() };
    assert_eq!(name.name, "x", "the child asks for its parent");
    stage.answer(token, Answer::Object(Box::new(parent)));
}

#[test]
fn a_kind_that_leaves_is_drained_and_then_left_alone() {
    let options = Options { leaving: [parent_kind()].into(), ..options() };
    let mut stage = becoming(options, &[]);
    let (token, change) = stage.label_request();
    assert!(matches!(change, LabelChange::Drain(_)), "{change:?}");
    let drained = object("x", 6, Some("a")).with(&change);
    stage.answer(token, Answer::Object(Box::new(drained)));
    let given_up = Box::new(object("x", 7, None));
    stage.tell(Event::Unassigned { object: given_up, is_listed: false });
    assert_eq!(stage.labels(), []);
    assert_eq!(stage.sharder.on_their_way(), 0);
}

/// Nobody has to be there to take what nobody is to have.
#[test]
fn what_the_last_instance_has_left_is_stripped_under_its_lease() {
    let mut stage = Stage::settled(&["a"], vec![object("x", 5, Some("a"))]);
    let released = Lease { holder: None, ..lease("a", 2) };
    stage.tell(Event::LeaseSeen(Box::new(released)));
    stage.answer_all();
    assert!(!stage.has_lease_request(), "it stays, for whoever comes");
    stage.sharder.reconfigure(Options { leaving: [parent_kind()].into(), ..options() });
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    stage.answer_all();
    let (token, written) = stage.lease_request();
    let held = Lease { version: Version("3".to_owned()), ..written.unwrap() };
    stage.answer(token, Answer::Lease(Box::new(held)));
    assert_eq!(stage.labels(), [("x".to_owned(), LabelChange::Clear)]);
}

#[test]
fn children_of_what_leaves_are_stripped_after_their_parent() {
    let mut stage = becoming(with_children(&[parent_kind()]), &[child(5, Some("a"))]);
    let (token, change) = stage.label_request();
    assert!(matches!(change, LabelChange::Drain(_)), "{change:?}");
    assert_eq!(stage.labels(), [], "not the child yet");
    let drained = object("x", 6, Some("a")).with(&change);
    stage.answer(token, Answer::Object(Box::new(drained)));
    let given_up = Box::new(object("x", 7, None));
    stage.tell(Event::Unassigned { object: given_up, is_listed: false });
    read_parent(&mut stage, object("x", 7, None));
    assert_eq!(stage.labels(), [("c".to_owned(), LabelChange::Clear)]);
}

#[test]
fn a_controlled_kind_that_leaves_is_stripped_while_its_parents_stay() {
    let stage = becoming(with_children(&[child_kind()]), &[child(5, Some("a"))]);
    assert_eq!(stage.labels(), [("c".to_owned(), LabelChange::Clear)]);
}

#[test]
fn what_a_standby_knows_outlives_a_change_of_the_ring() {
    let mut stage = Stage::settled(&["a"], vec![]);
    stage.pass(secs(10));
    stage.sharder.reconfigure(options());
    let members = stage.sharder.members(at(stage.now));
    assert_eq!(members[0].since, Moment(Duration::ZERO), "its silence counts on");
}
