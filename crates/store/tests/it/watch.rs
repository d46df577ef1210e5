//! Watches, by the numbers of their lines in the specification.

use std::time::Duration;

use etcd_api::{
    authpb::{Permission, permission::Type},
    etcdserverpb::{
        AuthRoleAddRequest, AuthRoleGrantPermissionRequest, PutRequest, RequestOp, TxnRequest,
        WatchCreateRequest, request_op::Request as Op, watch_create_request::FilterType,
    },
};

use crate::{
    harness::{Clients, Store},
    watching::{Watching, everything, range},
};

/// Small, so that a few values make a large answer.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

async fn put_together(clients: &mut Clients, keys: &[&str]) {
    let put = |key: &&str| {
        let put =
            PutRequest { key: (*key).to_owned().into(), value: "v".into(), ..Default::default() };
        RequestOp { request: Some(Op::RequestPut(put)) }
    };
    let success = keys.iter().map(put).collect();
    clients.kv.txn(TxnRequest { success, ..Default::default() }).await.expect("it may be put");
}

#[tokio::test]
async fn l25_create_answers_with_an_id_per_stream() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut one = Watching::open(&mut clients).await;
    for request in [
        range("a", "", 0),
        WatchCreateRequest { watch_id: 2, ..range("a", "", 0) },
        range("b", "", 0),
        range("c", "", 0),
    ] {
        one.create(request).await;
    }
    assert_eq!(one.told().await, "watch 0 at 1 created");
    assert_eq!(one.told().await, "watch 2 at 1 created");
    assert_eq!(one.told().await, "watch 1 at 1 created");
    assert_eq!(one.told().await, "watch 3 at 1 created", "2 is taken");
    let mut other = Watching::open(&mut clients).await;
    other.create(range("a", "", 0)).await;
    assert_eq!(other.told().await, "watch 0 at 1 created");
}

#[tokio::test]
async fn l25_create_refuses_an_id_that_is_taken_and_a_range_without_keys() {
    let store = Store::start().await;
    let mut watching = Watching::open(&mut store.clients().await).await;
    for request in [
        WatchCreateRequest { watch_id: 7, ..range("a", "", 0) },
        WatchCreateRequest { watch_id: 7, ..range("b", "", 0) },
        range("b", "a", 0),
        range("b", "b", 0),
    ] {
        watching.create(request).await;
    }
    assert_eq!(watching.told().await, "watch 7 at 1 created");
    let refused = "watch -1 at 1 created canceled because mvcc:";
    assert_eq!(
        watching.told().await,
        format!("{refused} duplicate watch ID provided on the WatchStream")
    );
    assert_eq!(watching.told().await, format!("{refused} watcher range is empty"));
    assert_eq!(watching.told().await, format!("{refused} watcher range is empty"));
}

#[tokio::test]
async fn l25_an_empty_key_is_the_first_key() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut first = Watching::of(&mut clients, range("", "", 0)).await;
    let mut all = Watching::of(&mut clients, range("", "\0", 0)).await;
    clients.put("a", "1").await;
    clients.put("\0", "2").await;
    assert_eq!(first.told().await, r"watch 0 at 3: put \x00=2@3");
    assert_eq!(all.heard(2).await, ["0: put a=1@2", r"0: put \x00=2@3"]);
}

#[tokio::test]
async fn l25_start_0_is_after_the_revision_of_the_answer() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.put("a", "1").await;
    let mut watching = Watching::open(&mut clients).await;
    watching.create(range("a", "", 0)).await;
    assert_eq!(watching.told().await, "watch 0 at 2 created");
    clients.put("a", "2").await;
    assert_eq!(watching.told().await, "watch 0 at 3: put a=2@3");
}

#[tokio::test]
async fn l25_a_start_in_the_future_is_waited_for() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::of(&mut clients, range("a", "", 5)).await;
    for value in ["2", "3", "4", "5", "6"] {
        clients.put("a", value).await;
    }
    assert_eq!(watching.heard(2).await, ["0: put a=5@5", "0: put a=6@6"]);
}

#[tokio::test]
async fn l26_what_was_compacted_cannot_be_watched() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for value in ["2", "3", "4", "5"] {
        clients.put("a", value).await;
    }
    clients.compact(4).await;
    let mut watching = Watching::open(&mut clients).await;
    watching.create(range("a", "", 3)).await;
    assert_eq!(watching.told().await, "watch 0 at 5 created");
    assert_eq!(watching.told().await, "watch 0 at 0 canceled compacted 4");
    let mut watching = Watching::of(&mut clients, range("a", "", 4)).await;
    assert_eq!(watching.heard(2).await, ["0: put a=4@4", "0: put a=5@5"]);
}

