//! Leases, by the numbers of their lines in the specification.

use etcd_api::{
    etcdserverpb::{
        DeleteRangeRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest,
        LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, PutRequest,
        WatchCreateRequest, WatchRequest, watch_request::RequestUnion,
    },
    mvccpb::EventType,
};
use futures::{StreamExt, stream};
use tokio::time::{Duration, Instant};

use crate::{
    harness::{Clients, Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
};

async fn grant(clients: &mut Clients, id: i64, ttl: i64) -> LeaseGrantResponse {
    let request = LeaseGrantRequest { id, ttl };
    clients.lease.lease_grant(request).await.expect("it is granted").into_inner()
}

async fn put(clients: &mut Clients, key: &'static str, lease: i64) {
    let request = PutRequest { key: key.into(), lease, ..Default::default() };
    clients.kv.put(request).await.expect("the lease exists");
}

/// Time left and granted, as the store says.
async fn ttl(clients: &mut Clients, id: i64) -> (i64, i64) {
    let request = LeaseTimeToLiveRequest { id, keys: false };
    let answer = clients.lease.lease_time_to_live(request).await.expect("anybody may ask");
    let answer = answer.into_inner();
    (answer.ttl, answer.granted_ttl)
}

#[tokio::test]
async fn l33_ids_are_kept_or_made_up() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let made_up = grant(&mut clients, 0, 100).await;
    assert!(made_up.id > 0);
    assert_eq!(made_up.header.unwrap().revision, 1, "a lease is no write of a key");
    let kept = grant(&mut clients, 7, 100).await;
    assert_eq!((kept.id, kept.ttl), (7, 100));
    assert_eq!(
        refusal(clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 5 }).await),
        "FailedPrecondition: etcdserver: lease already exists"
    );
}

#[tokio::test]
async fn l33_times_have_bounds() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for small in [-1, 0, 1, 2] {
        assert_eq!(grant(&mut clients, 0, small).await.ttl, 2);
    }
    assert_eq!(grant(&mut clients, 0, 9_000_000_000).await.ttl, 9_000_000_000);
    assert_eq!(
        refusal(clients.lease.lease_grant(LeaseGrantRequest { id: 0, ttl: 9_000_000_001 }).await),
        "OutOfRange: etcdserver: too large lease TTL"
    );
}

#[tokio::test]
async fn l34_keys_go_when_the_time_is_over_and_not_before() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let started = Instant::now();
    grant(&mut clients, 7, 2).await;
    put(&mut clients, "a", 7).await;
    clients.change_of("a", EventType::Delete).await;
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(2), "{took:?}");
    // A second late at most, and a second more for a machine under load.
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(ttl(&mut clients, 7).await, (-1, 0));
}

#[tokio::test]
async fn l35_a_revoke_deletes_all_keys_in_one_revision_and_in_order() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 7, 100).await;
    for key in ["b", "c", "a"] {
        put(&mut clients, key, 7).await;
    }
    let create = WatchCreateRequest {
        key: "\0".into(),
        range_end: "\0".into(),
        start_revision: 5,
        ..Default::default()
    };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let requests = stream::iter([request]).chain(stream::pending());
    let mut answers = clients.watch.watch(requests).await.unwrap().into_inner();
    assert!(soon(answers.message()).await.unwrap().unwrap().created);
    let revoked = clients.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await.unwrap();
    assert_eq!(revoked.into_inner().header.unwrap().revision, 5);
    let events = soon(answers.message()).await.unwrap().unwrap().events;
    let deleted: Vec<_> = events
        .iter()
        .map(|event| (event.kind(), event.kv().key().to_vec(), event.kv().mod_revision()))
        .collect();
    let delete = |key: &[u8]| (EventType::Delete, key.to_vec(), 5);
    assert_eq!(deleted, [delete(b"a"), delete(b"b"), delete(b"c")]);
}

#[tokio::test]
async fn l35_an_unknown_lease_is_no_end_of_the_stream() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    assert_eq!(
        refusal(clients.lease.lease_revoke(LeaseRevokeRequest { id: 1 }).await),
        "NotFound: etcdserver: requested lease not found"
    );
    grant(&mut clients, 7, 100).await;
    let ids = [1, 7, 1].map(|id| LeaseKeepAliveRequest { id });
    let answers = clients.lease.lease_keep_alive(stream::iter(ids)).await.unwrap().into_inner();
    let ttls: Vec<_> = answers.map(|answer| answer.unwrap().ttl).collect().await;
    assert_eq!(ttls, [0, 100, 0]);
}

#[tokio::test]
async fn l36_what_is_left_of_a_lease() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    assert_eq!(ttl(&mut clients, 7).await, (-1, 0));
    grant(&mut clients, 7, 100).await;
    put(&mut clients, "a", 7).await;
    let (left, granted) = ttl(&mut clients, 7).await;
    assert!((98..=100).contains(&left));
    assert_eq!(granted, 100);
    for (keys, expected) in [(false, vec![]), (true, vec!["a"])] {
        let request = LeaseTimeToLiveRequest { id: 7, keys };
        let answer = clients.lease.lease_time_to_live(request).await.unwrap().into_inner();
        assert_eq!(answer.keys, expected);
    }
    let list = clients.lease.lease_leases(LeaseLeasesRequest {}).await.unwrap().into_inner();
    assert_eq!(list.leases.iter().map(|lease| lease.id).collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn l37_a_revoked_lease_cannot_be_kept_alive() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 7, 100).await;
    clients.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await.unwrap();
    let asked = stream::iter([LeaseKeepAliveRequest { id: 7 }]);
    let mut answers = clients.lease.lease_keep_alive(asked).await.unwrap().into_inner();
    assert_eq!(soon(answers.message()).await.unwrap().unwrap().ttl, 0);
    assert_eq!(ttl(&mut clients, 7).await, (-1, 0));
}

#[tokio::test]
async fn leases_and_their_keys_survive_a_restart_with_their_full_time() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    grant(&mut clients, 7, 100).await;
    put(&mut clients, "a", 7).await;
    drop(clients);
    let store = store.restart().await;
    let request = LeaseTimeToLiveRequest { id: 7, keys: true };
    let answer = store.clients().await.lease.lease_time_to_live(request).await.unwrap();
    let answer = answer.into_inner();
    assert!(answer.ttl >= 98);
    assert_eq!(answer.keys, ["a"]);
}

/// The end of a lease with more keys than one record takes stopped the store, and did so again after
/// every restart.
#[tokio::test]
async fn l35_a_lease_with_too_many_keys_for_one_record_ends_all_the_same() {
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    // Room for two tombstones, or for one put.
    journal.bound_records(60);
    let store = Store::start_over(journal, folder, |_| {}).await;
    let mut clients = store.clients().await;
    grant(&mut clients, 7, 100).await;
    for key in ["a", "b", "c", "d", "e"] {
        put(&mut clients, key, 7).await;
    }
    let request =
        DeleteRangeRequest { key: "a".into(), range_end: "z".into(), ..Default::default() };
    assert_eq!(
        refusal(clients.kv.delete_range(request).await),
        "InvalidArgument: etcdserver: request is too large"
    );
    let revoked = clients.lease.lease_revoke(LeaseRevokeRequest { id: 7 }).await.unwrap();
    assert_eq!(revoked.into_inner().header.unwrap().revision, 9, "three more");
    assert_eq!(clients.all_at(0).await.kvs, []);
    assert_eq!(ttl(&mut clients, 7).await, (-1, 0));
}
