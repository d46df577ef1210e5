//! What is refused, with which code and in which words.

use std::time::Duration;

use bytes::Bytes;
use tasks::client::{self, Client};
use tasks::core::id::TaskId;
use tasks::core::keys::Key;
use tasks::service::Bounds;
use tasks::service::refusal::{Kind, Refusal};
use tasks::wire;
use tasks::wire::tasks_client::TasksClient;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use uuid::Uuid;

use super::served::{Plan, Served, assert_refused, id_of, refusal, status_of, stuck};
use crate::live::computer::steps;
use crate::live::etcd::Etcd;
use crate::live::waiting::PATIENCE;

const NOBODY: TaskId = TaskId(Uuid::from_u128(0x70_0000));

/// Every field of a spec that can be wrong, and what a refusal calls it.
fn bad_specs() -> Vec<(&'static str, wire::TaskSpec)> {
    let good = || steps("exit 0");
    let resources =
        |memory| Some(wire::Resources { memory_bytes: Some(memory), ..Default::default() });
    vec![
        ("command", wire::TaskSpec { command: String::new(), ..good() }),
        ("args[0]", wire::TaskSpec { args: vec!["a\0".to_owned()], ..good() }),
        ("workdir", wire::TaskSpec { workdir: "here".to_owned(), ..good() }),
        ("user", wire::TaskSpec { user: "root".to_owned(), ..good() }),
        ("stdin", wire::TaskSpec { stdin: Bytes::from(vec![0; 20 << 10]), ..good() }),
        ("rootfs", wire::TaskSpec { rootfs: "../etc".to_owned(), ..good() }),
        ("network", wire::TaskSpec { network: 9, ..good() }),
        ("resources.memory_bytes", wire::TaskSpec { resources: resources(1), ..good() }),
        ("timeout_ms", wire::TaskSpec { timeout_ms: Some(1), ..good() }),
        ("grace_ms", wire::TaskSpec { grace_ms: Some(u64::MAX), ..good() }),
        ("retries", wire::TaskSpec { retries: 101, ..good() }),
        ("name", wire::TaskSpec { name: "x".repeat(129), ..good() }),
        ("priority", wire::TaskSpec { priority: 101, ..good() }),
    ]
}

#[tokio::test]
async fn bad_specs_are_refused_by_the_name_of_their_field() {
    let etcd = Etcd::start().await;
    let client = Served::start(&etcd).await;
    let client = client.client().await;
    for (field, spec) in bad_specs() {
        let refused = refusal(client.submit(spec.clone()).await);
        assert_eq!(refused.kind, Kind::InvalidArgument, "{field}: {refused}");
        assert!(refused.message.starts_with(field), "{field}: {refused}");
        let batch = client.submit_batch(vec![steps("exit 0"), spec]).await.unwrap();
        assert!(batch[0].is_ok(), "{batch:?}");
        assert_eq!(batch[1].as_ref().unwrap_err().kind, Kind::InvalidArgument, "{field}");
    }
}

#[tokio::test]
async fn bad_requests_are_refused_by_the_name_of_their_field() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let list = |filter, limit, token: &str| {
        let request = wire::ListRequest { filter: Some(filter), limit, token: token.to_owned() };
        call(&served, async move |mut tasks| tasks.list(request).await)
    };
    let none = wire::Filter::default;
    let states = wire::Filter { states: vec![77], ..none() };
    let node = wire::Filter { node_id: "node1".to_owned(), ..none() };
    for (field, kind) in [
        ("limit", list(none(), 1001, "").await),
        ("token", list(none(), 1, "x").await),
        ("filter.states", list(states, 1, "").await),
        ("filter.node_id", list(node, 1, "").await),
        ("ids", wait(&served, vec![], 0).await),
        ("ids", wait(&served, vec!["x".to_owned()], 0).await),
        ("ids", wait(&served, vec![NOBODY.to_string(); 101], 0).await),
        ("timeout_ms", wait(&served, vec![NOBODY.to_string()], 600_001).await),
        ("id", logs(&served, wire::LogsRequest::default()).await),
        ("streams", logs(&served, log(|log| log.streams = vec![7])).await),
        ("tail", logs(&served, log(|log| (log.tail, log.from_offset) = (Some(1), 1))).await),
        ("before_ms", client.gc(i64::MAX).await.map_err(only_refused).err()),
    ] {
        let refused = kind.expect("it is refused");
        assert_eq!(refused.kind, Kind::InvalidArgument, "{field}: {refused}");
        assert!(refused.message.starts_with(&format!("{field}: ")), "{field}: {refused}");
    }
}

