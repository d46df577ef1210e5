//! What is read in pieces, or may take long, while others write: it is whole, or it is refused, and
//! nobody else waits for it.

use etcd_api::etcdserverpb::{HashKvRequest, PutRequest, SnapshotRequest, WatchCreateRequest};
use futures::future::join_all;

use super::{leader, move_leader, start, status, until, value};
use crate::{
    harness::{Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
    watching::Watching,
};

/// More than a follower reads at once.
const MISSED: usize = 300;
const AT_ONCE_MAX: i64 = 128;

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
async fn a_slow_read_for_one_watch_holds_up_no_other() {
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    let store = Store::start_over(journal.clone(), folder, |options| options.cache_bytes = 0);
    let store = store.await;
    let mut clients = store.clients().await;
    clients.put("k", "1").await;
    let of_key = |prev_kv| WatchCreateRequest { key: "k".into(), prev_kv, ..Default::default() };
    let mut slow = Watching::of(&mut clients, of_key(true)).await;
    journal.hold_reads();
    clients.put("k", "2").await;
    journal.arrival().await;
    let mut other = soon(Watching::of(&mut clients, of_key(false))).await;
    journal.release();
    assert!(slow.answer().await.events[0].prev_kv().is_some(), "it was waited for");
    clients.put("k", "3").await;
    assert_eq!(other.answer().await.events.len(), 1);
}
