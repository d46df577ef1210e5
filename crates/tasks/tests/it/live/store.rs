//! The connection to the store: starting, submitting, listing, following.

use std::time::Duration;

use tasks::core::fsck::Finding;
use tasks::core::keys::{Key, KeyRange, StatusKey};
use tasks::core::status::Status;
use tasks::core::time::Epoch;
use tasks::core::transition::SubmitError;
use tasks::core::txn::{Op, Txn};
use tasks::store::{CancelError, Canceled, Error, Follower, SubmitFailed, Submitted, Update};
use tasks::wire;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::etcd::{self, Etcd};
use super::proxy::Proxy;
use super::waiting::{soon, until};
use crate::scene::spec;

fn keyed(key: &str) -> wire::TaskSpec {
    wire::TaskSpec { idempotency_key: key.to_owned(), ..spec() }
}

/// What was begun is given up when it is not wanted any more: the port and the directory are free.
#[tokio::test]
async fn store_startup_cancellation() {
    let folder = tempfile::tempdir().unwrap();
    let probe = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = probe.local_addr().unwrap();
    drop(probe);
    let service = etcd::service(&folder, address).await.unwrap();
    let canceled = CancellationToken::new();
    canceled.cancel();
    service.run(canceled).await.unwrap();

    TcpListener::bind(address).await.expect("the port is free again");
    let again = Etcd::start_on(folder, address).await;
    again.client().list(KeyRange::TASKS).await.expect("the directory is free again");
}

#[tokio::test]
async fn store_successful_startup() {
    let etcd = Etcd::start().await;
    let listed = etcd.client().list(KeyRange::TASKS).await.unwrap();
    assert!(listed.kvs.is_empty());
    let (folder, address) = etcd.stop().await;
    let again = Etcd::start_on(folder, address).await;
    assert_eq!(again.client().list(KeyRange::TASKS).await.unwrap().revision, listed.revision);
}

#[tokio::test]
async fn store_client_can_connect() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let Submitted { id, is_repeated } = client.submit(spec(), "me", soon()).await.unwrap();
    assert!(!is_repeated);
    let found = client.get(id).await.unwrap().expect("it was submitted");
    assert_eq!((found.task.submitted_by.as_str(), found.task.status.as_str()), ("me", "queued"));
    etcd.assert_in_sync().await;
}

/// A client that is made before its store finds it when it comes.
#[tokio::test]
async fn a_client_waits_for_its_store() {
    let probe = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = probe.local_addr().unwrap();
    drop(probe);
    let client = etcd::connect(address);
    let refused = client.list(KeyRange::TASKS).await.unwrap_err();
    assert!(refused.is_unknown(), "{refused}");
    let _etcd = Etcd::start_on(tempfile::tempdir().unwrap(), address).await;
    until("an answer", async || client.list(KeyRange::TASKS).await.ok()).await;
}

#[tokio::test]
async fn a_repeated_submit_is_the_same_and_another_spec_is_refused() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let first = client.submit(keyed("nightly"), "me", soon()).await.unwrap();
    let again = client.submit(keyed("nightly"), "me", soon()).await.unwrap();
    assert_eq!(again, Submitted { id: first.id, is_repeated: true });
    let other = wire::TaskSpec { command: "false".to_owned(), ..keyed("nightly") };
    let refused = client.submit(other, "me", soon()).await.unwrap_err();
    let SubmitFailed::Refused(SubmitError::OtherSpec { id }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(id, first.id);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn a_batch_has_a_result_for_each() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let mut specs = vec![keyed("a"), wire::TaskSpec::default(), keyed("b"), keyed("a")];
    specs.push(wire::TaskSpec { command: "false".to_owned(), ..keyed("b") });
    specs.extend((0..250).map(|_| spec()));
    let results = client.submit_all(specs, "me", soon()).await;
    assert_eq!(results.len(), 255);
    let id = |index: usize| results[index].as_ref().map(|submitted| submitted.id).ok();
    assert_eq!(id(0), id(3), "the same key is the same task");
    assert!(matches!(results[1], Err(SubmitFailed::Refused(SubmitError::Spec(_)))));
    assert!(matches!(results[4], Err(SubmitFailed::Refused(SubmitError::OtherSpec { .. }))));
    assert!(results[5..].iter().all(Result::is_ok));
    assert_eq!(client.list(KeyRange::TASKS).await.unwrap().kvs.len(), 252);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn pages_show_one_moment() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let specs = (0..25).map(|_| spec()).collect();
    client.submit_all(specs, "me", soon()).await;
    let first = client.page(None, None, 10).await.unwrap();
    etcd.submit(spec()).await;
    let (mut seen, mut after) = (first.tasks.len(), first.next_after);
    while after.is_some() {
        let page = client.page(after, Some(first.revision), 10).await.unwrap();
        assert_eq!(page.revision, first.revision);
        (seen, after) = (seen + page.tasks.len(), page.next_after);
    }
    assert_eq!(seen, 25, "what came later is in none");

    etcd.submit(spec()).await;
    etcd.compact().await;
    let error = client.page(first.next_after, Some(first.revision), 10).await.unwrap_err();
    assert!(matches!(error, Error::Compacted), "{error}");
}

#[tokio::test]
async fn canceling_again_is_success_and_canceling_nothing_is_not() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let id = etcd.submit(spec()).await;
    let first = client.cancel(id, "me", soon()).await.unwrap();
    assert!(matches!(&first.record.task.status, Status::Canceled(it) if it.by == "me"));
    assert!(!first.is_repeated);
    let again = client.cancel(id, "you", soon()).await.unwrap();
    assert_eq!(again, Canceled { is_repeated: true, ..first });
    etcd.assert_in_sync().await;

    assert_eq!(client.gc(Epoch(u64::MAX), soon()).await.unwrap(), 1);
    let gone = client.cancel(id, "me", soon()).await.unwrap_err();
    assert!(matches!(gone, CancelError::NotFound(of) if of == id), "{gone}");
}

