//! Faults of an earlier implementation of the same design, each told and held.

use bytes::Bytes;
use expect_test::expect;
use tasks::core::cache::{Cache, Change, KEPT_RECORD_BYTES_MAX};
use tasks::core::id::Revision;
use tasks::core::keys::{End, Key, KeyRange, StatusKey};
use tasks::core::status::Status;
use tasks::core::transition::{Ending, Settled, delete, finish};
use tasks::core::txn::Op;
use tasks::wire;

use crate::scene::{Scene, exited, spec};

/// Keys were written without their leading slash in one place and with it in another, so that a watch
/// on one did not see the other.
#[test]
fn reg01_keys_have_leading_slash() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &by);
    let plan = finish(&running, &scene.end(&running, exited(0)), scene.stamp()).unwrap();
    scene.store.win(&plan);
    let everything = KeyRange { start: b"\0", end: b"\xff" };
    let keys: Vec<String> = scene
        .store
        .list(everything)
        .iter()
        .map(|kv| String::from_utf8(kv.key().to_vec()).unwrap())
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| key.starts_with('/')), "{keys:?}");
    let written = scene.store.events(everything, Revision(0));
    assert!(written.iter().all(|event| event.kv().key().starts_with(b"/")));
}

/// A listing decoded the values of status keys, which are empty, and showed empty tasks.
#[test]
fn reg02_listing_reads_records_not_status_values() {
    let mut scene = Scene::new();
    let task = scene.submit(wire::TaskSpec { name: "nightly".to_owned(), ..spec() });
    let status = Key::Status(StatusKey::Queued(task.id()));
    scene.store.meddle(vec![Op::Put(status, Bytes::from_static(b"not a task"))]);
    scene.assert_in_sync();
    let mut cache = Cache::new(KEPT_RECORD_BYTES_MAX);
    cache.on_tasks_listed(&scene.store.list(KeyRange::TASKS_AND_STATUSES), scene.store.revision());
    let names: Vec<_> = cache.tasks().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["nightly"]);
    assert_eq!(cache.unreadable().count(), 0);
}

/// Watchers skipped deletions, so that nodes kept tasks for ever.
#[test]
fn reg04_deletes_reach_watchers() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let task = scene.submit(spec());
    let plan = scene.plan_cancel(&task);
    let canceled = scene.store.win(&plan);
    let mut cache = Cache::new(KEPT_RECORD_BYTES_MAX);
    cache.on_tasks_listed(&scene.store.list(KeyRange::TASKS), scene.store.revision());
    cache.on_nodes_listed(&scene.store.list(KeyRange::NODES), scene.store.revision());
    let start = scene.store.revision();

    let plan = delete(canceled.task.status.key(canceled.id()), canceled.modified).unwrap();
    scene.store.settle(&plan);
    scene.lose(1);
    let mut changes = |range| -> Vec<Change> {
        let events = scene.store.events(range, start);
        events.iter().flat_map(|event| cache.on_event(event)).collect()
    };
    assert_eq!(changes(KeyRange::TASKS), [Change::TaskDeleted(task.id())]);
    assert_eq!(changes(KeyRange::NODES), [Change::NodeGone(by.node)]);
    assert_eq!((cache.tasks().count(), cache.nodes().count()), (0, 0));
}

/// Failed tasks had no time in their key and could not be removed by age.
#[test]
fn reg08_failed_has_epoch() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &by);
    let plan = finish(&running, &scene.end(&running, Ending::TimedOut), scene.stamp()).unwrap();
    let failed = scene.store.win(&plan);
    let key = failed.task.status.key(failed.id());
    assert!(matches!(key, StatusKey::Ended(End::Failed, ..)));
    let told = key.to_string().replace(&failed.id().to_string(), "$T");
    expect!["/task/status/failed/1700000000/$T"].assert_eq(&told);
    assert!(scene.store.get(Key::Status(key)).is_some());
}

/// A task was told by its version, which begins again at 1 when a key is deleted and created anew.
#[test]
fn reg11_delete_and_recreate_is_not_same_version() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let keyed = wire::TaskSpec { idempotency_key: "nightly".to_owned(), ..spec() };
    let first = scene.submit(keyed.clone());
    let plan = scene.plan_cancel(&first);
    let canceled = scene.store.win(&plan);
    let stale = delete(canceled.task.status.key(canceled.id()), canceled.modified).unwrap();
    scene.store.settle(&stale);

    let second = scene.submit(keyed);
    assert_eq!(first.id(), second.id());
    let kv = scene.store.get(Key::Task(second.id())).unwrap();
    assert_eq!(kv.version(), 1, "as the first had when it was read");
    let claim = tasks::core::transition::claim(&first, &by, scene.stamp()).unwrap();
    assert!(matches!(scene.store.settle(&claim), Settled::Lost(_)), "the first is not the second");
    assert!(matches!(scene.store.settle(&stale), Settled::Lost(_)));
    assert_eq!(scene.store.record(second.id()), Some(second));
    scene.assert_in_sync();
}

/// A store error while the end was recorded put the task back into the queue, and it ran twice. The
/// outcome was unknown, and had in fact been recorded.
#[test]
fn reg12_store_error_on_complete_does_not_rerun() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &by);
    let plan = finish(&running, &scene.end(&running, exited(0)), scene.stamp()).unwrap();
    let recorded = scene.store.settle(&plan);
    // The answer was lost. Whoever asks again is told the same, and nothing is written.
    assert_eq!(scene.store.settle(&plan), recorded);
    let Settled::Won(Some(record)) = recorded else { panic!("it was recorded") };
    assert!(matches!(record.task.status, Status::Complete(_)));
    assert_eq!(scene.store.list(KeyRange::STATUSES).len(), 1);
    scene.assert_in_sync();
}
