//! Children whose owner was deleted without them, as by `kubectl delete --cascade=orphan`: they keep the
//! labels they had, and nothing of the ring controls them.

use super::families::{child, child_kind, parent_kind, with_children};
use super::*;

fn orphan(version: u32, shard: &str) -> Object {
    Object { controller: None, ..child(version, Some(shard)) }
}

/// A ring of `a`, who has `x`, and `b`.
fn with_orphan(options: Options, orphan: Object) -> Stage {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    stage.become_another(options, &[orphan]);
    stage
}

#[test]
fn an_orphan_is_stripped_whosever_it_was() {
    for id in ["a", "nobody-knows"] {
        let mut stage = with_orphan(with_children(&[]), orphan(5, id));
        assert_eq!(stage.labels(), [("c".to_owned(), LabelChange::Clear)], "{id}");
        let (token, change) = stage.label_request();
        let stripped = orphan(6, id).with(&change);
        stage.answer(token, Answer::Object(Box::new(stripped)));
        assert_eq!((stage.labels(), stage.sharder.on_their_way()), (vec![], 0), "{id}");
    }
}

/// The search for what the dead had ended at the orphan, again and again.
#[test]
fn the_objects_of_the_dead_are_moved_whatever_becomes_of_an_orphan() {
    let mut stage = with_orphan(with_children(&[]), orphan(5, "a"));
    let_die(&mut stage);
    let stripped = ("c".to_owned(), LabelChange::Clear);
    assert_eq!(stage.labels(), [stripped, ("x".to_owned(), shard("b"))]);
    let (orphans, _) = stage.label_request();
    let (token, _) = stage.label_request();
    stage.objects = vec![object("x", 6, Some("b"))];
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("b")))));
    stage.answer(orphans, Answer::Failed);
    let (_, written) = stage.lease_request();
    assert_eq!(written.expect("it is given back").holder, None);
}

/// Labels that nobody took off kept a deleted Ring from going.
#[test]
fn an_orphan_does_not_outlast_its_ring() {
    let stage = with_orphan(with_children(&[parent_kind(), child_kind()]), orphan(5, "long-gone"));
    assert!(stage.labels().contains(&("c".to_owned(), LabelChange::Clear)), "{:?}", stage.labels());
}

/// While a main kind cannot be worked on, what it controls looks like anybody's.
#[test]
fn the_children_of_what_is_out_of_reach_are_left_alone() {
    let mut options = with_children(&[]);
    options.kinds.out_of_reach.insert("example.com".to_owned());
    let mut of_another = child(5, Some("a"));
    of_another.controller.as_mut().unwrap().kind = GroupKind::new("example.com", "Site");
    let stage = with_orphan(options, of_another);
    assert_eq!(stage.labels(), []);
}

#[test]
fn an_orphan_that_is_adopted_meanwhile_keeps_its_labels() {
    let mut stage = with_orphan(with_children(&[]), orphan(5, "a"));
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Conflict);
    let token = stage.read_request();
    stage.answer(token, Answer::Object(Box::new(child(6, Some("a")))));
    assert_eq!(stage.labels(), []);
    let token = stage.read_request();
    stage.answer(token, Answer::Object(Box::new(object("x", 5, Some("a")))));
    assert_eq!((stage.labels(), stage.sharder.on_their_way()), (vec![], 0));
}
