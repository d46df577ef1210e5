//! Who has to wait for whom, for how long, and what counts.

use super::families::{child, with_children};
use super::*;
use crate::core::partition::BALANCED_MEAN_MIN;
use crate::core::spec::Algorithm;

fn unassigned(name: &str) -> Event {
    Event::Unassigned { object: Box::new(object(name, 5, None)), is_listed: false }
}

/// While more was on its way than passes add to, and none of it moved, the objects of the dead were
/// not even looked for.
#[test]
fn the_dead_are_seen_to_while_thousands_of_objects_wait() {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    stage.tell(Event::LeaseSeen(Box::new(Lease { weight: Some("0".into()), ..lease("b", 2) })));
    stage.answer_all();
    let silent = Lease { weight: Some("0".into()), ..lease("a", 2) };
    stage.tell(Event::LeaseSeen(Box::new(silent)));
    stage.answer_all();
    stage.open.clear();
    for number in 0..2_500 {
        stage.tell(unassigned(&format!("y{number}")));
    }
    stage.answer_all();
    assert!(stage.sharder.on_their_way() >= 2_500, "there is nobody to take them");
    stage.open.clear();
    stage.listed.clear();
    let_die(&mut stage);
    let is_pass_for_the_dead =
        stage.listed.iter().any(|it| *it == Selector::Of("a".parse().unwrap()));
    assert!(is_pass_for_the_dead, "{:?}", stage.listed);
}

/// The first census waited for room, and what took the room waited for the table that it makes.
#[test]
fn the_first_table_does_not_wait_for_room() {
    let mut stage = Stage::unsettled(&["a"]);
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    for number in 0..2_500 {
        stage.tell(unassigned(&format!("y{number}")));
    }
    stage.answer_all();
    assert!(stage.sharder.table().is_some());
}

/// Objects that leave the ring were evened out too, and their slots with them.
#[test]
fn what_is_outside_the_ring_does_not_count() {
    let count = u32::try_from(BALANCED_MEAN_MIN).unwrap();
    let mut elsewhere = object("z", 5, Some("a"));
    elsewhere.name.namespace = Some("elsewhere".to_owned());
    let mut objects: Vec<Object> =
        (0..count).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    objects.push(elsewhere);
    let mut stage = Stage::settled(&["a"], objects);
    let counted = |stage: &Stage| stage.sharder.objects().unwrap()[&"a".parse().unwrap()];
    assert_eq!(counted(&stage), u64::from(count) + 1);
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    assert_eq!(counted(&stage), u64::from(count));
}

/// With consistent hashing nobody knew how even it was.
#[test]
fn imbalance_is_known_without_slots() {
    let mut options = options();
    options.partitioning.algorithm = Algorithm::Ring;
    let mut stage = Stage::unsettled(&["a", "b"]);
    stage.sharder = Sharder::new(options);
    stage.tell(Event::LeasesListed(vec![lease("a", 1), lease("b", 1)]));
    let of = |id: &'static str| move |i: u32| object(&format!("{id}{i}"), 5, Some(id));
    stage.objects = (0..30).map(of("a")).chain((0..10).map(of("b"))).collect();
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    assert_eq!(stage.sharder.imbalance(), None, "before anything was counted");
    stage.answer_all();
    let imbalance = stage.sharder.imbalance().expect("everything was counted");
    assert!((imbalance - 1.5).abs() < 1e-9, "{imbalance}");
}

/// A child asked the server for its parent every second, for as long as that was on its way.
#[test]
fn a_child_does_not_ask_for_a_parent_that_is_on_its_way() {
    let mut stage = Stage::settled(&[], vec![]);
    stage.sharder.reconfigure(with_children(&[]));
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    stage.answer_all();
    stage.tell(unassigned("x"));
    stage.tell(Event::Unassigned { object: Box::new(child(5, None)), is_listed: false });
    for _ in 0..60 {
        stage.pass(secs(1));
        stage.answer_all();
        assert!(!stage.has_read_request(), "the parent has nobody to go to yet");
    }
    stage.tell(Event::LeaseSeen(Box::new(lease("a", 60))));
    stage.answer_all();
    let (token, name, _) = stage.write_request();
    assert_eq!(name.name, "x");
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("a")))));
    assert!(stage.has_read_request(), "at once, when it is settled");
}

/// Where the parent is elsewhere and stays there, asking again and again is of no use.
#[test]
fn a_child_asks_ever_more_rarely_for_a_parent_that_is_elsewhere() {
    let mut stage = Stage::settled(&["a"], vec![]);
    stage.become_another(with_children(&[]), &[]);
    stage.tell(Event::Unassigned { object: Box::new(child(5, None)), is_listed: false });
    let mut asked = 0;
    for _ in 0..120 {
        if stage.has_read_request() {
            asked += 1;
            let token = stage.read_request();
            stage.answer(token, Answer::Object(Box::new(object("x", 5, None))));
        }
        stage.pass(secs(1));
        stage.renew(&["a"], u32::try_from(stage.now.as_secs()).unwrap());
        stage.answer_all();
    }
    assert!((4..12).contains(&asked), "{asked} times in two minutes");
}

/// After a change of leaders the acknowledgement may come before anything was counted: the parent was
/// given to its new owner before its children.
#[test]
fn what_is_given_up_before_the_first_count_has_its_children_looked_for() {
    let mut stage = Stage::unsettled(&["a"]);
    stage.sharder = Sharder::new(with_children(&[]));
    stage.tell(Event::LeasesListed(vec![lease("a", 1)]));
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    let (kept, version) = (Stage::kept(), Version("1".to_owned()));
    stage.open.retain(|it| !matches!(it, Command::ReadTable));
    stage.tell(Event::TableRead { kept: Some(kept), version });
    stage.tell(unassigned("x"));
    assert_eq!(stage.labels(), [], "not before its children");
    assert!(stage.has_read_request());
}
