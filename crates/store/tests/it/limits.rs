//! Bounds on requests and on room, by the numbers of their lines in the specification.

use etcd_api::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmType, DefragmentRequest, LeaseGrantRequest, PutRequest,
    StatusRequest, alarm_request::AlarmAction,
};
use futures::future::join_all;
use tonic::Status;

use crate::{
    harness::{Clients, Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
    watching::{Watching, range},
};

/// etcd's default.
const REQUEST_BYTES_MAX: usize = 1536 * 1024;

/// What a put takes beside its value, here.
const KEY_BYTES: usize = 16;

/// Room for a few values.
const QUOTA_BYTES: u64 = 256 * 1024;

/// What the store keeps free beside what the journal's upkeep needs.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;

const NO_SPACE: &str = "ResourceExhausted: etcdserver: mvcc: database space exceeded";

async fn put(clients: &mut Clients, bytes: usize) -> Result<(), Status> {
    let value = vec![b'v'; bytes];
    let request = PutRequest { key: "a".into(), value: value.into(), ..Default::default() };
    clients.kv.put(request).await.map(drop)
}

async fn alarm(clients: &mut Clients, action: AlarmAction) -> Vec<AlarmMember> {
    let request =
        AlarmRequest { action: action.into(), alarm: AlarmType::Nospace.into(), member_id: 0 };
    let request = match action {
        AlarmAction::Get => request,
        _ => {
            let status = clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner();
            AlarmRequest { member_id: status.leader, ..request }
        }
    };
    clients.maintenance.alarm(request).await.unwrap().into_inner().alarms
}

/// Overwrites one key until the store has no room.
async fn fill(clients: &mut Clients) -> Status {
    loop {
        if let Err(refused) = put(clients, 16 * 1024).await {
            return refused;
        }
    }
}

#[tokio::test]
async fn l42_a_request_has_a_largest_size() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    put(&mut clients, REQUEST_BYTES_MAX - KEY_BYTES).await.unwrap();
    assert_eq!(
        refusal(put(&mut clients, REQUEST_BYTES_MAX + 1).await),
        "InvalidArgument: etcdserver: request is too large"
    );
}

/// What messages may weigh beside went beyond the largest number: the store took nothing above half a
/// MiB, or did not start.
#[tokio::test]
async fn l42_the_largest_size_may_be_the_largest_number() {
    let store = Store::start_with(|options| options.limits.request_bytes_max = usize::MAX).await;
    put(&mut store.clients().await, 2 * REQUEST_BYTES_MAX).await.unwrap();
}

#[tokio::test]
async fn l42_an_answer_has_none() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.kv = clients.kv.max_decoding_message_size(usize::MAX);
    for key in ["a", "b", "c", "d", "e"] {
        clients.put(key, vec![b'v'; REQUEST_BYTES_MAX - KEY_BYTES]).await;
    }
    let answer = clients.all_at(0).await;
    assert_eq!(answer.kvs.len(), 5);
    assert!(answer.kvs.iter().all(|kv| kv.value().len() == REQUEST_BYTES_MAX - KEY_BYTES));
}

#[tokio::test]
async fn l42_a_connection_carries_many_streams() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut streams = Vec::new();
    for _ in 0..500 {
        streams.push(soon(Watching::of(&mut clients, range("a", "", 0))).await);
    }
    clients.put("a", "1").await;
    let told = join_all(streams.iter_mut().map(Watching::told)).await;
    assert!(told.iter().all(|told| told == "watch 0 at 2: put a=1@2"), "{told:?}");
}

#[tokio::test]
async fn l43_a_full_store_refuses_what_needs_room_and_nothing_else() {
    let store = Store::start_with(|options| options.limits.quota_bytes = QUOTA_BYTES).await;
    let mut clients = store.clients().await;
    assert_eq!(refusal::<()>(Err(soon(fill(&mut clients)).await)), NO_SPACE);
    assert_eq!(alarm(&mut clients, AlarmAction::Get).await.len(), 1);
    assert_eq!(refusal(put(&mut clients, 1).await), NO_SPACE, "however small");
    let grant = LeaseGrantRequest { id: 0, ttl: 100 };
    assert_eq!(refusal(clients.lease.lease_grant(grant).await), NO_SPACE);

    let revision = clients.all_at(0).await.header.unwrap().revision;
    assert_eq!(clients.delete("a", "").await, revision + 1);
    clients.compact(revision + 1).await;
}

