//! Logs: from the queue to the end, byte for byte, from whichever node is asked.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use sandbox::AttemptId;
use tasks::client::{self, Client};
use tasks::core::id::{TaskId, WriteId};
use tasks::core::keys::KeyRange;
use tasks::core::node::Node;
use tasks::core::transition::{Claimant, Stamp, claim};
use tasks::service::refusal::Kind;
use tasks::wire;
use tasks::wire::logs_response::Content;
use tasks::wire::status::Status;
use uuid::Uuid;

use super::served::{FAR_AHEAD_MS, Plan, Served, assert_refused, id_of, status_of, stuck};
use crate::live::computer::steps;
use crate::live::etcd::Etcd;
use crate::live::waiting::{PATIENCE, until};

fn request(id: TaskId) -> wire::LogsRequest {
    wire::LogsRequest { id: id.to_string(), ..Default::default() }
}

/// All of a log, as `(stream, bytes)`, and whether its end was seen.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    has_end: bool,
    next_offset: u64,
}

async fn read(client: &Client, request: wire::LogsRequest) -> Result<Read, client::Error> {
    let mut logs = client.logs(request);
    let mut read = Read::default();
    while let Some(chunk) = logs.next().await? {
        read.next_offset = chunk.next_offset;
        let is_stderr = chunk.stream() == wire::Stream::Stderr;
        match chunk.content.expect("every chunk is something") {
            Content::Data(bytes) if is_stderr => read.stderr.extend_from_slice(&bytes),
            Content::Data(bytes) => read.stdout.extend_from_slice(&bytes),
            Content::Gap(gap) => panic!("nothing is lost here: {gap:?}"),
            Content::End(_) => read.has_end = true,
        }
    }
    Ok(read)
}

async fn follow(client: &Client, id: TaskId) -> Read {
    let following = read(client, wire::LogsRequest { follow: true, ..request(id) });
    let read = tokio::time::timeout(PATIENCE, following).await.expect("it ends");
    read.expect("the log can be had")
}

/// Whoever follows comes before the node that will run the task, and asks another one.
#[tokio::test]
async fn a_log_is_followed_from_the_queue_to_the_end_through_another_node() {
    let etcd = Etcd::start().await;
    let first = Served::start(&etcd).await;
    let client = first.client().await;
    let there = wire::TaskSpec {
        rootfs: "there".to_owned(),
        ..steps("print hello complain oops sleep 0.3 exit 0")
    };
    let id = id_of(&client.submit(there).await.unwrap());
    let plan = Plan { name: "node2", rootfs: Some("there"), ..Plan::default() };
    let start = Served::start_as(&etcd, plan);
    let (read_all, second) = tokio::join!(follow(&client, id), start);
    assert_eq!(read_all.stdout, b"hello\n");
    assert_eq!(read_all.stderr, b"oops\n");
    assert!(read_all.has_end);

    let passed_on = wire::LogsRequest { proxied: true, ..request(id) };
    let refused = read(&client, passed_on).await;
    assert_refused(refused, Kind::Unavailable, "node2");
    second.stop().await;
    let refused = read(&client, request(id)).await;
    assert_refused(refused, Kind::Unavailable, "node2");
}

/// Bytes that are no text were replaced, and following a canceled task never ended.
#[tokio::test]
async fn reg07_follow_ends_and_logs_binary_safe() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(16 << 10).collect();
    let cat = wire::TaskSpec { stdin: Bytes::from(bytes.clone()), ..steps("cat") };
    let id = id_of(&client.submit(cat).await.unwrap());
    let whole = follow(&client, id).await;
    assert_eq!(whole.stdout, bytes);
    assert!(whole.has_end);

    let canceled = id_of(&client.submit(steps("print begun sleep 1000")).await.unwrap());
    let cancel = async {
        until("the start", async || {
            let view = client.status(canceled).await.ok()?;
            matches!(status_of(&view), Status::Running(_)).then_some(())
        })
        .await;
        client.cancel(canceled).await.expect("it runs");
    };
    let (followed, ()) = tokio::join!(follow(&client, canceled), cancel);
    assert_eq!(followed.stdout, b"begun\n");
    assert!(followed.has_end);
}

