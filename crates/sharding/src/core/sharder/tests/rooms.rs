//! Who has to wait for whom, for how long, and what counts.

use super::families::{child, with_children};
use super::*;

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

/// The most at once are on their way, and few of them are being marked: the writes of those that are
/// nobody's are not to wait behind hundreds of others.
#[test]
fn no_more_is_drained_at_once_than_allowed() {
    let objects: Vec<Object> = (0..300).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    let drains = stage.labels();
    assert_eq!(drains.len(), 16);
    let deadline = Drain::Until(1_700_000_030);
    assert!(drains.iter().all(|(_, change)| *change == LabelChange::Drain(deadline)), "{drains:?}");
    assert_eq!(mark_all(&mut stage), 100);
}

/// Objects were marked as fast as ever while those given up before them waited for their next owner, so
/// that each waited behind a hundred others.
#[test]
fn what_was_given_up_goes_before_more_is_drained() {
    let objects: Vec<Object> = (0..300).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    let count = |stage: &Stage| {
        let labels = stage.labels();
        let is_drain = |(_, change): &&(_, LabelChange)| matches!(change, LabelChange::Drain(_));
        let drains = labels.iter().filter(is_drain).count();
        (drains, labels.len() - drains)
    };
    assert_eq!(count(&stage), (16, 0));
    for _ in 0..16 {
        let (token, name, change) = stage.write_request();
        let drained = object(&name.name, 6, Some("a")).with(&change);
        stage.answer(token, Answer::Object(Box::new(drained)));
        let given_up = Box::new(object(&name.name, 7, None));
        stage.tell(Event::Unassigned { object: given_up, is_listed: false });
    }
    assert_eq!(count(&stage), (1, 16), "one at a time, lest those wait for ever");
    while count(&stage).1 > 0 {
        let is_assign =
            |it: &Command| matches!(it, Command::WriteObject { change: LabelChange::Shard(_), .. });
        let index = stage.open.iter().position(is_assign).expect("somebody is assigned");
        let Command::WriteObject { token, name, .. } = stage.open.remove(index) else { panic!() };
        stage.answer(token, Answer::Object(Box::new(object(&name.name, 8, Some("b")))));
    }
    assert_eq!(count(&stage), (16, 0));
}

/// Every judgement queued the object once more, for as long as there was no room.
#[test]
fn what_waits_to_be_drained_waits_once() {
    let objects: Vec<Object> = (0..300).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    mark_all(&mut stage);
    let waiting = stage.sharder.works.queued_len();
    assert!(waiting > 0);
    assert_eq!(waiting + 100, stage.sharder.on_their_way());
    for is_fenced in [true, false, true] {
        stage.tell(Event::Fenced(is_fenced));
        assert_eq!(stage.sharder.works.queued_len(), waiting);
    }
}

/// Every write of a label is carried out, until nothing more is written. Nobody gives anything up.
fn mark_all(stage: &mut Stage) -> usize {
    let mut marked = 0;
    while !stage.labels().is_empty() {
        let (token, name, change) = stage.write_request();
        let drained = object(&name.name, 6, Some("a")).with(&change);
        stage.answer(token, Answer::Object(Box::new(drained)));
        marked += 1;
    }
    marked
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

/// One that was gone came back, found what it had been asked for before, and gave it up before it was
/// looked for: it was taken for new, and given to its next owner before its children.
#[test]
fn what_is_given_up_by_one_that_came_back_has_its_children_looked_for() {
    let mut stage = Stage::unsettled(&[]);
    stage.sharder = Sharder::new(with_children(&[]));
    let idle = Lease { weight: Some("0".to_owned()), ..lease("a", 1) };
    let gone = Lease { holder: None, ..lease("b", 1) };
    stage.tell(Event::LeasesListed(vec![idle, gone]));
    let drain = LabelChange::Drain(Drain::Until(1_700_000_030));
    stage.objects = vec![object("x", 5, Some("b")).with(&drain)];
    stage.controlled = vec![child(5, Some("b"))];
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    stage.answer_all();
    assert_eq!(stage.sharder.on_their_way(), 0, "its child would go first, and nobody can take it");
    stage.objects.clear();
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.tell(unassigned("x"));
    stage.answer_all();
    assert_eq!(stage.labels(), [], "not before its children");
    assert!(stage.has_read_request());
}

/// The instance was told by a Lease that somebody deleted. The next one said nothing of it, and what was
/// to be given up stayed where it was until the leader changed.
#[test]
fn a_lease_that_is_made_anew_tells_again_that_there_is_something_to_give_up() {
    let objects = (0..8).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 2))));
    stage.answer_all();
    let (token, name, change) = stage.write_request();
    stage.open.clear();
    let drained = object(&name.name, 6, Some("a")).with(&change);
    stage.answer(token, Answer::Object(Box::new(drained)));
    let (token, raised) = stage.lease_request();
    let raised = raised.expect("its Lease is written");
    assert_eq!(raised.marks.drain_epoch, 1);
    let version = Version("9".to_owned());
    stage.answer(token, Answer::Lease(Box::new(Lease { version, ..raised })));
    stage.pass(D / 5);
    assert!(!stage.has_lease_request(), "it has been told");
    stage.tell(Event::LeaseDeleted(Box::new(lease("a", 100))));
    stage.tell(Event::LeaseSeen(Box::new(lease("a", 12))));
    stage.answer_all();
    let (_, raised) = stage.lease_request();
    assert_eq!(raised.expect("its Lease is written").marks.drain_epoch, 1);
}
