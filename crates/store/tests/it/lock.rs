//! `v3lockpb.Lock`. The keys are part of the protocol: clients stand in the same line by themselves.

use std::time::Duration;

use etcd_api::{
    etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, RangeRequest},
    mvccpb::EventType,
    v3lockpb::{LockRequest, LockResponse, UnlockRequest},
};
use tokio::task::JoinSet;
use tonic::Status;

use crate::harness::{Clients, Store, refusal, soon};

const NAME: &str = "n";

fn lock(lease: i64) -> LockRequest {
    LockRequest { name: NAME.into(), lease }
}

async fn grant(clients: &mut Clients, id: i64) {
    let request = LeaseGrantRequest { ttl: 600, id };
    clients.lease.lease_grant(request).await.expect("the id is free");
}

async fn hold(clients: &mut Clients, lease: i64) {
    grant(clients, lease).await;
    clients.lock.lock(lock(lease)).await.expect("the lock is free");
}

/// Asks for the lock and waits until the caller stands in line for it.
async fn stand(clients: &mut Clients, lease: i64) -> JoinSet<Result<LockResponse, Status>> {
    grant(clients, lease).await;
    let mut locks = clients.lock.clone();
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { locks.lock(lock(lease)).await.map(tonic::Response::into_inner) });
    clients.change_of(&format!("n/{lease:x}"), EventType::Put).await;
    waiting
}

#[tokio::test]
async fn a_free_lock_is_held_at_once() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 0x1a).await;
    let held = clients.lock.lock(lock(0x1a)).await.unwrap().into_inner();
    assert_eq!(held.key, "n/1a");
    let found = clients.kv.range(RangeRequest { key: held.key, ..Default::default() }).await;
    let found = found.unwrap().into_inner();
    assert_eq!(found.kvs[0].lease(), 0x1a);
    assert_eq!(found.kvs[0].create_revision(), held.header.unwrap().revision);
}

#[tokio::test]
async fn a_negative_lease_is_written_with_its_sign() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, -5).await;
    assert_eq!(clients.lock.lock(lock(-5)).await.unwrap().into_inner().key, "n/-5");
}

#[tokio::test]
async fn the_holder_may_ask_again() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 1).await;
    let first = clients.lock.lock(lock(1)).await.unwrap().into_inner();
    let again = clients.lock.lock(lock(1)).await.unwrap().into_inner();
    assert_eq!(again, first);
}

#[tokio::test]
async fn without_a_lease_one_of_a_minute_is_granted() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let held = clients.lock.lock(lock(0)).await.unwrap().into_inner();
    let found = clients.kv.range(RangeRequest { key: held.key, ..Default::default() }).await;
    let id = found.unwrap().into_inner().kvs[0].lease();
    let asked = LeaseTimeToLiveRequest { id, keys: false };
    let lease = clients.lease.lease_time_to_live(asked).await.unwrap().into_inner();
    assert_eq!(lease.granted_ttl, 60);
}

#[tokio::test]
async fn waiters_get_the_lock_in_the_order_they_came() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut waiting = Vec::new();
    for id in [3, 1, 2] {
        waiting.push(stand(&mut clients, id).await);
    }
    let (mut first, rest) = (waiting.remove(0), waiting);
    let mut held = soon(first.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(held.key, "n/3");
    for (mut next, key) in rest.into_iter().zip(["n/1", "n/2"]) {
        assert!(next.try_join_next().is_none());
        clients.lock.unlock(UnlockRequest { key: held.key }).await.unwrap();
        held = soon(next.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(held.key, key);
    }
}

#[tokio::test]
async fn the_end_of_a_lease_passes_the_lock_on() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    hold(&mut clients, 1).await;
    let mut second = stand(&mut clients, 2).await;
    let revoked = clients.lease.lease_revoke(LeaseRevokeRequest { id: 1 }).await.unwrap();
    let held = soon(second.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(held.key, "n/2");
    // The header is of the moment the lock was held.
    assert_eq!(held.header, revoked.into_inner().header);
}

#[tokio::test]
async fn a_waiter_whose_lease_has_ended_holds_nothing() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    hold(&mut clients, 1).await;
    let mut second = stand(&mut clients, 2).await;
    for id in [2, 1] {
        clients.lease.lease_revoke(LeaseRevokeRequest { id }).await.unwrap();
    }
    let answer = soon(second.join_next()).await.unwrap().unwrap();
    assert_eq!(refusal(answer), "Unknown: mutex: session is expired");
}

/// A waiter that went away must not hold up those behind it until its lease ends.
#[tokio::test]
async fn a_caller_that_goes_away_leaves_the_line() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    hold(&mut clients, 1).await;
    let mut second = stand(&mut clients, 2).await;
    second.shutdown().await;
    clients.change_of("n/2", EventType::Delete).await;
}

/// A place given up must not be the lock itself, which the same lease holds from before.
#[tokio::test]
async fn what_was_held_before_stays_held() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 1).await;
    let held = clients.lock.lock(lock(1)).await.unwrap().into_inner();
    let mut again = clients.lock.clone();
    // Gone before it is answered, or answered: the lock is held either way.
    drop(tokio::time::timeout(Duration::ZERO, again.lock(lock(1))).await);
    let found = clients.kv.range(RangeRequest { key: held.key, ..Default::default() }).await;
    assert_eq!(found.unwrap().into_inner().count, 1);
}

#[tokio::test]
async fn a_stop_of_the_store_leaves_no_waiter_behind() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    hold(&mut clients, 1).await;
    let _waiting = stand(&mut clients, 2).await;
    let store = soon(store.restart()).await;
    let all = RangeRequest { key: "n/".into(), range_end: "n0".into(), ..Default::default() };
    let left = store.clients().await.kv.range(all).await.unwrap().into_inner();
    assert_eq!(left.kvs.iter().map(|kv| kv.key()).collect::<Vec<_>>(), [b"n/1"]);
}

#[tokio::test]
async fn refusals_have_etcds_text_and_no_code() {
    let store = Store::start().await;
    let locks = &mut store.clients().await.lock;
    assert_eq!(
        refusal(locks.lock(lock(77)).await),
        "Unknown: etcdserver: requested lease not found"
    );
    assert_eq!(
        refusal(locks.unlock(UnlockRequest::default()).await),
        "Unknown: etcdserver: key is not provided"
    );
    locks.unlock(UnlockRequest { key: "nothing".into() }).await.unwrap();
}

#[tokio::test]
async fn a_lock_needs_the_rights_of_its_caller() {
    let store = Store::start().await;
    let mut anybody = store.clients().await;
    anybody.add_user("alice").await;
    anybody.enable_auth().await;
    assert_eq!(
        refusal(anybody.lock.lock(lock(0)).await),
        "Unknown: etcdserver: user name is empty"
    );
    let mut alice = store.login("alice").await;
    assert_eq!(refusal(alice.lock.lock(lock(0)).await), "Unknown: etcdserver: permission denied");
    let mut root = store.login("root").await;
    root.lock.lock(lock(0)).await.unwrap();
}

/// They were told nothing, and every stop took the five seconds after which they are cut off.
#[tokio::test]
async fn waiters_held_up_the_end_of_the_store() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    hold(&mut clients, 1).await;
    let mut waiting = stand(&mut clients, 2).await;
    store.stop().await;
    let answer = soon(waiting.join_next()).await.unwrap().unwrap();
    assert_eq!(refusal(answer), "Unknown: etcdserver: server stopped");
}
