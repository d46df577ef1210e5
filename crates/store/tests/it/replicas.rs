//! Several stores over one journal: whoever is asked, there is one store.

use std::{net::TcpListener, sync::Arc};

use etcd_api::{
    etcdserverpb::{
        AlarmRequest, AuthUserAddRequest, AuthUserChangePasswordRequest, AuthUserListRequest,
        AuthenticateRequest, HashKvRequest, LeaseGrantRequest, LeaseKeepAliveRequest,
        LeaseKeepAliveResponse, LeaseTimeToLiveRequest, MemberListRequest, MoveLeaderRequest,
        PutRequest, RangeRequest, SnapshotRequest, StatusRequest, StatusResponse,
    },
    mvccpb::EventType,
    v3lockpb::LockRequest,
};
use futures::future::join_all;
use store::{Address, Listener};
use tokio::{
    sync::mpsc,
    time::{Duration, interval},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::{
    harness::{Clients, PASSWORD, Store, new_folder, refusal, soon},
    together::{Seat, Together},
};

/// How often a level is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

struct Replica {
    store: Store,
    seat: Arc<Seat>,
}

/// Starts as many stores over one journal.
async fn start(count: usize) -> Vec<Replica> {
    let together = Together::new(new_folder());
    let mut replicas = Vec::new();
    for number in 0..count {
        let seat = together.seat();
        let port = free_port();
        let store = Store::start_over(seat.clone(), new_folder(), |options| {
            options.name = format!("replica{number}");
            let address = Address::Tcp(([127, 0, 0, 1], port).into());
            options.peer_listeners = vec![Listener { address, tls: None }];
            options.advertise_peer_urls = vec![format!("http://127.0.0.1:{port}")];
        });
        replicas.push(Replica { store: store.await, seat });
    }
    leader(&replicas, None).await;
    replicas
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

async fn status(replica: &Replica) -> StatusResponse {
    let mut clients = replica.store.clients().await;
    clients.maintenance.status(StatusRequest {}).await.expect("it answers").into_inner()
}

/// The place of the one that writes, once all but `without` agree on it.
async fn leader(replicas: &[Replica], without: Option<usize>) -> usize {
    let agreed = async {
        let mut looks = interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let mut told = Vec::new();
            for index in (0..replicas.len()).filter(|index| Some(*index) != without) {
                let status = status(&replicas[index]).await;
                told.push((index, status.header.expect("a header").member_id, status.leader));
            }
            let leader = told[0].2;
            let is_agreed = told.iter().all(|each| each.2 == leader);
            if let Some((index, ..)) = told.iter().find(|each| is_agreed && each.1 == leader) {
                return *index;
            }
        }
    };
    soon(agreed).await
}

/// Looks until it is so.
async fn until(is_so: impl Fn() -> bool) {
    let looking = async {
        let mut looks = interval(LOOK_EVERY);
        while !is_so() {
            looks.tick().await;
        }
    };
    soon(looking).await;
}

/// Hands the role from one to another, and waits until both know.
async fn move_leader(replicas: &[Replica], from: usize, to: usize) {
    let target_id = status(&replicas[to]).await.header.expect("a header").member_id;
    let mut clients = replicas[from].store.clients().await;
    let request = MoveLeaderRequest { target_id };
    clients.maintenance.move_leader(request).await.expect("it is handed over");
    assert_eq!(leader(replicas, None).await, to);
}

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

fn get(key: &str) -> RangeRequest {
    RangeRequest { key: key.to_owned().into(), ..Default::default() }
}

async fn value(clients: &mut Clients, key: &str) -> Option<String> {
    let read = clients.kv.range(get(key)).await.expect("it may be read").into_inner();
    read.kvs.first().map(|kv| String::from_utf8_lossy(kv.value()).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_writes_all_show() {
    let replicas = start(3).await;
    for (number, writer) in replicas.iter().enumerate() {
        let key = format!("k{number}");
        let revision = writer.store.clients().await.put(&key, "v").await;
        for reader in &replicas {
            let mut clients = reader.store.clients().await;
            assert_eq!(value(&mut clients, &key).await.as_deref(), Some("v"));
            let header = clients.all_at(0).await.header.expect("a header");
            assert!(header.revision >= revision);
            clients.change_of(&key, EventType::Put).await;
        }
    }
    let mut ids = Vec::new();
    for replica in &replicas {
        let header = status(replica).await.header.expect("a header");
        ids.push((header.cluster_id, header.member_id));
    }
    assert!(ids.iter().all(|each| each.0 == ids[0].0), "one cluster: {ids:?}");
    assert!(ids[0].1 != ids[1].1 && ids[1].1 != ids[2].1, "three members: {ids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_services_work_through_a_follower() {
    let replicas = start(2).await;
    let follower = 1 - leader(&replicas, None).await;
    let mut clients = replicas[follower].store.clients().await;
    let request = LeaseGrantRequest { ttl: 600, id: 0 };
    let lease = clients.lease.lease_grant(request).await.expect("granted").into_inner().id;
    let put = PutRequest { key: "leased".into(), lease, ..Default::default() };
    clients.kv.put(put).await.expect("a lease can be used");
    let request = LeaseTimeToLiveRequest { id: lease, keys: true };
    let left = clients.lease.lease_time_to_live(request).await.expect("it lives").into_inner();
    assert_eq!((left.granted_ttl, left.keys.len()), (600, 1));
    let lock = LockRequest { name: "lock".into(), lease };
    clients.lock.lock(lock).await.expect("it can be locked");
    clients.maintenance.alarm(AlarmRequest::default()).await.expect("alarms are told");
    let listed = async {
        let mut looks = interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let request = MemberListRequest { linearizable: true };
            let members = clients.cluster.member_list(request).await.expect("listed").into_inner();
            let mut names: Vec<String> =
                members.members.into_iter().map(|member| member.name).collect();
            names.sort();
            if names == ["replica0", "replica1"] {
                return;
            }
        }
    };
    soon(listed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_cut_off_is_replaced_and_follows_when_it_is_back() {
    let replicas = start(3).await;
    let old = leader(&replicas, None).await;
    let mut of_old = replicas[old].store.clients().await;
    of_old.put("k", "before").await;
    let term = status(&replicas[old]).await.raft_term;
    replicas[old].seat.cut_off(true);
    let new = leader(&replicas, Some(old)).await;
    assert_ne!(new, old);
    replicas[new].store.clients().await.put("k", "after").await;
    // It can neither read what is certain nor write; what it knew it still tells who asks for that.
    assert_eq!(refusal(of_old.kv.range(get("k")).await), "Unavailable: etcdserver: no leader");
    let put = PutRequest { key: "k".into(), value: "lost".into(), ..Default::default() };
    assert!(refusal(of_old.kv.put(put).await).starts_with("Unavailable"));
    let serializable = RangeRequest { serializable: true, ..get("k") };
    let known = of_old.kv.range(serializable).await.expect("it may lag").into_inner();
    assert_eq!(known.kvs[0].value(), b"before");
    replicas[old].seat.cut_off(false);
    assert_eq!(leader(&replicas, None).await, new);
    assert_eq!(value(&mut of_old, "k").await.as_deref(), Some("after"));
    of_old.put("k", "again").await;
    assert!(status(&replicas[old]).await.raft_term > term);
    let events = of_old.all_at(0).await;
    assert_eq!(events.kvs[0].version(), 3, "every write happened once: {events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_stops_leaves_the_role_to_another() {
    let mut replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let gone = replicas.remove(old);
    gone.store.clients().await.put("k", "v").await;
    gone.store.stop().await;
    assert_eq!(leader(&replicas, None).await, 0);
    let mut clients = replicas[0].store.clients().await;
    assert_eq!(value(&mut clients, "k").await.as_deref(), Some("v"));
    clients.put("k", "w").await;
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
async fn a_compaction_reaches_followers() {
    let replicas = start(2).await;
    let follower = 1 - leader(&replicas, None).await;
    let mut clients = replicas[follower].store.clients().await;
    let first = clients.put("k", "1").await;
    let second = clients.put("k", "2").await;
    clients.compact(second).await;
    assert_eq!(value(&mut clients, "k").await.as_deref(), Some("2"));
    let old = RangeRequest { revision: first, ..get("k") };
    assert_eq!(
        refusal(clients.kv.range(old).await),
        "OutOfRange: etcdserver: mvcc: required revision has been compacted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_hold_everywhere() {
    let replicas = start(2).await;
    let follower = 1 - leader(&replicas, None).await;
    let mut clients = replicas[follower].store.clients().await;
    clients.put("k", "v").await;
    clients.add_user("nobody").await;
    clients.enable_auth().await;
    for replica in &replicas {
        let mut anonymous = replica.store.clients().await;
        assert!(refusal(anonymous.kv.range(get("k")).await).contains("user name is empty"));
        let put = PutRequest { key: "k".into(), ..Default::default() };
        assert!(refusal(anonymous.kv.put(put).await).contains("user name is empty"));
        let mut root = replica.store.login("root").await;
        root.put("k", "w").await;
        let mut nobody = replica.store.login("nobody").await;
        let put = PutRequest { key: "k".into(), ..Default::default() };
        assert!(refusal(nobody.kv.put(put).await).contains("permission denied"));
    }
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

fn change_password(name: &str) -> AuthUserChangePasswordRequest {
    AuthUserChangePasswordRequest {
        name: name.into(),
        password: "another".into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_cut_off_passes_no_login_on() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    replicas[holder].store.clients().await.enable_auth().await;
    let mut stale = replicas[1 - holder].store.login("root").await;
    let mut root = replicas[holder].store.login("root").await;
    replicas[1 - holder].seat.cut_off(true);
    root.auth.user_change_password(change_password("root")).await.expect("it is changed");
    let request = AuthUserAddRequest { name: "mallory".into(), ..Default::default() };
    let refused = refusal(stale.auth.user_add(request.clone()).await);
    assert_eq!(refused, "Unavailable: etcdserver: no leader");
    replicas[1 - holder].seat.cut_off(false);
    let refused = refusal(stale.auth.user_add(request).await);
    assert_eq!(refused, "Unauthenticated: etcdserver: invalid auth token");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_lets_nobody_in_and_tells_of_no_user() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    replicas[holder].store.clients().await.enable_auth().await;
    let mut root = replicas[holder].store.login("root").await;
    replicas.iter().for_each(|replica| replica.seat.cut_off(true));
    let no_leader = "Unavailable: etcdserver: no leader";
    for replica in &replicas {
        let request = AuthenticateRequest { name: "root".into(), password: PASSWORD.into() };
        let mut clients = replica.store.clients().await;
        assert_eq!(refusal(clients.auth.authenticate(request).await), no_leader);
    }
    assert_eq!(refusal(root.auth.user_list(AuthUserListRequest {}).await), no_leader);
    replicas.iter().for_each(|replica| replica.seat.cut_off(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_another_may_have_thinned_out_is_not_hashed() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let mut writer = replicas[holder].store.clients().await;
    writer.put("k", "1").await;
    let second = writer.put("k", "2").await;
    let mut reader = replicas[1 - holder].store.clients().await;
    assert_eq!(value(&mut reader, "k").await.as_deref(), Some("2"));
    let seat = &replicas[1 - holder].seat;
    seat.hold_records(true);
    let (hashed, ()) = tokio::join!(reader.maintenance.hash_kv(HashKvRequest::default()), async {
        until(|| seat.readers_held() > 0).await;
        writer.compact(second).await;
        seat.hold_records(false);
    });
    assert_eq!(refusal(hashed), "Unavailable: etcdserver: request timed out");
    assert_eq!(value(&mut reader, "k").await.as_deref(), Some("2"));
    let hashed = reader.maintenance.hash_kv(HashKvRequest::default()).await;
    assert_eq!(hashed.expect("it is whole").into_inner().compact_revision, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_another_may_have_thinned_out_does_not_end_well() {
    let replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let mut clients = replicas[old].store.clients().await;
    clients.put("k", "1").await;
    let second = clients.put("k", "2").await;
    replicas[old].seat.hold_records(true);
    let snapshot = clients.maintenance.snapshot(SnapshotRequest {}).await.expect("it begins");
    let mut snapshot = snapshot.into_inner();
    move_leader(&replicas, old, 1 - old).await;
    replicas[1 - old].store.clients().await.compact(second).await;
    replicas[old].seat.hold_records(false);
    let all = async {
        loop {
            match snapshot.message().await {
                Ok(Some(_piece)) => {}
                end => return end,
            }
        }
    };
    assert_eq!(refusal(soon(all).await), "Unavailable: etcdserver: request timed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_cannot_be_told_costs_nobody_the_role() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let before = status(&replicas[holder]).await;
    let seat = &replicas[holder].seat;
    seat.hide_size(true);
    until(|| seat.sizes_refused() > 3).await;
    replicas[holder].store.clients().await.put("k", "v").await;
    let after = status(&replicas[holder]).await;
    assert_eq!((after.leader, after.raft_term), (before.leader, before.raft_term));
    assert!(after.db_size > 1, "the last one is told: {}", after.db_size);
}

/// More than a follower reads at once.
const MISSED: usize = 300;
const AT_ONCE_MAX: i64 = 128;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_missed_is_followed_in_pieces() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let seat = &replicas[1 - holder].seat;
    let mut reader = replicas[1 - holder].store.clients().await;
    seat.cut_off(true);
    let clients = replicas[holder].store.clients().await;
    let put = |number: usize| {
        let mut kv = clients.kv.clone();
        let put = PutRequest { key: format!("k{number}").into(), ..Default::default() };
        async move { kv.put(put).await.expect("it may be put") }
    };
    join_all((0..MISSED).map(put)).await;
    seat.cut_off(false);
    leader(&replicas, None).await;
    assert_eq!(reader.all_at(0).await.count, MISSED as i64);
    assert!((2..=AT_ONCE_MAX).contains(&seat.tail_max()), "{}", seat.tail_max());
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
