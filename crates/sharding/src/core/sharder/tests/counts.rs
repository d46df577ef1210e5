//! What is counted, and what follows from it.

use super::*;
use crate::core::key::Role;
use crate::core::partition::{BALANCED_MEAN_MIN, Table};
use crate::core::spec::Algorithm;

#[test]
fn a_count_follows_what_is_moved() {
    let objects = (0..3).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let mut stage = Stage::settled(&["a"], objects);
    let count = |stage: &Stage, id: &str| {
        let objects = stage.sharder.objects().unwrap();
        objects.get(&id.parse::<InstanceId>().unwrap()).copied().unwrap_or(0)
    };
    assert_eq!(count(&stage, "a"), 3);
    stage.tell(Event::Unassigned { object: Box::new(object("y", 6, None)), is_listed: false });
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Object(Box::new(object("y", 7, Some("a")))));
    assert_eq!(count(&stage, "a"), 4);
    let mut stage = with_dead();
    let (token, _) = stage.label_request();
    stage.objects = vec![object("x", 6, Some("b"))];
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("b")))));
    assert_eq!((count(&stage, "a"), count(&stage, "b")), (0, 1));
}

/// What was between two owners when it was counted went missing, and one less than its former owner had
/// was shown until the next count.
#[test]
fn what_is_on_its_way_is_counted_once() {
    let mut stage = Stage::settled(&["a"], vec![object("x", 5, Some("a"))]);
    let count = |stage: &Stage| {
        let objects = stage.sharder.objects().unwrap();
        ["a", "b"].map(|id| objects.get(&id.parse::<InstanceId>().unwrap()).copied().unwrap_or(0))
    };
    stage.objects = (0..40).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 1))));
    stage.answer_all();
    let (token, name, change) = stage.write_request();
    assert!(matches!(change, LabelChange::Drain(_)));
    let at = stage.objects.iter().position(|it| it.name == name).unwrap();
    stage.objects[at] = object(&name.name, 6, Some("a"));
    stage.objects[at].drain = Some(Drain::Until(1_700_000_030));
    stage.answer(token, Answer::Object(Box::new(stage.objects[at].clone())));
    stage.objects[at] = object(&name.name, 7, None);
    let object_7 = Box::new(stage.objects[at].clone());
    stage.tell(Event::Unassigned { object: object_7, is_listed: false });
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    assert_eq!(count(&stage), [40, 0], "it is nobody's now, and counts for whom it comes from");
    let is_it =
        |command: &Command| matches!(command, Command::WriteObject { name: of, .. } if *of == name);
    let index = stage.open.iter().position(is_it).expect("it is to be assigned");
    let Command::WriteObject { token, .. } = stage.open.remove(index) else { unreachable!() };
    stage.objects[at] = object(&name.name, 8, Some("b"));
    stage.answer(token, Answer::Object(Box::new(stage.objects[at].clone())));
    assert_eq!(count(&stage), [39, 1]);
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

/// So many objects in each slot, as many slots as that of `a` and the others of `b`.
fn filled(per_slot: impl Fn(usize) -> usize, of_a: usize) -> Vec<Object> {
    let (slots, kinds) = (Slots::empty(64).unwrap(), options().kinds);
    let mut counts = vec![0; slots.count()];
    let mut all = Vec::new();
    for number in 0..100_000 {
        let mut object = object(&format!("x{number}"), 5, None);
        let Role::Main { key } = kinds.role(&object) else { panic!("a main kind") };
        let slot = usize::from(slots.slot(&key).0);
        if counts[slot] < per_slot(slot) {
            counts[slot] += 1;
            let id = if slot < of_a { "a" } else { "b" };
            object.shard = Some(id.parse().unwrap());
            all.push(object);
        }
    }
    all
}

/// Counts these anew; how many slots have changed hands since the first count.
fn recount(stage: &mut Stage, objects: Vec<Object>, of_a: usize) -> usize {
    stage.objects = objects;
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    let Some(Table::Slots(slots)) = stage.sharder.table() else { panic!("a table of slots") };
    let is_of = |slot: usize| slots.owners()[slot] == Some(usize::from(slot >= of_a));
    (0..slots.count()).filter(|slot| !is_of(*slot)).count()
}

/// Two instances, of which one has too much; a tenth of the slots may be moved in ten minutes.
fn uneven(of_a: usize) -> Stage {
    let mut options = options();
    options.partitioning.max_move_percent = 10;
    let mut stage = Stage::unsettled(&["a", "b"]);
    stage.sharder = Sharder::new(options);
    stage.tell(Event::LeasesListed(vec![lease("a", 1), lease("b", 1)]));
    stage.objects = filled(|_| 10, of_a);
    stage.tell(Event::Leading { until: Moment(secs(10_000)) });
    stage.answer_all();
    stage
}

/// A second imbalance within ten minutes, as when two instances join one after the other, waited until
/// they were over, though hardly any slot had been moved.
#[test]
fn slots_are_evened_out_as_often_as_there_is_need_but_few_in_ten_minutes() {
    let of_a = 34;
    let mut stage = uneven(of_a);
    assert_eq!(recount(&mut stage, filled(|_| 10, of_a), of_a), 1);
    let more = |slot: usize| if slot < 8 { 20 } else { 10 };
    assert_eq!(recount(&mut stage, filled(more, of_a), of_a), 3);
    let far_more = |slot: usize| if slot < 30 { 20 } else { 10 };
    assert_eq!(recount(&mut stage, filled(far_more, of_a), of_a), 6, "a tenth of the slots");
    stage.pass(secs(9 * 60));
    assert_eq!(recount(&mut stage, filled(far_more, of_a), of_a), 6);
    stage.pass(secs(60));
    stage.renew(&["a", "b"], 600);
    assert!(recount(&mut stage, filled(far_more, of_a), of_a) > 6);
}

/// Our own status makes the Ring another, so that the first write of a table after it is refused: what
/// a count had evened out was forgotten, and not tried again for ten minutes.
#[test]
fn slots_are_evened_out_although_the_ring_was_written_meanwhile() {
    let of_a = 34;
    let mut stage = uneven(of_a);
    assert_eq!(recount(&mut stage, filled(|_| 10, of_a), of_a), 1);
    stage.objects = filled(|slot| if slot < 8 { 20 } else { 10 }, of_a);
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    let token = loop {
        let index = stage.open.iter().position(is_routine).expect("the table is to be written");
        match stage.open.remove(index) {
            Command::WriteTable { token, .. } => break token,
            command => {
                if let Some(event) = stage.routine(command) {
                    stage.tell(event);
                }
            }
        }
    };
    stage.tell(Event::Answered { token, answer: Answer::Conflict });
    stage.open.retain(|it| !matches!(it, Command::ReadTable));
    let Some(Table::Slots(slots)) = stage.sharder.table() else { panic!("a table of slots") };
    let (kept, version) = (Some(Kept::new(5, slots)), Version("9".to_owned()));
    stage.tell(Event::TableRead { kept, version });
    stage.answer_all();
    let Some(Table::Slots(slots)) = stage.sharder.table() else { panic!("a table of slots") };
    let is_of = |slot: usize| slots.owners()[slot] == Some(usize::from(slot >= of_a));
    assert_eq!((0..slots.count()).filter(|slot| !is_of(*slot)).count(), 3);
}
