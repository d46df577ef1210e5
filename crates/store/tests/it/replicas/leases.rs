//! Leases while the writer's role changes hands.

use etcd_api::{
    etcdserverpb::{
        LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseTimeToLiveRequest,
        PutRequest,
    },
    mvccpb::EventType,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::{leader, move_leader, start, value};
use crate::harness::{Clients, refusal, soon};

/// A stream that keeps leases alive.
struct KeepAlive {
    requests: mpsc::Sender<LeaseKeepAliveRequest>,
    answers: Streaming<LeaseKeepAliveResponse>,
}

// === impl KeepAlive ===

impl KeepAlive {
    async fn open(clients: &mut Clients) -> Self {
        let (requests, queue) = mpsc::channel(1);
        let answers = clients.lease.lease_keep_alive(ReceiverStream::new(queue));
        let answers = answers.await.expect("anybody may").into_inner();
        Self { requests, answers }
    }

    async fn ttl(&mut self, id: i64) -> Result<i64, Status> {
        self.requests.send(LeaseKeepAliveRequest { id }).await.expect("it is open");
        let answer = soon(self.answers.message()).await?;
        Ok(answer.expect("it goes on").ttl)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_outlive_their_writer_with_their_keys() {
    let replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let mut clients = replicas[1 - old].store.clients().await;
    let request = LeaseGrantRequest { ttl: 5, id: 77 };
    clients.lease.lease_grant(request).await.expect("granted");
    let put = PutRequest { key: "leased".into(), lease: 77, ..Default::default() };
    clients.kv.put(put).await.expect("a lease can be used");
    replicas[old].seat.cut_off(true);
    assert_eq!(leader(&replicas, Some(old)).await, 1 - old);
    let request = LeaseTimeToLiveRequest { id: 77, keys: true };
    let left = clients.lease.lease_time_to_live(request).await.expect("it lives").into_inner();
    assert_eq!((left.granted_ttl, left.keys.len()), (5, 1));
    clients.change_of("leased", EventType::Delete).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_not_called_dead_by_who_lost_the_role() {
    let replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let mut clients = replicas[old].store.clients().await;
    let request = LeaseGrantRequest { ttl: 600, id: 77 };
    clients.lease.lease_grant(request).await.expect("granted");
    let mut kept = KeepAlive::open(&mut clients).await;
    assert_eq!(kept.ttl(77).await.expect("it lives"), 600);
    move_leader(&replicas, old, 1 - old).await;
    assert_eq!(refusal(kept.ttl(77).await), "Unavailable: etcdserver: leader changed");
    let mut kept = KeepAlive::open(&mut clients).await;
    assert_eq!(kept.ttl(77).await.expect("the new writer knows it"), 600);
    // The way back is the same.
    move_leader(&replicas, 1 - old, old).await;
    assert!(refusal(kept.ttl(77).await).starts_with("Unavailable"));
    let mut kept = KeepAlive::open(&mut clients).await;
    assert_eq!(kept.ttl(77).await.expect("it knows it again"), 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_does_not_make_followers_read_everything_but_the_keys() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let seat = &replicas[1 - holder].seat;
    let mut writer = replicas[holder].store.clients().await;
    let mut reader = replicas[1 - holder].store.clients().await;
    writer.put("k", "0").await;
    assert_eq!(value(&mut reader, "k").await.as_deref(), Some("0"));
    let before = seat.metas();
    for id in 1..10 {
        writer.lease.lease_grant(LeaseGrantRequest { id, ttl: 600 }).await.expect("granted");
        assert_eq!(value(&mut reader, "k").await.as_deref(), Some("0"));
    }
    assert_eq!(seat.metas(), before);
    move_leader(&replicas, holder, 1 - holder).await;
    let request = LeaseTimeToLiveRequest { id: 9, keys: false };
    let left = reader.lease.lease_time_to_live(request).await.expect("told").into_inner();
    assert_eq!(left.granted_ttl, 600);
}
