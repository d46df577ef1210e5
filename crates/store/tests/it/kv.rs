//! Reads and writes of keys, by the numbers of their lines in the specification. What needs no
//! server (sorting, filters, transactions) is tested in `mvcc`.

use etcd_api::etcdserverpb::{
    CompactionRequest, DeleteRangeRequest, LeaseGrantRequest, MemberListRequest, PutRequest,
    RangeRequest, RangeResponse, RequestOp, ResponseHeader, StatusRequest, TxnRequest,
    range_request::{SortOrder, SortTarget},
    request_op::Request as Op,
    response_op::Response as Done,
};
use futures::{StreamExt, TryStreamExt};
use tonic::Status;

use crate::{
    harness::{Clients, Store, new_folder, open_journal, refusal, soon},
    held::HeldJournal,
    watching::{Watching, everything},
};

fn get(key: &'static str, revision: i64) -> RangeRequest {
    RangeRequest { key: key.into(), revision, ..Default::default() }
}

fn all() -> RangeRequest {
    RangeRequest { key: "\0".into(), range_end: "\0".into(), ..Default::default() }
}

async fn stream(
    clients: &mut Clients,
    request: RangeRequest,
) -> Result<Vec<RangeResponse>, Status> {
    let chunks = clients.kv.range_stream(request).await?.into_inner();
    chunks.map(|chunk| Ok(chunk?.range_response.expect("a chunk of a range"))).try_collect().await
}

/// What a client makes of the chunks.
fn merged(chunks: Vec<RangeResponse>) -> RangeResponse {
    let (last, others) = chunks.split_last().expect("there is always a last chunk");
    for chunk in others {
        assert_eq!((chunk.header, chunk.count, chunk.more), (None, 0, false), "in the last alone");
        assert!(!chunk.kvs.is_empty());
    }
    let kvs = chunks.iter().flat_map(|chunk| chunk.kvs.clone()).collect();
    RangeResponse { kvs, ..last.clone() }
}

#[tokio::test]
async fn l3_a_header_carries_the_latest_revision() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for value in ["2", "3", "4"] {
        clients.put("a", value).await;
    }
    for (revision, expected) in [(2, "2"), (3, "3"), (4, "4"), (0, "4"), (-1, "4")] {
        let answer = clients.kv.range(get("a", revision)).await.unwrap().into_inner();
        assert_eq!(answer.header.unwrap().revision, 4, "asked for {revision}");
        assert_eq!(answer.kvs[0].value(), expected.as_bytes(), "asked for {revision}");
    }
}

#[tokio::test]
async fn l4_every_header_names_the_store_and_its_revision() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let headers = headers(&mut clients).await;
    let first = headers[0];
    assert!(first.cluster_id != 0 && first.member_id != 0 && first.raft_term != 0);
    for header in &headers {
        assert_eq!(
            ResponseHeader { revision: 2, ..*header },
            ResponseHeader { revision: 2, ..first }
        );
        assert!(header.revision >= 1);
    }
    drop(clients);
    let store = store.restart().await;
    let again = store.clients().await.all_at(0).await.header.unwrap();
    assert_eq!((again.cluster_id, again.member_id), (first.cluster_id, first.member_id));
    assert!(again.raft_term > first.raft_term, "a new term for each writer");
}

/// The headers of one answer of each kind that has one.
async fn headers(clients: &mut Clients) -> Vec<ResponseHeader> {
    let put = PutRequest { key: "a".into(), ..Default::default() };
    let delete = DeleteRangeRequest { key: "a".into(), ..Default::default() };
    let grant = LeaseGrantRequest { id: 0, ttl: 100 };
    let compact = CompactionRequest { revision: 2, ..Default::default() };
    let mut watching = Watching::open(clients).await;
    watching.create(everything(0)).await;
    let headers = [
        clients.kv.put(put).await.unwrap().into_inner().header,
        clients.kv.range(all()).await.unwrap().into_inner().header,
        clients.kv.txn(TxnRequest::default()).await.unwrap().into_inner().header,
        clients.kv.compact(compact).await.unwrap().into_inner().header,
        clients.kv.delete_range(delete).await.unwrap().into_inner().header,
        stream(clients, all()).await.unwrap().last().and_then(|chunk| chunk.header),
        watching.answer().await.header,
        watching.answer().await.header,
        clients.lease.lease_grant(grant).await.unwrap().into_inner().header,
        clients.maintenance.status(StatusRequest {}).await.unwrap().into_inner().header,
    ];
    let members = clients.cluster.member_list(MemberListRequest::default()).await.unwrap();
    let members = members.into_inner().header.expect("every answer has a header");
    assert_ne!(members.cluster_id, 0);
    headers.map(|header| header.expect("every answer has a header")).into()
}

