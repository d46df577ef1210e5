//! The cache follows the store: by events, by lists, and whatever the way, to the same state.

use std::time::Duration;

use expect_test::expect;
use tasks::core::cache::{Cache, Change, KEPT_RECORD_BYTES_MAX, Summary};
use tasks::core::id::Revision;
use tasks::core::keys::KeyRange;
use tasks::core::transition::{Batch, delete, finish};
use tasks::wire;

use crate::scene::{Scene, exited, spec};
use crate::store::Store;

fn listed(store: &Store) -> (Cache, Vec<Change>) {
    let mut cache = Cache::new(KEPT_RECORD_BYTES_MAX);
    let mut changes = cache.on_tasks_listed(&store.list(KeyRange::TASKS), store.revision());
    changes.extend(cache.on_nodes_listed(&store.list(KeyRange::NODES), store.revision()));
    (cache, changes)
}

/// All events after `after`, of both watches.
fn follow(cache: &mut Cache, store: &Store, after: Revision) -> Vec<Change> {
    let ranges = [KeyRange::TASKS_AND_STATUSES, KeyRange::NODES];
    let events = ranges.into_iter().flat_map(|range| store.events(range, after));
    events.flat_map(|event| cache.on_event(&event)).collect()
}

fn brief(cache: &Cache) -> String {
    let summaries = cache.tasks().map(|task: &Summary| format!("{task:?}\n"));
    let nodes = cache.nodes().map(|node| format!("{node:?}\n"));
    summaries.chain(nodes).collect()
}

#[test]
fn events_and_lists_lead_to_the_same() {
    let mut scene = Scene::new();
    let (mut cache, _) = listed(&scene.store);
    let start = scene.store.revision();
    let by = scene.register(1);
    let (first, second) = (scene.submit(spec()), scene.submit(spec()));
    let running = scene.claim(&first, &by);
    let plan = finish(&running, &scene.end(&running, exited(0)), scene.stamp()).unwrap();
    let ended = scene.store.win(&plan);
    follow(&mut cache, &scene.store, start);
    assert_eq!(brief(&cache), brief(&listed(&scene.store).0));
    assert_eq!(cache.record(second.id()), Some(second));
    assert_eq!(cache.ended().count(), 1);
    let (key, modified) = cache.ended_key(first.id()).unwrap();
    assert_eq!((key, modified), (ended.task.status.key(first.id()), ended.modified));
}

#[test]
fn a_relist_finds_what_changed_in_between() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let kept = scene.submit(spec());
    let canceled = scene.submit(spec());
    let (mut cache, _) = listed(&scene.store);

    let plan = scene.plan_cancel(&canceled);
    let canceled = scene.store.win(&plan);
    let plan = delete(canceled.task.status.key(canceled.id()), canceled.modified).unwrap();
    scene.store.settle(&plan);
    let claimed = scene.claim(&kept, &by);
    scene.lose(1);

    let (tasks, nodes) = (scene.store.list(KeyRange::TASKS), scene.store.list(KeyRange::NODES));
    let mut changes = cache.on_tasks_listed(&tasks, scene.store.revision());
    changes.extend(cache.on_nodes_listed(&nodes, scene.store.revision()));
    let expected =
        [Change::Task(kept.id()), Change::TaskDeleted(canceled.id()), Change::NodeGone(by.node)];
    assert_eq!(changes, expected);
    assert_eq!(cache.lost().map(|task| task.id).collect::<Vec<_>>(), [claimed.id()]);
    assert_eq!(cache.on_tasks_listed(&tasks, scene.store.revision()), [], "nothing is new");
}

/// A watch that was opened before the list may deliver what the list already shows.
#[test]
fn events_older_than_the_list_are_known() {
    let mut scene = Scene::new();
    let task = scene.submit(spec());
    let plan = scene.plan_cancel(&task);
    scene.store.win(&plan);
    let (mut cache, _) = listed(&scene.store);
    assert_eq!(follow(&mut cache, &scene.store, Revision(0)), []);
}

#[test]
fn the_queue_is_by_priority_then_by_age() {
    let mut scene = Scene::new();
    let mut submit = |priority| {
        let name = format!("p{priority}");
        scene.submit(wire::TaskSpec { priority, name, ..spec() });
        scene.pass(1);
    };
    [0, 5, -3, 5, 0].into_iter().for_each(&mut submit);
    let (cache, _) = listed(&scene.store);
    let queue: Vec<_> = cache.queue().map(|task| (task.name.as_str(), task.created.0)).collect();
    expect![[r#"
        [("p5", 3), ("p5", 5), ("p0", 2), ("p0", 6), ("p-3", 4)]
    "#]]
    .assert_eq(&format!("{queue:?}\n"));
}

#[test]
fn what_cannot_be_read_is_told_and_forgotten_when_it_heals() {
    use tasks::core::keys::Key;
    use tasks::core::txn::Op;

    let mut scene = Scene::new();
    let task = scene.submit(spec());
    let (mut cache, _) = listed(&scene.store);
    let start = scene.store.revision();
    scene.store.meddle(vec![Op::Put(Key::Task(task.id()), "garbage".into())]);
    let changes = follow(&mut cache, &scene.store, start);
    assert!(matches!(changes[..], [Change::UnreadableTask(_, _)]), "{changes:?}");
    assert_eq!((cache.queue_len(), cache.unreadable().count()), (0, 1));

    let start = scene.store.revision();
    scene.store.meddle(vec![Op::Put(Key::Task(task.id()), task.task.encode())]);
    assert_eq!(follow(&mut cache, &scene.store, start), [Change::Task(task.id())]);
    assert_eq!((cache.queue_len(), cache.unreadable().count()), (1, 0));
}

#[test]
fn whole_records_are_kept_within_a_bound() {
    let mut scene = Scene::new();
    let first = scene.submit(spec());
    scene.pass(Duration::from_secs(1).as_secs());
    let second = scene.submit(spec());
    let bytes = scene.store.list(KeyRange::TASKS)[0].encoded().len();
    let mut cache = Cache::new(bytes);
    cache.on_tasks_listed(&scene.store.list(KeyRange::TASKS), scene.store.revision());
    let kept = [&first, &second].map(|task| cache.record(task.id()).is_some());
    assert_eq!(kept.iter().filter(|is_kept| **is_kept).count(), 1);
    assert_eq!(cache.queue_len(), 2, "all are known");
}

#[test]
fn one_request_that_changes_many_tasks_is_seen_whole() {
    let mut scene = Scene::new();
    let (mut cache, _) = listed(&scene.store);
    let start = scene.store.revision();
    let plans = (0..3).map(|_| scene.plan_submit(spec())).collect();
    for batch in Batch::split(plans) {
        scene.store.txn(&batch.txn);
    }
    assert_eq!(scene.store.revision().0, start.0 + 1, "all in one revision");
    follow(&mut cache, &scene.store, start);
    assert_eq!(cache.queue_len(), 3);
    assert_eq!(brief(&cache), brief(&listed(&scene.store).0));
}