#[tokio::test]
async fn l43_the_alarm_survives_a_restart() {
    let store = Store::start_with(|options| options.limits.quota_bytes = QUOTA_BYTES).await;
    soon(fill(&mut store.clients().await)).await;
    let store = store.restart().await;
    let mut clients = store.clients().await;
    assert_eq!(refusal(put(&mut clients, 1).await), NO_SPACE);
    let status = clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.errors, [format!("memberID:{} alarm:NOSPACE ", status.leader)]);
}

/// As etcd's operators do it, and with the same end: the store is as good as new.
#[tokio::test]
async fn l43_compacting_and_defragmenting_make_room() {
    let store = Store::start_with(|options| options.limits.quota_bytes = 20 * 1024 * 1024).await;
    let mut clients = store.clients().await;
    clients.put("kept", vec![b'k'; REQUEST_BYTES_MAX / 2]).await;
    for _ in 0..2 {
        assert_eq!(refusal::<()>(Err(soon(fill(&mut clients)).await)), NO_SPACE);
        let revision = clients.all_at(0).await.header.unwrap().revision;
        clients.compact(revision).await;
        clients.maintenance.defragment(DefragmentRequest {}).await.unwrap();
        assert_eq!(refusal(put(&mut clients, 1).await), NO_SPACE, "room alone is not enough");
        assert_eq!(alarm(&mut clients, AlarmAction::Deactivate).await.len(), 1);
        assert_eq!(alarm(&mut clients, AlarmAction::Get).await, []);
        put(&mut clients, 1).await.expect("there is room, and no alarm");
        let status = clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner();
        assert!(status.db_size < 2 * 1024 * 1024, "{status:?}");
    }
    let kept = clients.all_at(0).await.kvs.pop().unwrap();
    assert_eq!(kept.value().len(), REQUEST_BYTES_MAX / 2);
}

/// A store that is small against its quota and keeps being written and compacted never runs full:
/// its segments are small too, so the journal gives back what compaction drops without being asked.
#[tokio::test]
async fn l43_a_small_store_that_is_compacted_stays_within_its_quota() {
    let store = Store::start_with(|options| options.limits.quota_bytes = 40 * 1024 * 1024).await;
    let mut clients = store.clients().await;
    for _ in 0..12 {
        for _ in 0..8 {
            put(&mut clients, REQUEST_BYTES_MAX / 2).await.expect("there is always room");
        }
        let revision = clients.all_at(0).await.header.unwrap().revision;
        clients.compact(revision).await;
    }
}

/// Room was measured every 50 ms, and what was let in since did not count: on a nearly full disk many
/// large puts at once took the reserve, and what is behind it, before the alarm was raised.
#[tokio::test]
async fn l43_large_puts_that_come_together_leave_the_reserve_alone() {
    const LARGE_BYTES: usize = 1024 * 1024;
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    let store = Store::start_over(journal.clone(), folder, |_| {}).await;
    let mut clients = store.clients().await;
    clients.put("a", "").await;
    journal.leave(5 * LARGE_BYTES as u64 + LARGE_BYTES as u64 / 2, RESERVE_BYTES);
    clients.maintenance.defragment(DefragmentRequest {}).await.expect("it looks at the room");

    journal.hold();
    let puts = (0..16).map(|_| {
        let mut kv = clients.kv.clone();
        let value = vec![b'v'; LARGE_BYTES].into();
        async move { kv.put(PutRequest { key: "a".into(), value, ..Default::default() }).await }
    });
    let release = async {
        journal.arrival().await;
        journal.release();
    };
    let (answers, ()) = soon(async { tokio::join!(join_all(puts), release) }).await;
    let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!((1..=5).contains(&admitted.len()), "{} were let in", admitted.len());
    refused.into_iter().for_each(|answer| assert_eq!(refusal(answer), NO_SPACE));
}