#[tokio::test]
async fn l4_nested_answers_carry_the_revision_alone() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let put = PutRequest { key: "a".into(), ..Default::default() };
    let delete = DeleteRangeRequest { key: "b".into(), ..Default::default() };
    let inner = TxnRequest {
        success: vec![RequestOp { request: Some(Op::RequestRange(all())) }],
        ..Default::default()
    };
    let ops = [
        Op::RequestPut(put),
        Op::RequestRange(all()),
        Op::RequestDeleteRange(delete),
        Op::RequestTxn(inner),
    ];
    let success = ops.map(|op| RequestOp { request: Some(op) }).into();
    let answer = clients.kv.txn(TxnRequest { success, ..Default::default() }).await.unwrap();
    let answer = answer.into_inner();
    assert_ne!(answer.header.unwrap().cluster_id, 0);
    let only = |revision| Some(ResponseHeader { revision, ..Default::default() });
    for done in answer.responses {
        let (header, expected) = match done.response.unwrap() {
            Done::ResponseRange(done) => (done.header, only(2)),
            Done::ResponsePut(done) => (done.header, only(2)),
            Done::ResponseDeleteRange(done) => (done.header, only(2)),
            // As etcd's: the revision stands in the outermost answer and in those of the operations.
            Done::ResponseTxn(done) => (done.header, only(0)),
        };
        assert_eq!(header, expected);
    }
}

#[tokio::test]
async fn l10_nothing_is_seen_before_it_is_durable() {
    let folder = new_folder();
    let journal = HeldJournal::new(open_journal(&folder));
    let store = Store::start_over(journal.clone(), folder, |_| {}).await;
    let (mut writer, mut reader) = (store.clients().await, store.clients().await);
    writer.put("a", "1").await;
    let mut watching = Watching::of(&mut reader, everything(0)).await;

    journal.hold();
    let write = writer.put("a", "2");
    let look = async {
        journal.arrival().await;
        for serializable in [true, false] {
            let request = RangeRequest { serializable, ..get("a", 0) };
            let answer = reader.kv.range(request).await.unwrap().into_inner();
            assert_eq!(answer.header.unwrap().revision, 2);
            assert_eq!(answer.kvs[0].value(), b"1");
        }
        watching.ask_progress().await;
        assert_eq!(watching.told().await, "watch -1 at 2");
        journal.release();
    };
    let (revision, ()) = soon(async { tokio::join!(write, look) }).await;
    assert_eq!(revision, 3);
    assert_eq!(watching.told().await, "watch 0 at 3: put a=2@3");
    let request = RangeRequest { serializable: true, ..get("a", 0) };
    assert_eq!(reader.kv.range(request).await.unwrap().into_inner().kvs[0].value(), b"2");
}

#[tokio::test]
async fn l11_the_chunks_of_a_stream_merge_to_the_range() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for number in 0..100 {
        clients.put(&format!("{number:03}"), vec![b'v'; number]).await;
    }
    for request in [
        all(),
        RangeRequest { limit: 1, ..all() },
        RangeRequest { limit: 40, ..all() },
        RangeRequest { limit: 100, ..all() },
        RangeRequest { revision: 51, ..all() },
        RangeRequest { keys_only: true, ..all() },
        RangeRequest { count_only: true, ..all() },
        get("050", 0),
        get("missing", 0),
    ] {
        let whole = clients.kv.range(request.clone()).await.unwrap().into_inner();
        let chunks = stream(&mut clients, request.clone()).await.unwrap();
        assert_eq!(merged(chunks), whole, "{request:?}");
    }
    assert!(stream(&mut clients, all()).await.unwrap().len() > 1, "there is something to merge");
}

