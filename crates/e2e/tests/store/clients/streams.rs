//! What a watch stream does beside delivering events: fragments and notices of progress. On etcd
//! and on windlass.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::Client;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb as pb;
use futures::StreamExt;
use pb::request_op::Request;
use pb::watch_request::RequestUnion;
use prost::Message;
use tokio::time::timeout;
use tonic::Streaming;

/// How long anything may take to arrive.
const ARRIVAL_WAIT: Duration = Duration::from_secs(20);

/// How often a store tells of progress here.
const NOTIFY_FLAG: &str = "--watch-progress-notify-interval=100ms";

/// Values that together weigh more than a request may: only in fragments do they come apart.
const VALUES: usize = 4;
const VALUE_BYTES: usize = 1024 * 1024;

/// What a request may weigh by default.
const REQUEST_BYTES: usize = 1024 * 1024 + 512 * 1024;

macro_rules! lanes {
    ($($etcd:ident / $windlass:ident => $check:ident;)+) => {$(
        #[test]
        fn $etcd() {
            run(stringify!($etcd), Lane::Etcd, async |client| $check(client).await);
        }

        #[test]
        fn $windlass() {
            run(stringify!($windlass), Lane::Windlass, async |client| $check(client).await);
        }
    )+};
}

lanes! {
    etcd_sends_fragments / windlass_sends_fragments => check_fragments;
    etcd_tells_of_progress / windlass_tells_of_progress => check_progress;
}

fn run(name: &'static str, lane: Lane, check: impl AsyncFnOnce(&Client) -> Result<()>) {
    suite(name, &[lane.asset()], async |scene: &Scene| {
        let options =
            StoreOptions::new(lane, "store").flags(lane.without_sync()).flags([NOTIFY_FLAG]);
        let store = Store::start(scene, &options).await?;
        check(&store.client()?).await
    });
}

/// The deletes of one revision, with what they deleted: in one answer, or in pieces if asked for.
async fn check_fragments(client: &Client) -> Result<()> {
    for number in 0..VALUES {
        let value = vec![b'x'; VALUE_BYTES].into();
        let key = format!("big/{number}").into();
        client.kv().put(pb::PutRequest { key, value, ..Default::default() }).await?;
    }
    let whole = pb::WatchCreateRequest { prev_kv: true, ..prefix("big/", "big0") };
    let pieces = pb::WatchCreateRequest { fragment: true, ..whole.clone() };
    let mut whole = watch(client, whole).await?;
    let mut pieces = watch(client, pieces).await?;
    let delete = pb::DeleteRangeRequest {
        key: "big/".into(),
        range_end: "big0".into(),
        ..Default::default()
    };
    let operation = pb::RequestOp { request: Some(Request::RequestDeleteRange(delete)) };
    client.kv().txn(pb::TxnRequest { success: vec![operation], ..Default::default() }).await?;

    let answer = next(&mut whole).await?;
    ensure!(answer.events.len() == VALUES && !answer.fragment, "{} events", answer.events.len());
    let mut seen = Vec::new();
    let mut count = 0;
    loop {
        let piece = next(&mut pieces).await?;
        ensure!(piece.encoded_len() <= REQUEST_BYTES, "{} bytes in one piece", piece.encoded_len());
        count += 1;
        seen.extend(piece.events);
        if !piece.fragment {
            break;
        }
    }
    ensure!(count > 1, "there was nothing to put together");
    ensure!(seen == answer.events, "pieces and whole differ");
    Ok(())
}

/// A watch that hears nothing is told of progress, at the newest revision; one that did not ask is
/// not; one that hears something is told later.
async fn check_progress(client: &Client) -> Result<()> {
    let asking = pb::WatchCreateRequest { progress_notify: true, ..prefix("quiet/", "quiet0") };
    let mut asking = watch(client, asking).await?;
    let mut silent = watch(client, prefix("quiet/", "quiet0")).await?;
    let put = pb::PutRequest { key: "elsewhere".into(), ..Default::default() };
    let header = client.kv().put(put).await?.into_inner().header.context("a header")?;
    loop {
        let notice = next(&mut asking).await?;
        ensure!(notice.events.is_empty() && !notice.canceled && notice.watch_id == 0, "{notice:?}");
        let revision = notice.header.context("a notice has a header")?.revision;
        ensure!(0 < revision && revision <= header.revision, "progress {revision}");
        if revision == header.revision {
            break;
        }
    }
    let put = pb::PutRequest { key: "quiet/1".into(), ..Default::default() };
    client.kv().put(put).await?;
    let first = next(&mut silent).await?;
    ensure!(first.events.len() == 1, "it was told something before: {first:?}");
    Ok(())
}

fn prefix(key: &str, range_end: &str) -> pb::WatchCreateRequest {
    pb::WatchCreateRequest {
        key: key.to_owned().into(),
        range_end: range_end.to_owned().into(),
        ..Default::default()
    }
}

/// A stream with one watch, which was created.
async fn watch(
    client: &Client,
    request: pb::WatchCreateRequest,
) -> Result<Streaming<pb::WatchResponse>> {
    let create = pb::WatchRequest { request_union: Some(RequestUnion::CreateRequest(request)) };
    let requests = futures::stream::iter([create]).chain(futures::stream::pending());
    let mut stream = client.watch().watch(requests).await?.into_inner();
    let created = next(&mut stream).await?;
    ensure!(created.created && !created.canceled, "{created:?}");
    Ok(stream)
}

async fn next(stream: &mut Streaming<pb::WatchResponse>) -> Result<pb::WatchResponse> {
    let answer = timeout(ARRIVAL_WAIT, stream.message()).await.context("nothing arrived")??;
    answer.context("the stream ended")
}
