use super::*;
use crate::core::watch::notation::{node, show_all, uid};

/// Plays events (`+` added, `~` modified, `-` deleted) and tells what the last one asks for; `due`
/// if the labels have to be saved.
#[track_caller]
fn check(events: &[&str], expected: &[&str]) {
    let outcome = play(&mut Index::default(), events);
    let due = outcome.is_changed.then(|| "due".to_owned());
    let told: Vec<_> = show_all(&outcome.posts).into_iter().chain(due).collect();
    assert_eq!(told, expected, "{events:?}");
}

fn play(index: &mut Index, events: &[&str]) -> Outcome {
    let outcomes = events.iter().map(|event| {
        let (kind, text) = event.split_at(1);
        let kind = match kind {
            "+" => EventKind::Added,
            "~" => EventKind::Modified,
            "-" => EventKind::Deleted,
            other => panic!("{other} is no event"),
        };
        index.on_event(NodeEvent { kind, node: node(text) })
    });
    outcomes.last().unwrap_or_default()
}

#[test]
fn an_arrival_is_told() {
    check(&["+a u1 5 x=1"], &["a.5 added u1 (watch)", "due"]);
    check(&["+a u1 5", "-a u1 6", "+a u2 7"], &["a.7 added u2 (watch)", "due"]);
}

#[test]
fn a_change_is_remembered_and_its_labels_are_to_be_saved() {
    check(&["+a u1 5 x=1", "~a u1 6 x=1"], &[]);
    check(&["+a u1 5 x=1", "~a u1 6 x=2"], &["due"]);
    check(&["+a u1 5 x=1", "~a u1 6 x=1 m=3"], &["due"]);
    check(&["+a u1 5 x=1", "~a u1 6"], &["due"]);
    // After a resume, nothing is remembered.
    check(&["~a u1 6 x=1"], &["due"]);
}

#[test]
fn a_deletion_is_told_with_the_labels_of_the_event() {
    check(&["+a u1 5 x=1", "-a u1 8 x=2 m=3"], &["a.8 deleted u1 (watch) x=2 m=3"]);
    check(&["-a u1 8 x=2"], &["a.8 deleted u1 (watch) x=2"]);
}

#[test]
fn another_incarnation_betrays_a_deletion_that_nobody_saw() {
    let gap = "a.6 deleted u1 (gap) x=2";
    let before = ["+a u1 5 x=1", "~a u1 6 x=2"];
    check(&[&before[..], &["+a u2 9"]].concat(), &[gap, "a.9 added u2 (watch)", "due"]);
    check(&[&before[..], &["~a u2 9"]].concat(), &[gap, "a.9 added u2 (gap)", "due"]);
    check(&[&before[..], &["-a u2 9 y=1"]].concat(), &[gap, "a.9 deleted u2 (watch) y=1"]);
    check(&["+a u1 5", "-a u1 6", "~a u2 9"], &["due"]);
}

#[test]
fn nodes_do_not_touch_each_other() {
    check(&["+a u1 5 x=1", "+b u2 6", "-a u1 7 x=1"], &["a.7 deleted u1 (watch) x=1"]);
}

#[test]
fn a_list_that_is_ahead_of_the_events_hides_none() {
    let with_list = |events: &[&str]| {
        let mut index = Index::default();
        index.on_listed(vec![node("a u2 9 x=3")]);
        let outcome = play(&mut index, events);
        let known = index.get(&NodeHash::of("a")).cloned();
        (show_all(&outcome.posts), known)
    };
    for (event, told) in [
        ("~a u1 5 x=1", None),
        ("-a u1 6 x=2", Some("a.6 deleted u1 (watch) x=2")),
        ("+a u2 7", Some("a.7 added u2 (watch)")),
        ("~a u2 9 x=3", None),
    ] {
        let told: Vec<_> = told.into_iter().map(str::to_owned).collect();
        assert_eq!(with_list(&[event]), (told, Some(node("a u2 9 x=3"))), "{event}");
    }
    assert_eq!(with_list(&["~a u2 10 x=4"]).1, Some(node("a u2 10 x=4")));
}

#[test]
fn a_list_that_is_behind_the_events_brings_nobody_back() {
    let mut index = Index::default();
    play(&mut index, &["+a u1 5", "-a u1 8", "+b u2 9 x=1"]);
    let unknown = index.on_listed(["a u1 5", "b u2 9 x=0", "c u3 4"].map(node).to_vec());
    assert_eq!(unknown, [NodeHash::of("c")]);
    assert_eq!(index.get(&NodeHash::of("a")), None);
    assert_eq!(index.get(&NodeHash::of("b")), Some(&node("b u2 9 x=1")));
}

#[test]
fn who_is_gone_is_known() {
    let mut index = Index::default();
    play(&mut index, &["+a u1 5", "-a u1 6", "+b u2 7", "~b u3 8", "+c u4 9", "+d u5 10"]);
    index.on_relisted(vec![node("d u5 10")]);
    index.on_recovered(uid("u9"));
    let gone = ["u1", "u2", "u3", "u4", "u5", "u9"].map(|text| index.is_gone(&uid(text)));
    assert_eq!(gone, [true, true, true, true, false, true]);
}