#[tokio::test]
async fn l11_a_stream_stays_at_its_revision() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    // More than a connection takes before its reader reads.
    let value = vec![b'v'; 64 * 1024];
    for number in 0..100 {
        clients.put(&format!("{number:03}"), value.clone()).await;
    }
    let mut chunks = clients.kv.range_stream(all()).await.unwrap().into_inner();
    let first = chunks.next().await.expect("a chunk").unwrap();
    let revision = clients.delete("\0", "\0").await;
    clients.compact(revision).await;
    let mut kvs = first.range_response.unwrap().kvs;
    let mut last = None;
    while let Some(chunk) = soon(chunks.next()).await {
        let chunk = chunk.unwrap().range_response.unwrap();
        kvs.extend(chunk.kvs.iter().cloned());
        last = Some(chunk);
    }
    let last = last.expect("more than one chunk");
    assert_eq!((kvs.len(), last.count, last.more), (100, 100, false));
    assert!(kvs.iter().all(|kv| *kv.value() == *value));
}

#[tokio::test]
async fn l11_what_cannot_be_streamed_is_refused_cleanly() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let sorted = |target: SortTarget, order: SortOrder| RangeRequest {
        sort_target: target.into(),
        sort_order: order.into(),
        ..all()
    };
    for request in [
        sorted(SortTarget::Key, SortOrder::Descend),
        sorted(SortTarget::Mod, SortOrder::Ascend),
        sorted(SortTarget::Mod, SortOrder::None),
        RangeRequest { min_mod_revision: 1, ..all() },
        RangeRequest { max_mod_revision: 1, ..all() },
        RangeRequest { min_create_revision: 1, ..all() },
        RangeRequest { max_create_revision: 1, ..all() },
    ] {
        let refused = refusal(stream(&mut clients, request.clone()).await);
        assert!(refused.starts_with("Unimplemented: "), "{request:?}: {refused}");
    }
    assert_eq!(
        refusal(stream(&mut clients, RangeRequest { revision: 9, ..all() }).await),
        "OutOfRange: etcdserver: mvcc: required revision is a future revision"
    );
}

#[tokio::test]
async fn l22_compaction_has_bounds_and_answers_with_the_revision() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    for value in ["2", "3", "4", "5"] {
        clients.put("a", value).await;
    }
    let mut compact = async |revision| {
        let request = CompactionRequest { revision, physical: false };
        clients.kv.compact(request).await.map(|answer| answer.into_inner().header.unwrap().revision)
    };
    let future = "OutOfRange: etcdserver: mvcc: required revision is a future revision";
    let compacted = "OutOfRange: etcdserver: mvcc: required revision has been compacted";
    assert_eq!(refusal(compact(6).await), future);
    assert_eq!(compact(3).await.unwrap(), 5);
    assert_eq!(refusal(compact(3).await), compacted);
    assert_eq!(refusal(compact(2).await), compacted);
    assert_eq!(compact(5).await.unwrap(), 5, "the newest revision may be compacted to");
    assert_eq!(refusal(clients.kv.range(get("a", 4)).await), compacted);
    assert_eq!(clients.kv.range(get("a", 5)).await.unwrap().into_inner().kvs[0].value(), b"5");
}

#[tokio::test]
async fn l22_a_physical_compaction_waits_for_the_work() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let mut revision = 0;
    for _ in 0..100 {
        revision = clients.put("a", vec![b'v'; 4096]).await;
    }
    let in_use = async |clients: &mut Clients| {
        let status = clients.maintenance.status(StatusRequest {}).await.unwrap();
        status.into_inner().db_size_in_use
    };
    let before = in_use(&mut clients).await;
    clients.compact(revision).await;
    let after = in_use(&mut clients).await;
    assert!(after < before / 10, "{before} then {after}");
}
