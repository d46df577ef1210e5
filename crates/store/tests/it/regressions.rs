//! What other implementations of this API got wrong, each once.

use etcd_api::{
    etcdserverpb::{
        Compare, LeaseGrantRequest, PutRequest, RangeRequest, RequestOp, StatusRequest, TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request as Op,
    },
    version,
};
use futures::future::join_all;

use crate::{
    harness::{Clients, Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
    watching::{Watching, everything, range},
};

async fn create(clients: &mut Clients, key: &'static str) -> bool {
    let is_missing = Compare {
        key: key.into(),
        target: CompareTarget::Create.into(),
        result: CompareResult::Equal.into(),
        target_union: Some(TargetUnion::CreateRevision(0)),
        ..Default::default()
    };
    let put = PutRequest { key: key.into(), ..Default::default() };
    let request = TxnRequest {
        compare: vec![is_missing],
        success: vec![RequestOp { request: Some(Op::RequestPut(put)) }],
        ..Default::default()
    };
    clients.kv.txn(request).await.expect("it is answered").into_inner().succeeded
}

/// A watcher that reconnects from the revision after the last one it saw must miss nothing and see
/// nothing twice, whatever is written meanwhile, and whether or not the store was restarted.
#[tokio::test]
async fn events_are_lost_when_a_watcher_reconnects() {
    let mut store = Store::start().await;
    let mut seen = 1;
    for round in 0..20 {
        let mut clients = store.clients().await;
        for _ in 0..5 {
            clients.put("a", "").await;
        }
        let mut watching = Watching::of(&mut clients, everything(seen + 1)).await;
        clients.put("a", "").await;
        // Some rounds leave events unread, on the wire or in the store.
        for event in watching.events(1 + round % 6).await {
            seen += 1;
            assert_eq!(event.kv().mod_revision(), seen);
        }
        drop((watching, clients));
        if round % 5 == 4 {
            store = store.restart().await;
        }
    }
}

/// Progress that stays where the watched range last changed makes kube-apiserver's consistent lists
/// wait for ever; a zero makes them fail.
#[tokio::test]
async fn progress_is_stuck_or_zero() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::of(&mut clients, range("quiet", "", 0)).await;
    for _ in 0..20 {
        let revision = clients.put("loud", "").await;
        watching.ask_progress().await;
        assert_eq!(watching.told().await, format!("watch -1 at {revision}"));
    }
    drop((watching, clients));
    let store = store.restart().await;
    let mut watching = Watching::of(&mut store.clients().await, range("quiet", "", 0)).await;
    watching.ask_progress().await;
    assert_eq!(watching.told().await, "watch -1 at 21", "before anything is written");
}

/// kube-apiserver parses the version of `Status` to learn which features there are.
#[tokio::test]
async fn the_version_cannot_be_parsed() {
    let store = Store::start().await;
    let status = store.clients().await.maintenance.status(StatusRequest {}).await.unwrap();
    let status = status.into_inner();
    assert_eq!(status.version, version::SERVER);
    for text in [&status.version, &status.storage_version] {
        let numbers: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3, "{text}");
        assert!(numbers >= vec![3, 6], "{text}");
    }
}

/// A compare that does not see what is on its way to the disk lets two win the same lock.
#[tokio::test]
async fn concurrent_creates_both_succeed() {
    let store = Store::start().await;
    let mut all = Vec::new();
    for _ in 0..8 {
        all.push(store.clients().await);
    }
    for key in ["a", "b", "c", "d", "e"] {
        let created = join_all(all.iter_mut().map(|clients| create(clients, key))).await;
        assert_eq!(created.iter().filter(|is_created| **is_created).count(), 1, "{key}");
    }
    assert_eq!(all[0].all_at(0).await.header.unwrap().revision, 6, "one write for each key");
}

/// An empty value is a value.
#[tokio::test]
async fn an_empty_value_is_treated_as_delete() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::of(&mut clients, everything(0)).await;
    clients.put("a", "").await;
    assert_eq!(watching.told().await, "watch 0 at 2: put a=@2");
    drop((watching, clients));
    let store = store.restart().await;
    let kvs = store.clients().await.all_at(0).await.kvs;
    assert_eq!((kvs.len(), kvs[0].version()), (1, 1));
}

