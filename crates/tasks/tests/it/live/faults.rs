//! What happens when nodes die, when they are cut off, and when they come back.

use tasks::core::id::NodeId;
use tasks::core::keys::{Key, KeyRange};
use tasks::core::record::Record;
use tasks::core::status::{FailedReason, Status};
use tasks::core::time::Epoch;
use tasks::core::txn::LeaseId;
use tasks::wire;

use super::computer::{Computer, TTL, flagged, steps};
use super::etcd::Etcd;
use super::proxy::Proxy;
use super::waiting::{soon, until};

/// Ends the lease of a node, as the store does when nobody keeps it alive.
async fn expire(etcd: &Etcd, node: NodeId) {
    let client = etcd.client();
    let nodes = client.list(KeyRange::NODES).await.expect("it answers").kvs;
    let key = Key::Node(node).to_bytes();
    let found = nodes.iter().find(|kv| kv.key() == key).expect("it is registered");
    client.revoke(LeaseId(found.lease())).await.expect("it is revoked");
}

#[track_caller]
fn assert_lost(record: &Record) {
    let Status::Failed(failed) = &record.task.status else { panic!("{:?}", record.task.status) };
    assert_eq!(failed.reason, FailedReason::NodeLost);
}

#[tokio::test]
async fn node_delete_requeues_flagged_fails_unflagged() {
    let etcd = Etcd::start().await;
    let first = Computer::new(etcd.address());
    let daemon = first.start().await;
    let again = etcd.submit(flagged("sleep 1 exit 4")).await;
    let never = etcd.submit(steps("sleep 1000")).await;
    daemon.running(again).await;
    daemon.running(never).await;
    let node = daemon.registered().await;
    daemon.crash().await;

    let computer = Computer::new(etcd.address());
    let second = computer.start().await;
    expire(&etcd, node).await;
    assert_lost(&second.ended(never).await);
    let ended = second.ended(again).await;
    let Status::Complete(complete) = &ended.task.status else { panic!("{:?}", ended.task.status) };
    assert_eq!(complete.exit.code, 4);
    let [lost, ran] = ended.task.attempts.as_slice() else { panic!("two attempts") };
    assert!(lost.fence < ran.fence && lost.host != ran.host);
    assert_eq!(ended.task.counters.cluster_restarts, 1);
    etcd.assert_in_sync().await;
}

/// The lease outlives the time it was granted for, as long as somebody keeps it.
#[tokio::test]
async fn a_lease_is_kept_beyond_its_time() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let node = daemon.registered().await;
    let task = etcd.submit(steps(&format!("sleep {}", TTL.as_secs() + 2))).await;
    let ended = daemon.ended(task).await;
    assert!(matches!(ended.task.status, Status::Complete(_)), "{:?}", ended.task.status);
    assert_eq!(daemon.registered().await, node);
    assert!((daemon.metric("windlass_node_fenced_total")).abs() < 1e-9);
}

/// A node that is cut off kills what it runs before others could take it, and comes back as another.
#[tokio::test]
async fn a_node_cut_off_kills_everything_in_time() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let computer = Computer::new(proxy.address());
    let daemon = computer.start().await;
    let before = daemon.registered().await;
    let again = etcd.submit(flagged("stubborn sleep 1000")).await;
    daemon.running(again).await;
    computer.attempts(1).await;
    proxy.cut();
    daemon.standing(|standing| standing.node.is_none()).await;
    computer.attempts(0).await;
    proxy.heal();
    let after = daemon.registered().await;
    assert_ne!(before, after);
    let taken = daemon.until(again, "another attempt", |record| record.task.attempts.len() == 2);
    let taken = taken.await;
    let [lost, runs] = taken.task.attempts.as_slice() else { panic!("two attempts") };
    assert_eq!((lost.node, runs.node), (before, after));
    assert!(lost.fence < runs.fence);
    assert!((daemon.metric("windlass_node_fenced_total") - 1.0).abs() < 1e-9);
}

