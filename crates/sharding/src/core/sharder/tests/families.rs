//! Children that go before their parent.

use super::*;
use crate::core::object::Controller;

pub(super) fn parent_kind() -> GroupKind {
    GroupKind::new("", "Secret")
}

pub(super) fn child_kind() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

pub(super) fn with_children(leaving: &[GroupKind]) -> Options {
    let mut options = options();
    let main = options.kinds.main.get_mut(&parent_kind()).unwrap();
    main.controlled.insert(child_kind());
    Options { leaving: leaving.iter().cloned().collect(), ..options }
}

pub(super) fn child(version: u32, shard: Option<&str>) -> Object {
    let mut child = object("c", version, shard);
    child.name.kind = child_kind();
    let (kind, uid) = (parent_kind(), Uid("x".to_owned()));
    child.controller = Some(Controller { kind, name: "x".to_owned(), uid });
    child
}

/// Answers the open read of an object.
#[track_caller]
fn read(stage: &mut Stage, found: Object) {
    let index = stage.open.iter().position(|it| matches!(it, Command::ReadObject { .. }));
    let command = stage.open.remove(index.expect("a read"));
    let Command::ReadObject { token, name } = command else { panic!() };
    assert_eq!(name, found.name);
    stage.answer(token, Answer::Object(Box::new(found)));
}

/// Takes the open request for children, once everything else is answered.
#[track_caller]
fn list_request(stage: &mut Stage) -> Token {
    let is_list = |command: &Command| matches!(command, Command::ListChildren { .. });
    let is_other = |command: &Command| is_routine(command) && !is_list(command);
    while let Some(index) = stage.open.iter().position(is_other) {
        let command = stage.open.remove(index);
        if let Some(event) = stage.routine(command) {
            stage.tell(event);
        }
    }
    let index = stage.open.iter().position(is_list);
    match stage.open.remove(index.expect("children are looked for")) {
        Command::ListChildren { token, .. } => token,
        _ => unreachable!(),
    }
}

/// A parent without an owner whose child is being sent ahead to `a`; the write of the child is open.
fn sending_ahead() -> Stage {
    let stage = sending_ahead_all(vec![child(5, None)]);
    assert_eq!(stage.labels(), [("c".to_owned(), shard("a"))], "not the parent yet");
    stage
}

/// The same with these children.
fn sending_ahead_all(children: Vec<Object>) -> Stage {
    let mut stage = Stage::settled(&["a"], vec![]);
    stage.sharder.reconfigure(with_children(&[]));
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    stage.answer_all();
    let parent = Box::new(object("x", 5, None));
    stage.tell(Event::Unassigned { object: parent, is_listed: true });
    let index = stage.open.iter().position(|it| matches!(it, Command::ReadObject { .. }));
    let Command::ReadObject { token, .. } = stage.open.remove(index.unwrap()) else { panic!() };
    let answer = Answer::Object(Box::new(object("x", 5, None)));
    stage.tell(Event::Answered { token, answer });
    let index = stage.open.iter().position(|it| matches!(it, Command::ListChildren { .. }));
    let Command::ListChildren { token, .. } = stage.open.remove(index.unwrap()) else { panic!() };
    stage.answer(token, Answer::Children(children));
    stage
}

/// The instance to which everything goes leaves, and `b` is there.
fn let_leave(stage: &mut Stage) {
    stage.renew(&["b"], 2);
    let left = Lease { holder: None, ..lease("a", 3) };
    stage.tell(Event::LeaseSeen(Box::new(left)));
}

/// Its next owner left while its child was on its way there, so its children were looked for once more.
/// What was found was from before the child had arrived: the parent went to where the child had been.
#[test]
fn a_parent_does_not_go_by_where_its_child_was() {
    let mut stage = sending_ahead_all(vec![child(5, Some("b"))]);
    let (token, _) = stage.label_request();
    let_leave(&mut stage);
    let list = list_request(&mut stage);
    stage.tell(Event::Answered { token, answer: Answer::Object(Box::new(child(6, Some("a")))) });
    let before = Answer::Children(vec![child(5, Some("b"))]);
    stage.tell(Event::Answered { token: list, answer: before });
    assert_eq!(stage.labels(), [], "not the parent yet");
    let list = list_request(&mut stage);
    let by_now = Answer::Children(vec![child(6, Some("a"))]);
    stage.tell(Event::Answered { token: list, answer: by_now });
    assert_eq!(stage.labels(), [("c".to_owned(), shard("b"))]);
}

/// A page showed a child where it had been before it was sent ahead. When that was where its parent was
/// to go after all, the child passed for being there already.
#[test]
fn a_child_does_not_pass_for_being_where_an_old_page_has_shown_it() {
    let other = |version, shard| {
        let child = child(version, shard);
        let name = ObjectName { name: "d".to_owned(), ..child.name };
        Object { name, uid: Uid("d".to_owned()), ..child }
    };
    let mut stage = sending_ahead_all(vec![child(5, Some("b")), other(5, Some("b"))]);
    let (token, name, _) = stage.write_request();
    assert_eq!(name, child(5, None).name);
    stage.tell(Event::Answered { token, answer: Answer::Object(Box::new(child(6, Some("a")))) });
    stage.controlled = vec![child(5, Some("b"))];
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    stage.controlled.clear();
    let (token, _) = stage.label_request();
    let_leave(&mut stage);
    let list = list_request(&mut stage);
    stage.tell(Event::Answered { token, answer: Answer::Object(Box::new(other(6, Some("a")))) });
    let by_now = || Answer::Children(vec![child(6, Some("a")), other(6, Some("a"))]);
    stage.tell(Event::Answered { token: list, answer: by_now() });
    let list = list_request(&mut stage);
    stage.tell(Event::Answered { token: list, answer: by_now() });
    read(&mut stage, child(6, Some("a")));
    assert!(stage.labels().contains(&("c".to_owned(), shard("b"))), "{:?}", stage.labels());
}