#[tokio::test]
async fn l26_a_negative_start_is_refused() {
    let store = Store::start().await;
    let mut watching = Watching::open(&mut store.clients().await).await;
    watching.create(range("a", "", -1)).await;
    assert_eq!(
        watching.told().await,
        "watch -1 at 1 created canceled because \
         etcdserver: mvcc: required revision has been compacted"
    );
}

#[tokio::test]
async fn l27_a_revision_comes_in_one_answer() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut live = Watching::of(&mut clients, everything(0)).await;
    put_together(&mut clients, &["b", "a", "c"]).await;
    let expected = "watch 0 at 2: put b=v@2, put a=v@2, put c=v@2";
    assert_eq!(live.told().await, expected);
    clients.delete("a", "c").await;
    assert_eq!(live.told().await, "watch 0 at 3: del a@3, del b@3");
    let mut late = Watching::of(&mut clients, everything(2)).await;
    let events = late.answer().await.events;
    assert!(events.len() >= 3, "revision 2 is whole");
}

#[tokio::test]
async fn l28_filters_leave_out_puts_or_deletes() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let filtered = |filter: FilterType, start| WatchCreateRequest {
        filters: vec![filter.into()],
        ..range("a", "", start)
    };
    let mut deletes = Watching::of(&mut clients, filtered(FilterType::Noput, 0)).await;
    let mut puts = Watching::of(&mut clients, filtered(FilterType::Nodelete, 0)).await;
    clients.put("a", "1").await;
    clients.delete("a", "").await;
    clients.put("a", "2").await;
    clients.delete("a", "").await;
    assert_eq!(deletes.heard(2).await, ["0: del a@3", "0: del a@5"]);
    assert_eq!(puts.heard(2).await, ["0: put a=1@2", "0: put a=2@4"]);
    let mut late = Watching::of(&mut clients, filtered(FilterType::Noput, 1)).await;
    assert_eq!(late.heard(2).await, ["0: del a@3", "0: del a@5"]);
}

#[tokio::test]
async fn l28_what_was_there_before_is_told_to_those_who_asked() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::open(&mut clients).await;
    watching.create(WatchCreateRequest { prev_kv: true, ..range("a", "", 0) }).await;
    watching.create(WatchCreateRequest { watch_id: 9, ..range("a", "", 0) }).await;
    assert_eq!(watching.told().await, "watch 0 at 1 created");
    assert_eq!(watching.told().await, "watch 9 at 1 created");
    clients.put("a", "1").await;
    clients.put("a", "").await;
    clients.delete("a", "").await;
    let mut heard = watching.heard(6).await;
    heard.sort();
    assert_eq!(
        heard,
        [
            "0: del a@4 (was @3)",
            "0: put a=1@2",
            "0: put a=@3 (was 1@2)",
            "9: del a@4",
            "9: put a=1@2",
            "9: put a=@3",
        ]
    );
}

/// A watch that comes later reads it from history.
#[tokio::test]
async fn l28_history_tells_what_was_there_before() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.put("a", "1").await;
    clients.put("a", "2").await;
    clients.delete("a", "").await;
    clients.put("a", "3").await;
    let request = WatchCreateRequest { prev_kv: true, ..range("a", "", 2) };
    let mut watching = Watching::of(&mut clients, request).await;
    assert_eq!(
        watching.heard(4).await,
        ["0: put a=1@2", "0: put a=2@3 (was 1@2)", "0: del a@4 (was 2@3)", "0: put a=3@5"]
    );
}

#[tokio::test]
async fn l29_large_answers_are_cut_for_those_who_asked() {
    let store =
        Store::start_with(|options| options.limits.request_bytes_max = REQUEST_BYTES_MAX).await;
    let mut clients = store.clients().await;
    let value = vec![b'v'; REQUEST_BYTES_MAX / 2];
    for key in ["a", "b", "c", "d"] {
        clients.put(key, value.clone()).await;
    }
    let revision = clients.delete("a", "z").await;
    for (fragment, expected) in [(true, 4), (false, 1)] {
        let request = WatchCreateRequest { prev_kv: true, fragment, ..range("a", "z", revision) };
        let mut watching = Watching::of(&mut clients, request).await;
        let mut marks = vec![];
        let mut events = vec![];
        while events.len() < 4 {
            let answer = watching.answer().await;
            assert_eq!(answer.header.unwrap().revision, revision);
            marks.push(answer.fragment);
            events.extend(answer.events);
        }
        assert_eq!(marks.len(), expected);
        let (last, others) = marks.split_last().unwrap();
        assert!(!last && others.iter().all(|mark| *mark), "all but the last are marked");
        let keys: Vec<_> = events.iter().map(|event| event.kv().key_bytes()).collect();
        assert_eq!(keys, ["a", "b", "c", "d"]);
    }
}

