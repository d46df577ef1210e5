//! A store that is away: no method answers from what the node remembers.

use futures::FutureExt;
use futures::future::{LocalBoxFuture, join_all};
use tasks::client::Client;
use tasks::service::refusal::{Kind, Refusal};
use tasks::wire;

use super::served::{FAR_AHEAD_MS, Served, id_of, stuck};
use crate::live::etcd::Etcd;
use crate::live::waiting::PATIENCE;

type Calls<'a> = Vec<(&'static str, LocalBoxFuture<'a, Refusal>)>;

/// One call of each method, without the client, which would make it again.
macro_rules! calls {
    ($stub:expr; $($method:ident($request:expr)),+ $(,)?) => {
        vec![$((stringify!($method), {
            let (mut tasks, request) = ($stub.clone(), $request);
            async move { refused(tasks.$method(request).await) }.boxed_local()
        })),+]
    };
}

#[tokio::test]
async fn without_a_store_nothing_is_answered() {
    let etcd = Etcd::start().await;
    let served = Served::start(&etcd).await;
    let (client, stub) = (served.client().await, served.stub().await);
    let id = id_of(&client.submit(stuck()).await.unwrap()).to_string();
    let mut watch = client.watch(wire::Filter::default()).await.unwrap();
    let kept = etcd.stop().await;
    let mut calls: Calls<'_> = calls! { stub;
        submit(wire::SubmitRequest { spec: Some(stuck()) }),
        status(wire::StatusRequest { id: id.clone() }),
        explain(wire::ExplainRequest { id: id.clone() }),
        list(wire::ListRequest::default()),
        wait(wire::WaitRequest { ids: vec![id.clone()], timeout_ms: 1000 }),
        watch(wire::WatchRequest::default()),
        cancel(wire::CancelRequest { id: id.clone() }),
        logs(wire::LogsRequest { id: id.clone(), ..Default::default() }),
        nodes(wire::NodesRequest {}),
        drain(wire::DrainRequest { node: "node1".to_owned(), proxied: false }),
        fsck(wire::FsckRequest { repair: false }),
        gc(wire::GcRequest { before_ms: FAR_AHEAD_MS }),
    };
    calls.push(("submit_batch", batch(&client).boxed_local()));
    // All at once: a write is sent again for a while before it is given up.
    let calls = calls.into_iter().map(async |(method, call)| (method, call.await));
    for (method, refusal) in join_all(calls).await {
        assert_eq!(refusal.kind, Kind::Unavailable, "{method}: {refusal}");
    }
    let ended = tokio::time::timeout(PATIENCE, watch.message()).await.expect("it ends");
    let status = ended.expect_err("whoever watches is told");
    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
    drop(kept);
}

#[track_caller]
fn refused<T>(answer: Result<tonic::Response<T>, tonic::Status>) -> Refusal {
    answer.err().expect("it is refused").into()
}

/// Each task of it has a refusal of its own.
async fn batch(client: &Client) -> Refusal {
    let mut results =
        client.submit_batch(vec![stuck()]).await.expect("a batch is answered item by item");
    results.remove(0).expect_err("nothing is stored without the store")
}
