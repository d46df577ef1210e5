//! Ids for which there can be no Lease: their namespace is gone, or they are no names; and Leases that
//! another ring has.

use super::*;
use crate::core::membership::State;

fn state(stage: &Stage, id: &str) -> Option<State> {
    stage.sharder.roster.state(&InstanceId::from_label(id), at(stage.now))
}

/// `a` had `x`, and its Lease has vanished so long ago that one is to be created for it.
fn with_vanished() -> Stage {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    stage.tell(Event::LeaseDeleted(Box::new(lease("a", 100))));
    stage.pass(secs(14));
    stage.renew(&["b"], 20);
    stage.answer_all();
    assert!(!stage.has_lease_request());
    stage.pass(secs(1));
    stage
}

/// The server answered that there was no such namespace, and was asked again at once, for ever; what
/// the instances had had stayed with them, and kept a deleted Ring from going.
#[test]
fn the_objects_of_those_whose_namespace_is_gone_are_moved() {
    let mut stage = with_vanished();
    let (token, written) = stage.lease_request();
    assert_eq!(written.expect("one is created").namespace, "shop");
    stage.answer(token, Answer::Gone);
    assert!(!stage.has_lease_request(), "it is not asked for again at once");
    assert_eq!(state(&stage, "a"), Some(State::Dead));
    assert_eq!(stage.labels(), [("x".to_owned(), shard("b"))]);
    let (token, _) = stage.label_request();
    stage.objects = vec![object("x", 6, Some("b"))];
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("b")))));
    assert_eq!(state(&stage, "a"), None, "nothing is left of it");
    assert!(!stage.has_lease_request());
}

#[test]
fn who_comes_back_to_its_namespace_is_alive() {
    let mut stage = with_vanished();
    let (token, _) = stage.lease_request();
    stage.answer(token, Answer::Gone);
    stage.tell(Event::LeaseSeen(Box::new(lease("a", 40))));
    assert_eq!(state(&stage, "a"), Some(State::Ready));
}

/// Nothing is moved later than somebody could work who makes the namespace anew: he waits for twice D.
#[test]
fn without_a_lease_things_are_moved_no_longer_than_one_would_be_held() {
    let hold = D * 2 - D / 5;
    for (elapsed, may_move) in [(hold - MS, true), (hold, false)] {
        let mut stage = with_vanished();
        let (token, _) = stage.lease_request();
        stage.answer(token, Answer::Gone);
        let (token, _) = stage.label_request();
        stage.now += elapsed;
        stage.renew(&["b"], 60);
        stage.answer(token, Answer::Conflict);
        let token = stage.read_request();
        stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("a")))));
        assert_eq!(!stage.labels().is_empty(), may_move, "after {elapsed:?}");
    }
}

/// A label that somebody wrote by hand is no name that a Lease could have: its creation was refused, for
/// ever, and the object was nobody's who works.
#[test]
fn an_object_labelled_with_what_is_no_name_is_given_to_an_instance() {
    let mut stage = Stage::settled(&["a"], vec![object("x", 5, None)]);
    stage.open.clear();
    let mut odd = object("y", 5, None);
    odd.shard = Some(InstanceId::from_label("Some_Body.Else"));
    stage.objects = vec![odd];
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    assert_eq!(stage.labels(), []);
    stage.pass(secs(14));
    stage.renew(&["a"], 20);
    stage.pass(secs(1));
    stage.pass(LOOK_EVERY);
    stage.answer_all();
    assert!(!stage.has_lease_request(), "none could be made");
    assert_eq!(stage.labels(), [("y".to_owned(), shard("a"))]);
}

/// Another ring's Lease was taken for the instance's, and with it another ring's instance.
#[test]
fn a_lease_of_another_ring_is_nobody_of_ours() {
    let mut stage = with_vanished();
    let (token, _) = stage.lease_request();
    stage.answer(token, Answer::Conflict);
    let (token, written) = stage.lease_request();
    assert_eq!(written, None, "it is read");
    stage.answer(token, Answer::NotOfRing);
    assert_eq!(state(&stage, "a"), Some(State::Unknown));
    assert!(!stage.has_lease_request(), "not at once");
    let taken = |stage: &Stage| {
        stage.told.iter().filter(|news| matches!(news, News::NameTaken { .. })).count()
    };
    assert_eq!(taken(&stage), 1);
    stage.pass(D);
    stage.renew(&["b"], 40);
    let (token, _) = stage.lease_request();
    stage.answer(token, Answer::Conflict);
    let (token, _) = stage.lease_request();
    stage.answer(token, Answer::NotOfRing);
    assert_eq!((taken(&stage), stage.labels()), (1, vec![]));
}

/// What was asked for once counted as shown, whatever became of it.
#[test]
fn a_state_that_could_not_be_shown_is_shown_later() {
    let mut stage = Stage::settled(&["a"], vec![]);
    let shown = |stage: &mut Stage| {
        let is_shown = |it: &Command| matches!(it, Command::ShowState { word: "unknown", .. });
        let count = stage.open.iter().filter(|it| is_shown(it)).count();
        stage.open.retain(|it| !is_shown(it));
        count
    };
    stage.pass(D);
    assert_eq!(shown(&mut stage), 1);
    stage.pass(MS);
    assert_eq!(shown(&mut stage), 0);
    stage.tell(Event::NotShown { id: "a".parse().unwrap(), namespace: "shop".to_owned() });
    assert_eq!(shown(&mut stage), 1);
}
