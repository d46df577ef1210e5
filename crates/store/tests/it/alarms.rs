//! Alarms that an operator raises. What a full store does is in `limits`.

use etcd_api::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmType, CompactionRequest, DeleteRangeRequest, LeaseGrantRequest,
    LeaseKeepAliveRequest, LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    PutRequest, RangeRequest, RequestOp, StatusRequest, TxnRequest, alarm_request::AlarmAction,
    request_op::Request as Op,
};
use futures::stream;

use crate::{
    harness::{Clients, Store, refusal, soon},
    watching::{Watching, range},
};

const CORRUPT: &str = "DataLoss: etcdserver: corrupt cluster";

async fn alarm(clients: &mut Clients, action: AlarmAction, kind: AlarmType) -> Vec<AlarmMember> {
    let request = AlarmRequest { action: action.into(), alarm: kind.into(), member_id: 5 };
    clients.maintenance.alarm(request).await.unwrap().into_inner().alarms
}

fn put(key: &str) -> PutRequest {
    PutRequest { key: key.to_owned().into(), ..Default::default() }
}

fn get(key: &str) -> RangeRequest {
    RangeRequest { key: key.to_owned().into(), ..Default::default() }
}

fn txn(op: Op) -> TxnRequest {
    TxnRequest { success: vec![RequestOp { request: Some(op) }], ..Default::default() }
}

/// Whoever left out the kind raised an alarm that nobody knows: probes called the store ill until it
/// was disarmed. etcd does nothing.
#[tokio::test]
async fn an_alarm_of_no_kind_was_raised() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    assert_eq!(alarm(&mut clients, AlarmAction::Activate, AlarmType::None).await, []);
    assert_eq!(alarm(&mut clients, AlarmAction::Get, AlarmType::None).await, []);
    let status = clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner();
    assert!(status.errors.is_empty(), "{:?}", status.errors);
}

#[tokio::test]
async fn what_was_called_corrupt_takes_no_writes() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 100 }).await.unwrap();
    clients.put("a", "1").await;
    alarm(&mut clients, AlarmAction::Activate, AlarmType::Corrupt).await;

    let delete = DeleteRangeRequest { key: "a".into(), ..Default::default() };
    let compact = CompactionRequest { revision: 2, physical: false };
    let grant = LeaseGrantRequest { id: 8, ttl: 100 };
    let revoke = LeaseRevokeRequest { id: 7 };
    assert_eq!(refusal(clients.kv.put(put("a")).await), CORRUPT);
    assert_eq!(refusal(clients.kv.delete_range(delete).await), CORRUPT);
    assert_eq!(refusal(clients.kv.txn(txn(Op::RequestPut(put("a")))).await), CORRUPT);
    assert_eq!(refusal(clients.kv.compact(compact).await), CORRUPT);
    assert_eq!(refusal(clients.lease.lease_grant(grant).await), CORRUPT);
    assert_eq!(refusal(clients.lease.lease_revoke(revoke).await), CORRUPT);

    alarm(&mut clients, AlarmAction::Deactivate, AlarmType::Corrupt).await;
    clients.put("a", "2").await;
}

/// Reads, watches and leases were refused with the writes, so that nobody could look at what was there
/// or keep a lease alive. etcd goes on with them.
#[tokio::test]
async fn what_was_called_corrupt_could_not_be_read() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 100 }).await.unwrap();
    clients.put("a", "1").await;
    alarm(&mut clients, AlarmAction::Activate, AlarmType::Corrupt).await;

    assert_eq!(clients.kv.range(get("a")).await.unwrap().into_inner().count, 1);
    assert!(clients.kv.txn(txn(Op::RequestRange(get("a")))).await.unwrap().into_inner().succeeded);
    let mut pieces = clients.kv.range_stream(get("a")).await.unwrap().into_inner();
    assert!(soon(pieces.message()).await.unwrap().is_some());
    Watching::of(&mut clients, range("a", "", 0)).await;
    let alive = stream::iter([LeaseKeepAliveRequest { id: 7 }]);
    let mut answers = clients.lease.lease_keep_alive(alive).await.unwrap().into_inner();
    assert_eq!(soon(answers.message()).await.unwrap().unwrap().ttl, 100);
    let left = LeaseTimeToLiveRequest { id: 7, keys: true };
    assert_eq!(clients.lease.lease_time_to_live(left).await.unwrap().into_inner().granted_ttl, 100);
    let leases = clients.lease.lease_leases(LeaseLeasesRequest {}).await.unwrap().into_inner();
    assert_eq!(leases.leases.len(), 1);
}