/// The write of a child was carried out after it had been given up, and the watch said so before it
/// was read again: its parent waited for it for ever.
#[test]
fn a_parent_does_not_wait_for_a_child_that_the_watch_has_seen_leave() {
    let mut stage = sending_ahead();
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Failed);
    stage.tell(Event::NotUnassigned(child(6, None).name));
    read(&mut stage, child(6, Some("a")));
    assert_eq!(stage.labels(), [("x".to_owned(), shard("a"))]);
}

#[test]
fn a_child_that_went_elsewhere_meanwhile_is_sent_on() {
    let mut stage = sending_ahead();
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Failed);
    stage.tell(Event::NotUnassigned(child(6, None).name));
    read(&mut stage, child(6, Some("b")));
    assert_eq!(stage.labels(), [("c".to_owned(), shard("a"))]);
}

/// Its child had been taken from it while it was dead; it came back, and gave the parent up in order.
/// Only what it still had was looked for, and the parent went before its child.
#[test]
fn a_child_that_was_taken_from_who_came_back_goes_before_its_parent() {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    stage.become_another(with_children(&[]), &[child(5, Some("a"))]);
    stage.open.clear();
    let_die(&mut stage);
    let (token, name, _) = stage.write_request();
    assert_eq!(name, child(5, None).name);
    stage.controlled = vec![child(6, Some("b"))];
    stage.open.clear();
    stage.answer(token, Answer::Object(Box::new(child(6, Some("b")))));
    assert_eq!(stage.sharder.whose_children(Some("a".parse().unwrap())), None, "with anybody");
    let b = Some("b".parse().unwrap());
    assert_eq!(stage.sharder.whose_children(b.clone()), b);
}

/// The table turned between a child of the dead and its parent, so that they were with two instances.
/// When the one that had the parent gave it up, only what it had itself was looked for.
#[test]
fn whoever_is_given_a_parent_of_the_dead_may_not_have_its_children() {
    for is_answer_lost in [false, true] {
        let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
        stage.become_another(with_children(&[]), &[child(5, Some("a"))]);
        stage.open.clear();
        let_die(&mut stage);
        let (token, _) = stage.label_request();
        stage.controlled = vec![child(6, Some("b"))];
        stage.answer(token, Answer::Object(Box::new(child(6, Some("b")))));
        let (mut token, name, change) = stage.write_request();
        assert_eq!((name, change), (object("x", 5, None).name, shard("b")));
        let b = Some("b".parse().unwrap());
        assert_eq!(stage.sharder.whose_children(b.clone()), b);
        if is_answer_lost {
            stage.open.clear();
            stage.tell(Event::Answered { token, answer: Answer::Failed });
            stage.pass(secs(1));
            token = stage.read_request();
        }
        let taken = Answer::Object(Box::new(object("x", 6, Some("b"))));
        stage.tell(Event::Answered { token, answer: taken });
        assert_eq!(stage.sharder.whose_children(b), None, "with anybody");
    }
}

/// A parent was being given to an instance that left meanwhile, and its child was taken from there
/// before the parent had arrived.
#[test]
fn a_child_is_not_taken_from_where_its_parent_is_on_its_way_to() {
    let mut stage = sending_ahead();
    let (token, _) = stage.label_request();
    stage.controlled = vec![child(6, Some("a"))];
    stage.answer(token, Answer::Object(Box::new(child(6, Some("a")))));
    let (arrival, name, _) = stage.write_request();
    assert_eq!(name, object("x", 5, None).name);
    let_leave(&mut stage);
    stage.answer_all();
    let (token, written) = stage.lease_request();
    let held = Lease { version: Version("31".to_owned()), ..written.unwrap() };
    stage.answer(token, Answer::Lease(Box::new(held)));
    assert_eq!(stage.labels(), [], "not yet");
    stage.objects = vec![object("x", 6, Some("a"))];
    stage.answer(arrival, Answer::Object(Box::new(object("x", 6, Some("a")))));
    assert_eq!(stage.labels(), [("c".to_owned(), shard("b"))]);
}

/// A watch that was behind told of an assignment of long ago: the parent was forgotten, and when the
/// watch had come to what it had been given up, it passed for a new object, without children.
#[test]
fn a_watch_that_is_behind_does_not_make_a_parent_forget_its_children() {
    let mut stage = sending_ahead();
    stage.tell(Event::NotUnassigned(object("x", 2, None).name));
    read(&mut stage, object("x", 5, None));
    assert_eq!(stage.labels(), [("c".to_owned(), shard("a"))], "not the parent yet");
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Object(Box::new(child(6, Some("a")))));
    assert_eq!(stage.labels(), [("x".to_owned(), shard("a"))]);
}