/// kube-apiserver learns from `count` how many objects are left.
#[tokio::test]
async fn the_count_is_cut_by_the_limit() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for key in ["a", "b", "c"] {
        clients.put(key, "").await;
    }
    let request =
        RangeRequest { key: "a".into(), range_end: "z".into(), limit: 2, ..Default::default() };
    let answer = clients.kv.range(request).await.unwrap().into_inner();
    assert_eq!((answer.kvs.len(), answer.count, answer.more), (2, 3, true));
}

/// Whoever lists at a revision that is gone must be told, not given another one.
#[tokio::test]
async fn a_compacted_revision_is_silently_served() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for value in ["2", "3", "4"] {
        clients.put("a", value).await;
    }
    clients.compact(3).await;
    drop(clients);
    let mut store = store;
    for _ in 0..2 {
        let mut clients = store.clients().await;
        let request = RangeRequest { key: "a".into(), revision: 2, ..Default::default() };
        assert_eq!(
            refusal(clients.kv.range(request).await),
            "OutOfRange: etcdserver: mvcc: required revision has been compacted"
        );
        drop(clients);
        store = store.restart().await;
    }
}

/// Keys of a lease that ran out must go visibly: in one revision, in order, and seen by watchers.
#[tokio::test]
async fn a_lease_expires_without_events() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 2 }).await.unwrap();
    for key in ["b", "a"] {
        let request = PutRequest { key: key.into(), lease: 7, ..Default::default() };
        clients.kv.put(request).await.unwrap();
    }
    let mut watching = Watching::of(&mut clients, everything(0)).await;
    assert_eq!(watching.told().await, "watch 0 at 4: del a@4, del b@4");
    assert_eq!(clients.all_at(0).await.kvs, []);
}

/// What was answered is there after a restart, history and leases included, and the next revision is
/// one more than the last: no gap, and none twice.
#[tokio::test]
async fn the_log_is_never_replayed_or_revisions_repeat() {
    let mut store = Store::start().await;
    let mut last = 1;
    for round in 0..5 {
        let mut clients = store.clients().await;
        assert_eq!(clients.all_at(0).await.header.unwrap().revision, last, "round {round}");
        for key in ["a", "b"] {
            let revision = clients.put(key, format!("{round}")).await;
            assert_eq!(revision, last + 1);
            last = revision;
        }
        drop(clients);
        store = store.restart().await;
    }
    let mut clients = store.clients().await;
    for round in 0..5 {
        let kvs = clients.all_at(3 + 2 * round).await.kvs;
        let values: Vec<_> = kvs.iter().map(|kv| kv.value_bytes()).collect();
        assert_eq!(values, [format!("{round}"), format!("{round}")]);
    }
}

/// The revision must not be taken from the newest key that is left: it may be far below what was
/// compacted, and then there may be no key at all.
#[tokio::test]
async fn a_store_does_not_start_when_its_newest_key_is_below_the_compacted_revision() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.put("a", "").await;
    for _ in 0..3 {
        clients.put("b", "").await;
        clients.delete("b", "").await;
    }
    clients.compact(8).await;
    drop(clients);

    let store = store.restart().await;
    let mut clients = store.clients().await;
    let found = clients.all_at(0).await;
    assert_eq!((found.header.unwrap().revision, found.kvs[0].mod_revision()), (8, 2));
    assert_eq!(clients.delete("a", "").await, 9);
    clients.put("b", "").await;
    assert_eq!(clients.delete("b", "").await, 11);
    clients.compact(11).await;
    drop(clients);

    let store = store.restart().await;
    let mut clients = store.clients().await;
    let found = clients.all_at(0).await;
    assert_eq!((found.header.unwrap().revision, found.kvs.len()), (11, 0));
    assert_eq!(clients.put("a", "").await, 12);
}

/// After a failed append the writer waited for a command that never came: a client whose write had
/// been gathered meanwhile heard nothing until its connection was cut, seconds later.
#[tokio::test]
async fn a_failed_append_is_not_told_to_those_behind_it() {
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    let store = Store::start_over(journal.clone(), folder, |_| {}).await;
    let clients = store.clients().await;
    journal.hold();
    let puts = ["first", "second"].map(|key| {
        let mut kv = clients.kv.clone();
        async move { kv.put(PutRequest { key: key.into(), ..Default::default() }).await }
    });
    let fail = async {
        journal.arrival().await;
        journal.fail();
    };
    let (answers, ()) = soon(async { tokio::join!(join_all(puts), fail) }).await;
    for answer in answers {
        assert_eq!(refusal(answer), "Unavailable: etcdserver: server stopped");
    }
}