#[tokio::test]
async fn gc_on_demand_deletes_what_ended_before_and_nothing_else() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let kept = etcd.submit(spec()).await;
    let specs = (0..150).map(|_| spec()).collect();
    for submitted in client.submit_all(specs, "me", soon()).await {
        client.cancel(submitted.unwrap().id, "me", soon()).await.unwrap();
    }
    assert_eq!(client.gc(Epoch(1), soon()).await.unwrap(), 0, "all ended after that");
    assert_eq!(client.gc(Epoch(u64::MAX), soon()).await.unwrap(), 150);
    let left = client.list(KeyRange::TASKS_AND_STATUSES).await.unwrap().kvs;
    let left: Vec<_> = left.iter().map(|kv| Key::parse(kv.key()).unwrap()).collect();
    assert_eq!(left, [Key::Task(kept), Key::Status(StatusKey::Queued(kept))]);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn fsck_finds_and_mends_status_keys() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let id = etcd.submit(spec()).await;
    let lost = Txn::read(vec![Op::Delete(Key::Status(StatusKey::Queued(id)))]);
    client.txn(&lost).await.unwrap();
    let found = client.fsck(&Default::default()).await.unwrap().findings;
    let [finding @ Finding::NoStatusKey { .. }] = found.as_slice() else { panic!("{found:?}") };
    assert!(client.repair(finding, soon()).await.unwrap());
    etcd.assert_in_sync().await;
    client.cancel(id, "me", soon()).await.unwrap();
    assert!(!client.repair(finding, soon()).await.unwrap(), "the task has changed since");
}

async fn next(follower: &mut Follower) -> Update {
    tokio::time::timeout_at(soon(), follower.next()).await.expect("an update")
}

/// The tasks that an update tells of.
fn told(update: &Update) -> Vec<Key> {
    let key = |key: &[u8]| Key::parse(key).expect("one of ours");
    match update {
        Update::Listed(kvs, _) => kvs.iter().map(|kv| key(kv.key())).collect(),
        Update::Changed(events) => events.iter().map(|event| key(event.kv().key())).collect(),
    }
}

#[tokio::test]
async fn a_follower_sees_a_list_and_then_changes() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let first = etcd.submit(spec()).await;
    let mut follower = client.follow(KeyRange::TASKS);
    let listed = next(&mut follower).await;
    assert!(matches!(listed, Update::Listed(..)));
    assert_eq!(told(&listed), [Key::Task(first)]);
    let second = etcd.submit(spec()).await;
    let changed = next(&mut follower).await;
    assert!(matches!(changed, Update::Changed(_)));
    assert_eq!(told(&changed), [Key::Task(second)]);
}

/// A store that comes back goes on where it was; one that has forgotten meanwhile is listed anew.
#[tokio::test]
async fn a_follower_outlives_its_store_and_what_that_forgets() {
    let etcd = Etcd::start().await;
    let mut follower = etcd.client().follow(KeyRange::TASKS);
    next(&mut follower).await;
    let (folder, address) = etcd.stop().await;
    let etcd = Etcd::start_on(folder, address).await;
    let first = etcd.submit(spec()).await;
    let changed = next(&mut follower).await;
    assert!(matches!(changed, Update::Changed(_)), "nothing was missed: {changed:?}");
    assert_eq!(told(&changed), [Key::Task(first)]);

    let (folder, _) = etcd.stop().await;
    let elsewhere = Etcd::start_on(folder, "127.0.0.1:0".parse().unwrap()).await;
    elsewhere.submit(spec()).await;
    elsewhere.submit(spec()).await;
    elsewhere.compact().await;
    let (folder, _) = elsewhere.stop().await;
    let _etcd = Etcd::start_on(folder, address).await;
    let listed = next(&mut follower).await;
    assert!(matches!(listed, Update::Listed(..)), "its place is forgotten: {listed:?}");
    assert_eq!(told(&listed).len(), 3);
}

/// A watch ends with whoever watches: when it is dropped, when it breaks, and when nobody takes what it
/// shows.
#[tokio::test]
async fn watch_does_not_leak() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let watching = |number| {
        let etcd = &etcd;
        until("watches", async move || (etcd.watches().await == number).then_some(()))
    };
    let mut dropped = client.follow(KeyRange::TASKS);
    next(&mut dropped).await;
    let follows = tokio::time::timeout(Duration::from_millis(200), dropped.next()).await;
    assert!(follows.is_err(), "nothing happens");
    watching(1).await;
    drop(dropped);
    watching(0).await;

    let proxy = Proxy::start(etcd.address()).await;
    let through = etcd::connect(proxy.address());
    let mut broken = through.follow(KeyRange::TASKS);
    next(&mut broken).await;
    let id = etcd.submit(spec()).await;
    assert_eq!(told(&next(&mut broken).await), [Key::Task(id)]);
    watching(1).await;
    proxy.mute();
    etcd.submit(spec()).await;
    proxy.until_lost().await;
    proxy.heal();
    assert!(!told(&next(&mut broken).await).is_empty());
    watching(1).await;
    drop((broken, through));

    let full = client.follow(KeyRange::TASKS);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let mut passing = tokio::task::JoinSet::new();
    passing.spawn(async move {
        let mut full = full;
        while sender.send(full.next().await).await.is_ok() {}
    });
    receiver.recv().await.expect("a list");
    for _ in 0..4 {
        etcd.submit(spec()).await;
    }
    watching(1).await;
    drop(receiver);
    passing.join_next().await.expect("it was spawned").expect("it does not panic");
    watching(0).await;
}