fn only_refused(error: client::Error) -> Refusal {
    match error {
        client::Error::Refused(refusal) => refusal,
        other => panic!("not refused: {other}"),
    }
}

/// Calls without the client, which makes no such requests.
async fn call<T, E: Into<Refusal>>(
    served: &Served,
    call: impl AsyncFnOnce(TasksClient<Channel>) -> Result<tonic::Response<T>, E>,
) -> Option<Refusal> {
    call(served.stub().await).await.err().map(Into::into)
}

async fn wait(served: &Served, ids: Vec<String>, timeout_ms: u64) -> Option<Refusal> {
    let request = wire::WaitRequest { ids, timeout_ms };
    call(served, async move |mut tasks| tasks.wait(request).await).await
}

async fn logs(served: &Served, request: wire::LogsRequest) -> Option<Refusal> {
    call(served, async move |mut tasks| tasks.logs(request).await).await
}

fn log(change: impl FnOnce(&mut wire::LogsRequest)) -> wire::LogsRequest {
    let mut request = wire::LogsRequest { id: NOBODY.to_string(), ..Default::default() };
    change(&mut request);
    request
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let name = NOBODY.to_string();
    assert_refused(client.status(NOBODY).await, Kind::NotFound, &name);
    assert_refused(client.explain(NOBODY).await, Kind::NotFound, &name);
    assert_refused(client.cancel(NOBODY).await, Kind::NotFound, &name);
    assert_refused(client.wait(&[NOBODY], Duration::ZERO).await, Kind::NotFound, &name);
    let mut log = client.logs(log(|_| {}));
    assert_refused(log.next().await, Kind::NotFound, &name);
    assert_refused(client.drain("node9").await, Kind::NotFound, "node9");
    let id = id_of(&client.submit(steps("exit 0")).await.unwrap());
    client.wait(&[id], PATIENCE).await.unwrap();
    let attempt = wire::LogsRequest { id: id.to_string(), attempt: 2, ..Default::default() };
    assert_refused(client.logs(attempt).next().await, Kind::NotFound, "no attempt 2");
}

/// Nobody knows then whether the task will be canceled: asking again is the caller's choice.
#[tokio::test]
async fn a_cancel_that_loses_every_race_is_aborted() {
    const MEDDLERS: usize = 8;
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let id = id_of(&client.submit(stuck()).await.unwrap());
    let mut meddling = JoinSet::new();
    for _ in 0..MEDDLERS {
        meddling.spawn(Etcd::meddle(etcd.address(), Key::Task(id).to_string()));
    }
    // One that wins is overwritten, and the task is queued again.
    let refused = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Err(error) = client.cancel(id).await {
                break refusal(Err::<(), _>(error));
            }
        }
    });
    let refused = refused.await.expect("with so many others it loses before long");
    assert_eq!(refused.kind, Kind::Aborted, "{refused}");
    assert!(refused.message.contains(&id.to_string()), "{refused}");
}

#[tokio::test]
async fn a_key_is_one_task() {
    let etcd = Etcd::start().await;
    let client = Served::start(&etcd).await;
    let client = client.client().await;
    let keyed =
        |command: &str| wire::TaskSpec { idempotency_key: "nightly".to_owned(), ..steps(command) };
    let first = client.submit(keyed("exit 0")).await.unwrap();
    let again = client.submit(keyed("exit 0")).await.unwrap();
    assert_eq!((&first.id, first.existed, again.existed), (&again.id, false, true));
    assert_refused(client.submit(keyed("exit 1")).await, Kind::AlreadyExists, &first.id);
    let batch = client.submit_batch(vec![keyed("exit 1"), keyed("exit 0")]).await.unwrap();
    assert_eq!(batch[0].as_ref().unwrap_err().kind, Kind::AlreadyExists);
    assert_eq!(batch[1].as_ref().unwrap().id, first.id);
}

