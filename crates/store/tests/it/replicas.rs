//! Several stores over one journal: whoever is asked, there is one store.

mod leases;
mod logins;
mod pieces;
mod tidings;

use std::{net::TcpListener, sync::Arc};

use etcd_api::{
    etcdserverpb::{
        AlarmRequest, LeaseGrantRequest, LeaseTimeToLiveRequest, MemberListRequest,
        MoveLeaderRequest, PutRequest, RangeRequest, StatusRequest, StatusResponse,
    },
    mvccpb::EventType,
    v3lockpb::LockRequest,
};
use mvcc::{Position, Revision};
use store::{Address, Listener};
use tokio::time::{Duration, interval};

use crate::{
    harness::{Clients, Store, new_folder, refusal, soon},
    together::{Seat, Together},
};

/// How often a level is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// More often than beats ask for it while a request is on its way.
const TIPS_OF_A_LOOK: usize = 4;

struct Replica {
    store: Store,
    seat: Arc<Seat>,
    peer_url: String,
}

/// Starts as many stores over one journal.
async fn start(count: usize) -> Vec<Replica> {
    start_known_as(count, |peer_url| peer_url.to_owned()).await
}

/// The same, each telling the others that it is elsewhere.
async fn start_known_as(count: usize, elsewhere: fn(&str) -> String) -> Vec<Replica> {
    let together = Together::new(new_folder());
    let mut replicas = Vec::new();
    for number in 0..count {
        let seat = together.seat();
        let port = free_port();
        let peer_url = format!("http://127.0.0.1:{port}");
        let advertised = elsewhere(&peer_url);
        let store = Store::start_over(seat.clone(), new_folder(), |options| {
            options.name = format!("replica{number}");
            let address = Address::Tcp(([127, 0, 0, 1], port).into());
            options.peer_listeners = vec![Listener { address, tls: None }];
            options.advertise_peer_urls = vec![advertised];
        });
        replicas.push(Replica { store: store.await, seat, peer_url });
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

/// A batch is durable a moment before its writer shows it. Others read it in that moment, and the
/// writer then answered with what was before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_shows_what_others_could_read() {
    let replicas = start(2).await;
    let holder = leader(&replicas, None).await;
    let mut writer = replicas[holder].store.clients().await;
    writer.put("k", "old").await;
    let seat = &replicas[holder].seat;
    seat.hold_durable(true);
    let mut other = replicas[1 - holder].store.clients().await;
    let mut reader = replicas[holder].store.clients().await;
    let reading = async {
        while value(&mut other, "k").await.as_deref() != Some("new") {}
        // By then it was asked whether the journal has more than is shown.
        let asked = seat.tips() + TIPS_OF_A_LOOK;
        let (read, ()) = tokio::join!(value(&mut reader, "k"), async {
            until(|| seat.tips() >= asked).await;
            seat.hold_durable(false);
        });
        read
    };
    let (_, read) = tokio::join!(writer.put("k", "new"), soon(reading));
    assert_eq!(read.as_deref(), Some("new"));
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

/// It waited for the write that it had begun, for as long as the journal could not be reached.
#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_is_cut_off_ends_without_its_last_write() {
    let mut replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let gone = replicas.remove(old);
    gone.seat.hold_durable(true);
    let mut clients = gone.store.clients().await;
    let put = PutRequest { key: "k".into(), value: "v".into(), ..Default::default() };
    tokio::select! {
        answered = clients.kv.put(put) => panic!("it was not told that it is durable: {answered:?}"),
        () = until(|| gone.seat.batches_held() == 1) => {}
    }
    gone.seat.cut_off(true);
    soon(gone.store.stop()).await;
    assert_eq!(leader(&replicas, None).await, 0);
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

/// What the compaction before the last one dropped and its holder had not given up stayed in the
/// journal for good: whoever took the role knew of the last one alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_dies_after_two_compactions_leaves_both_to_the_next() {
    let replicas = start(2).await;
    let old = leader(&replicas, None).await;
    let (mut writer, seat) = (replicas[old].store.clients().await, &replicas[1 - old].seat);
    let mut follower = replicas[1 - old].store.clients().await;
    let mut superseded = Vec::new();
    for _ in 0..2 {
        superseded.push(writer.put("k", "old").await);
        let compacted = writer.put("k", "new").await;
        writer.compact(compacted).await;
        // It has heard of this compaction by itself, as it looks far more often than they come.
        while refusal_of_compacted(&mut follower, superseded[superseded.len() - 1]).await.is_none()
        {
        }
    }
    let kept = |revision: i64| seat.keeps(Position::new(Revision(revision), 0));
    assert!(superseded.iter().all(|revision| kept(*revision)), "nothing is given up yet");
    replicas[old].seat.cut_off(true);
    assert_eq!(leader(&replicas, Some(old)).await, 1 - old);
    until(|| !superseded.iter().any(|revision| kept(*revision))).await;
    assert_eq!(value(&mut follower, "k").await.as_deref(), Some("new"));
}

/// How a read of that revision is refused, if it is.
async fn refusal_of_compacted(clients: &mut Clients, revision: i64) -> Option<String> {
    let old = RangeRequest { revision, serializable: true, ..get("k") };
    clients.kv.range(old).await.err().map(|status| status.message().to_owned())
}