/// A result that could not be told is on disk, and the next daemon tells it before anything else.
#[tokio::test]
async fn a_new_daemon_publishes_the_results_it_finds() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let computer = Computer::new(proxy.address());
    let daemon = computer.start().await;
    let before = daemon.registered().await;
    let task = etcd.submit(steps("sleep 1 exit 7")).await;
    daemon.running(task).await;
    computer.attempts(1).await;
    proxy.cut();
    computer.attempts(0).await;
    daemon.crash().await;
    proxy.heal();

    let daemon = computer.start().await;
    let ended = daemon.ended(task).await;
    let Status::Complete(complete) = &ended.task.status else { panic!("{:?}", ended.task.status) };
    assert_eq!((complete.exit.code, complete.node), (7, before));
    assert_eq!(ended.task.attempts.len(), 1);
    etcd.assert_in_sync().await;
}

/// What an earlier daemon had was left running, and its keys stayed until the lease ended.
#[tokio::test]
async fn reg10_restart_leaves_no_containers_or_keys() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let before = daemon.registered().await;
    let again = etcd.submit(flagged("sleep 1000")).await;
    let never = etcd.submit(steps("sleep 1000")).await;
    daemon.running(again).await;
    daemon.running(never).await;
    computer.attempts(2).await;
    daemon.crash().await;

    let daemon = computer.start().await;
    let after = daemon.registered().await;
    assert_ne!(before, after);
    assert_lost(&daemon.ended(never).await);
    let taken = daemon.until(again, "another attempt", |record| record.task.attempts.len() == 2);
    taken.await;
    let [only] = computer.attempts(1).await.try_into().expect("one attempt");
    assert_eq!((only.task, only.number), (again.0, 2));
    assert_eq!(etcd.nodes().await, [Key::Node(after)], "the old one was given up at once");
    etcd.assert_in_sync().await;
}

/// A task was known by its version, which begins again at 1 when its key is made anew.
#[tokio::test]
async fn reg11_delete_and_recreate_is_not_same_version() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let client = etcd.client();
    let keyed = wire::TaskSpec { idempotency_key: "nightly".to_owned(), ..steps("exit 0") };
    let id = etcd.submit(keyed.clone()).await;
    let first = daemon.ended(id).await;
    client.gc(Epoch(u64::MAX), soon()).await.unwrap();
    assert_eq!(etcd.submit(keyed).await, id);
    let second = daemon.ended(id).await;
    assert!(second.created > first.modified, "another task under the same key");
    assert_eq!(second.task.attempts.len(), 1);
    etcd.assert_in_sync().await;
}

/// An error of the store while the end was recorded put the task back, and it ran twice.
#[tokio::test]
async fn reg12_store_error_on_complete_does_not_rerun() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::start(etcd.address()).await;
    let computer = Computer::new(proxy.address());
    let daemon = computer.start().await;
    let client = etcd.client();
    let task = etcd.submit(flagged("sleep 1 exit 0")).await;
    daemon.running(task).await;
    computer.attempts(1).await;
    proxy.mute();
    until("the end", async || {
        let record = client.get(task).await.ok()??;
        record.task.status.is_final().then_some(())
    })
    .await;
    let recorded = client.get(task).await.unwrap().unwrap();
    proxy.heal();
    let next = etcd.submit(steps("exit 0")).await;
    daemon.ended(next).await;
    let record = client.get(task).await.unwrap().unwrap();
    assert_eq!(record, recorded, "whoever asks again is told the same");
    assert_eq!(record.task.attempts.len(), 1);
    etcd.assert_in_sync().await;
}

/// A store that goes away and comes back within a lease's time stops nobody.
#[tokio::test]
async fn a_store_that_restarts_is_found_again() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let node = daemon.registered().await;
    let task = etcd.submit(steps("sleep 2 exit 0")).await;
    daemon.running(task).await;
    let (folder, address) = etcd.stop().await;
    let etcd = Etcd::start_on(folder, address).await;
    let ended = daemon.ended(task).await;
    assert!(matches!(ended.task.status, Status::Complete(_)));
    assert_eq!(daemon.registered().await, node);
    etcd.assert_in_sync().await;
}

/// A node that starts before its store waits for it.
#[tokio::test]
async fn a_node_waits_for_its_store() {
    let etcd = Etcd::start().await;
    let (folder, address) = etcd.stop().await;
    let computer = Computer::new(address);
    let daemon = computer.start_unregistered().await;
    assert_eq!(daemon.handle().standing().node, None);
    let etcd = Etcd::start_on(folder, address).await;
    let task = etcd.submit(steps("exit 0")).await;
    daemon.registered().await;
    daemon.ended(task).await;
    daemon.stop().await;
}