#[tokio::test]
async fn a_log_is_read_from_an_offset_and_by_its_last_lines() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    // The simulated machine writes its errors last.
    let id = id_of(&client.submit(steps("print one complain two print three")).await.unwrap());
    client.wait(&[id], PATIENCE).await.unwrap();
    let whole = follow(&client, id).await;
    assert_eq!(whole.next_offset, "one\nthree\ntwo\n".len() as u64);
    let from = wire::LogsRequest { from_offset: 5, ..request(id) };
    let rest = read(&client, from).await.unwrap();
    assert_eq!((&rest.stdout[..], &rest.stderr[..]), (&b"hree\n"[..], &b"two\n"[..]));
    let tail = wire::LogsRequest { tail: Some(2), ..request(id) };
    let tail = read(&client, tail).await.unwrap();
    assert_eq!((&tail.stdout[..], &tail.stderr[..]), (&b"three\n"[..], &b"two\n"[..]));
    let errors = wire::LogsRequest { streams: vec![wire::Stream::Stderr.into()], ..request(id) };
    let errors = read(&client, errors).await.unwrap();
    assert_eq!((&errors.stdout[..], &errors.stderr[..]), (&b""[..], &b"two\n"[..]));
}

/// An attempt that ran had a log, so none is not the same as an empty one.
#[tokio::test]
async fn a_log_that_is_gone_is_data_loss() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let id = id_of(&client.submit(steps("print hello exit 0")).await.unwrap());
    client.wait(&[id], PATIENCE).await.unwrap();
    // As long as the result has a record of its own, its directory is in use.
    until("the directory to be removed", async || {
        let removed = served.handle.host().sweep(|_| false, Duration::ZERO).await;
        (removed.unwrap() == 1).then_some(())
    })
    .await;
    for follow in [false, true] {
        let refused = read(&client, wire::LogsRequest { follow, ..request(id) }).await;
        assert_refused(refused, Kind::DataLoss, "attempt 1");
    }
}

/// The log of a deleted task lies there for a while: the next one under its id was said to have written it
/// from when it was claimed until it began.
#[tokio::test]
async fn a_task_under_the_id_of_a_deleted_one_has_a_log_of_its_own() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let keyed = |spec| wire::TaskSpec { idempotency_key: "nightly".to_owned(), ..spec };
    let id = id_of(&client.submit(keyed(steps("print earlier"))).await.unwrap());
    assert_eq!(follow(&client, id).await.stdout, b"earlier\n");
    client.wait(&[id], PATIENCE).await.unwrap();
    client.gc(FAR_AHEAD_MS).await.unwrap();
    let log = served.handle.host().logs(AttemptId { task: id.0, number: 1 });
    until("the result to be forgotten", async || (!log.is_current().unwrap()).then_some(())).await;

    client.submit(keyed(stuck())).await.unwrap();
    claim_in_the_name_of_the_node(&etcd, id).await;
    assert_eq!(read(&client, request(id)).await.unwrap(), Read::default());
    let followed = tokio::time::timeout(Duration::from_millis(200), follow(&client, id)).await;
    assert!(followed.is_err(), "it has not begun: {followed:?}");
}

/// Nothing is started by that.
async fn claim_in_the_name_of_the_node(etcd: &Etcd, id: TaskId) {
    let store = etcd.client();
    let nodes = store.list(KeyRange::NODES).await.expect("it answers").kvs;
    let (node, registered) = Node::decode(&nodes[0]).expect("it is registered");
    let Node { id: node, host, name, .. } = node;
    let claimant = Claimant { node, host, name, registered };
    let stamp = Stamp { now: Timestamp::now(), write_id: WriteId(Uuid::from_u128(1)) };
    let queued = store.get(id).await.expect("it answers").expect("it was submitted");
    let plan = claim(&queued, &claimant, stamp).expect("it is queued");
    assert!(store.txn(&plan.txn).await.expect("it answers").succeeded);
}

/// An attempt that never began has nothing to say; one that follows it does.
#[tokio::test]
async fn a_task_that_never_ran_has_an_empty_log() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let queued = id_of(&client.submit(stuck()).await.unwrap());
    assert_eq!(read(&client, request(queued)).await.unwrap(), Read::default());
    let (followed, canceled) = tokio::join!(follow(&client, queued), client.cancel(queued));
    canceled.unwrap();
    assert_eq!(followed, Read::default());
}
