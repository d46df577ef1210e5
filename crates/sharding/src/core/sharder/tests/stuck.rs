//! Objects that cannot be written, by a policy or by a fault, and what must not wait for them.

use super::families::{child, with_children};
use super::*;

fn refuse(stage: &mut Stage, object: &Object) {
    for _ in 0..REFUSALS {
        let (token, _) = stage.label_request();
        stage.answer(token, Answer::Refused);
        if let Some(token) = open_read(stage) {
            stage.answer(token, Answer::Object(Box::new(object.clone())));
        }
    }
}

const REFUSALS: usize = 3;

/// Lets time pass until the object is read once more, unless it is left alone.
fn open_read(stage: &mut Stage) -> Option<Token> {
    for _ in 0..4 {
        stage.pass(secs(1));
        stage.renew(&["b"], u32::try_from(stage.now.as_secs()).unwrap());
        stage.answer_all();
        if stage.has_read_request() {
            return Some(stage.read_request());
        }
    }
    None
}

fn stuck(stage: &Stage) -> usize {
    stage.told.iter().filter(|news| matches!(news, News::Stuck { .. })).count()
}

/// The sharder tried again and again and held the Lease meanwhile, so that the instance never came
/// back.
#[test]
fn a_dead_instance_may_come_back_though_an_object_of_it_cannot_be_written() {
    let mut stage = with_dead();
    refuse(&mut stage, &object("x", 5, Some("a")));
    assert_eq!((stuck(&stage), stage.sharder.on_their_way()), (1, 0));
    let traffic = stage.sharder.traffic();
    assert_eq!((traffic.stuck, traffic.stuck_example), (1, Some(object("x", 5, None).name)));
    let (token, written) = stage.lease_request();
    let given_back = written.expect("the Lease is given back");
    assert_eq!(given_back.holder, None);
    stage.answer(
        token,
        Answer::Lease(Box::new(Lease { version: Version("90".into()), ..given_back })),
    );
    assert!(!stage.has_lease_request());
    assert_eq!(stage.labels(), []);
}

#[test]
fn what_could_not_be_written_is_tried_again_with_everything_else() {
    let mut stage = with_dead();
    refuse(&mut stage, &object("x", 5, Some("a")));
    let (token, written) = stage.lease_request();
    let given_back = Lease { version: Version("90".into()), ..written.unwrap() };
    stage.answer(token, Answer::Lease(Box::new(given_back.clone())));
    stage.now += secs(5 * 60);
    stage.renew(&["b"], 400);
    stage.answer_all();
    let (token, written) = stage.lease_request();
    let held = Lease { version: Version("91".into()), ..written.unwrap() };
    assert_eq!(held.holder.as_deref(), Some("windlass-sharder"));
    stage.answer(token, Answer::Lease(Box::new(held)));
    assert_eq!(stage.labels(), [("x".to_owned(), shard("b"))]);
    let (token, _) = stage.label_request();
    stage.objects = vec![object("x", 6, Some("b"))];
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("b")))));
    assert_eq!(stage.sharder.traffic().stuck, 0);
}

/// No parent was moved while any child was left.
#[test]
fn a_child_that_cannot_be_written_keeps_back_its_own_parent_alone() {
    let main = vec![object("x", 5, Some("a")), object("y", 5, Some("a"))];
    let mut stage = Stage::settled(&["a", "b"], main);
    stage.become_another(with_children(&[]), &[child(5, Some("a"))]);
    stage.open.clear();
    let_die(&mut stage);
    assert_eq!(stage.labels(), [("c".to_owned(), shard("b"))]);
    refuse(&mut stage, &child(5, Some("a")));
    stage.answer_all();
    assert_eq!(stage.labels(), [("y".to_owned(), shard("b"))], "and x stays with its child");
}

/// Drains that a policy refuses took all the room there is.
#[test]
fn drains_that_are_refused_leave_room_for_others() {
    let objects: Vec<Object> =
        (0..300).map(|i| object(&format!("x{i:03}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    let first: Vec<String> = stage.labels().into_iter().map(|(name, _)| name).collect();
    assert!(!first.is_empty());
    for _ in 0..first.len() {
        let (token, _) = stage.label_request();
        stage.answer(token, Answer::Refused);
    }
    let second = stage.labels();
    assert!(!second.is_empty());
    assert!(second.iter().all(|(name, _)| !first.contains(name)), "others have their turn");
}

/// That it was taken was told before it was, and again with every attempt.
#[test]
fn what_is_taken_by_force_is_told_once_it_is_taken() {
    let objects = (0..8).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::Fenced(true));
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    let (token, name, change) = stage.write_request();
    stage.open.clear();
    let drained = object(&name.name, 6, Some("a")).with(&change);
    stage.answer(token, Answer::Object(Box::new(drained.clone())));
    stage.open.clear();
    for seconds in [14, 14, 2] {
        stage.pass(secs(seconds));
        stage.renew(&["a", "b"], u32::try_from(stage.now.as_secs()).unwrap());
        stage.answer_all();
    }
    let forced = |stage: &Stage| {
        stage.told.iter().filter(|news| matches!(news, News::Forced { .. })).count()
    };
    let (token, _, change) = stage.write_request();
    assert_eq!((change, forced(&stage)), (shard("b"), 0));
    stage.answer(token, Answer::Failed);
    stage.pass(secs(1));
    let token = stage.read_request();
    stage.answer(token, Answer::Object(Box::new(drained)));
    let (token, _, _) = stage.write_request();
    assert_eq!(forced(&stage), 0);
    stage.answer(token, Answer::Object(Box::new(object(&name.name, 7, Some("b")))));
    assert_eq!(forced(&stage), 1);
}