#[tokio::test]
async fn l30_progress_is_a_promise_in_the_order_of_events() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::of(&mut clients, range("a", "", 0)).await;
    watching.ask_progress().await;
    assert_eq!(watching.told().await, "watch -1 at 1");
    for _ in 0..5 {
        clients.put("elsewhere", "").await;
    }
    watching.ask_progress().await;
    assert_eq!(watching.told().await, "watch -1 at 6", "it goes on where nothing is watched");
    clients.put("a", "1").await;
    watching.ask_progress().await;
    assert_eq!(watching.told().await, "watch 0 at 7: put a=1@7");
    assert_eq!(watching.told().await, "watch -1 at 7");
}

#[tokio::test]
async fn l30_progress_waits_for_the_watches_that_are_behind() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for _ in 0..100 {
        clients.put("a", "").await;
    }
    let mut watching = Watching::open(&mut clients).await;
    watching.create(range("a", "", 2)).await;
    watching.ask_progress().await;
    assert!(watching.answer().await.created);
    let mut seen = 1;
    loop {
        let answer = watching.answer().await;
        if answer.watch_id == -1 {
            assert_eq!(answer.header.unwrap().revision, 101);
            break;
        }
        for event in answer.events {
            seen += 1;
            assert_eq!(event.kv().mod_revision(), seen);
        }
    }
    assert_eq!(seen, 101, "nothing at or below the promised revision comes after it");
}

#[tokio::test]
async fn l30_an_idle_watch_that_asked_hears_of_progress() {
    let interval = Duration::from_millis(50);
    let store = Store::start_with(|options| options.watch_progress_interval = interval).await;
    let mut clients = store.clients().await;
    let request = WatchCreateRequest { progress_notify: true, ..range("a", "", 0) };
    let mut watching = Watching::of(&mut clients, request).await;
    clients.put("elsewhere", "").await;
    loop {
        match watching.told().await.as_str() {
            "watch 0 at 1" => {}
            told => break assert_eq!(told, "watch 0 at 2"),
        }
    }
}

#[tokio::test]
async fn l31_a_canceled_watch_says_so_and_the_others_go_on() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut watching = Watching::of(&mut clients, range("a", "", 0)).await;
    watching.create(range("b", "", 0)).await;
    assert_eq!(watching.told().await, "watch 1 at 1 created");
    watching.cancel(7).await;
    watching.cancel(0).await;
    assert_eq!(watching.told().await, "watch 0 at 1 canceled", "7 was never there");
    clients.put("a", "1").await;
    clients.put("b", "1").await;
    assert_eq!(watching.told().await, "watch 1 at 3: put b=1@3");
}

#[tokio::test]
async fn l31_a_client_that_asks_no_more_still_hears() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let watching = Watching::of(&mut clients, range("a", "", 0)).await;
    let mut half_closed = watching.half_close();
    clients.put("a", "1").await;
    assert_eq!(half_closed.told().await, "watch 0 at 2: put a=1@2");
    clients.put("a", "2").await;
    assert_eq!(half_closed.told().await, "watch 0 at 3: put a=2@3");
}

#[tokio::test]
async fn l32_a_watch_needs_the_right_to_read_all_of_its_range() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    clients.auth.role_add(AuthRoleAddRequest { name: "app".into() }).await.unwrap();
    for (key, range_end) in [("a", "c"), ("x", "\0")] {
        let perm = Permission {
            perm_type: Type::Read.into(),
            key: key.into(),
            range_end: range_end.into(),
        };
        let request = AuthRoleGrantPermissionRequest { name: "app".into(), perm: Some(perm) };
        clients.auth.role_grant_permission(request).await.unwrap();
    }
    clients.add_user("alice").await;
    clients.grant_role("alice", "app").await;
    clients.enable_auth().await;

    let denied = "rpc error: code = PermissionDenied desc = etcdserver: permission denied";
    let mut watching = Watching::open(&mut store.login("alice").await).await;
    for (key, range_end, is_permitted) in [
        ("a", "c", true),
        ("a", "d", false),
        ("a", "\0", false),
        ("x", "\0", true),
        ("y", "", true),
        ("", "\0", false),
    ] {
        watching.create(range(key, range_end, 0)).await;
        let told = watching.told().await;
        let is_created = !told.contains("canceled");
        assert_eq!(is_created, is_permitted, "{key}..{range_end}: {told}");
        assert!(is_permitted || told.ends_with(&format!("because {denied}")), "{told}");
    }

    let mut nobody = Watching::open(&mut store.clients().await).await;
    nobody.create(range("a", "", 0)).await;
    let told = nobody.told().await;
    assert!(
        told.ends_with(
            "because rpc error: code = InvalidArgument desc = etcdserver: user name is empty"
        ),
        "{told}"
    );
}