#[tokio::test]
async fn a_full_queue_takes_only_what_it_has() {
    let etcd = Etcd::start().await;
    let bounds = Bounds { queued_max: 2, ..Bounds::default() };
    let served = Served::start_as(&etcd, Plan { bounds, ..Plan::default() }).await;
    let client = served.client().await;
    let keyed = wire::TaskSpec { idempotency_key: "k".to_owned(), ..stuck() };
    let first = client.submit(keyed.clone()).await.unwrap();
    let batch = client.submit_batch(vec![stuck(), stuck()]).await.unwrap();
    // How many are queued a node learns from its watch.
    let taken = batch.iter().filter(|each| each.is_ok()).count();
    assert!(taken >= 1, "{batch:?}");
    crate::live::waiting::until("a full queue", async || {
        client.submit(stuck()).await.is_err().then_some(())
    })
    .await;
    assert_refused(client.submit(stuck()).await, Kind::ResourceExhausted, "queued");
    assert_eq!(
        client.submit(keyed.clone()).await.unwrap().id,
        first.id,
        "a repetition adds nothing"
    );
    let batch = client.submit_batch(vec![stuck(), keyed, stuck()]).await.unwrap();
    let [new, known, newer] = batch.as_slice() else { panic!("{batch:?}") };
    assert_eq!(known.as_ref().map(|it| &it.id), Ok(&first.id), "nor does it in a batch");
    for refused in [new, newer] {
        assert_eq!(refused.as_ref().unwrap_err().kind, Kind::ResourceExhausted, "{batch:?}");
    }
}

#[tokio::test]
async fn what_has_ended_is_not_canceled_and_what_is_canceled_may_be_again() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let ended = id_of(&client.submit(steps("exit 0")).await.unwrap());
    client.wait(&[ended], PATIENCE).await.unwrap();
    assert_refused(client.cancel(ended).await, Kind::FailedPrecondition, "complete");
    let queued = id_of(&client.submit(stuck()).await.unwrap());
    for _ in 0..2 {
        let canceled = client.cancel(queued).await.unwrap();
        assert!(matches!(status_of(&canceled), wire::status::Status::Canceled(_)));
    }
}

/// Whoever loses the race to write finds the task canceled.
#[tokio::test]
async fn many_may_cancel_at_once() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let client = served.client().await;
    let id = id_of(&client.submit(steps("sleep 60")).await.unwrap());
    let cancels = (0..20).map(|_| client.cancel(id));
    let canceled = futures::future::join_all(cancels).await;
    assert!(canceled.iter().all(Result::is_ok), "{canceled:?}");
    let ended = client.wait(&[id], PATIENCE).await.unwrap();
    assert!(ended.done);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn bounds_are_refusals_and_not_queues() {
    let etcd = Etcd::start().await;
    let bounds = Bounds { waiters_max: 1, watchers_max: 1, followers_max: 1, ..Bounds::default() };
    let served = Served::start_as(&etcd, Plan { bounds, ..Plan::default() }).await;
    let client = served.client().await;
    let id = id_of(&client.submit(stuck()).await.unwrap());
    let watch = client.watch(wire::Filter::default()).await.unwrap();
    let refused = client.watch(wire::Filter::default()).await;
    assert_refused(refused.map(drop), Kind::ResourceExhausted, "1 watchers");
    drop(watch);
    first_waits(&client, id).await;
}

/// While one waits, another one is refused; when it is gone, there is room again.
async fn first_waits(client: &Client, id: TaskId) {
    let ids = [id];
    let waiting = client.wait(&ids, PATIENCE);
    let other = crate::live::waiting::until("a refusal", async || {
        client.wait(&[id], Duration::ZERO).await.err()
    });
    let refused = tokio::select! {
        answer = waiting => panic!("nothing ended: {answer:?}"),
        refused = other => refused,
    };
    assert_refused::<()>(Err(refused), Kind::ResourceExhausted, "1 waiters");
    crate::live::waiting::until("room again", async || {
        client.wait(&[id], Duration::ZERO).await.ok()
    })
    .await;
}
