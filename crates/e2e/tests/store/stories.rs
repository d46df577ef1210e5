//! The keyspace's stories, told to whole stores: what they expect is what etcd answers, and what
//! windlass answers through its API.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::Client;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::ApiError;
use etcd_api::etcdserverpb as pb;
use etcd_api::mvccpb::Event;
use futures::StreamExt;
use mvcc::story::{self, Answer, Command};
use pb::watch_request::RequestUnion;
use tokio::time::timeout;
use tonic::Status;

/// How long a store may take to send what happened long ago.
const EVENTS_WAIT: Duration = Duration::from_secs(5);

#[test]
fn etcd_answers_as_the_stories_expect() {
    suite("etcd_answers_as_the_stories_expect", &[Lane::Etcd.asset()], async |scene| {
        check(scene, Lane::Etcd).await
    });
}

#[test]
fn windlass_answers_as_the_stories_expect() {
    suite("windlass_answers_as_the_stories_expect", &[Lane::Windlass.asset()], async |scene| {
        check(scene, Lane::Windlass).await
    });
}

/// Every story on a fresh store; all differences are told at once.
async fn check(scene: &Scene, lane: Lane) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mvcc/testdata");
    let mut differences = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.file_stem().context("a story has a name")?.to_string_lossy().into_owned();
        let options = StoreOptions::new(lane, &name).flags(lane.without_sync());
        let store = Store::start(scene, &options).await?;
        differences.extend(replay(&store.client()?, &name, &text).await?);
        count += 1;
    }
    ensure!(count > 0, "there are no stories in {}", folder.display());
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

async fn replay(client: &Client, name: &str, text: &str) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for step in story::parse(text).with_context(|| format!("read the story {name}"))? {
        let answer = match answer(client, step.command).await {
            Ok(answer) => answer,
            Err(status) => Answer::Refused(status.message().to_owned()),
        };
        let answer = answer.to_string();
        if answer != step.expected {
            let story::Step { text, expected, .. } = step;
            differences.push(format!("{name}: {text}expected:\n{expected}answered:\n{answer}"));
        }
    }
    Ok(differences)
}

async fn answer(client: &Client, command: Command) -> Result<Answer, Status> {
    Ok(match command {
        Command::Put(request) => Answer::Put(client.kv().put(request).await?.into_inner()),
        Command::Range(request) => Answer::Range(client.kv().range(request).await?.into_inner()),
        Command::DeleteRange(request) => {
            Answer::DeleteRange(client.kv().delete_range(request).await?.into_inner())
        }
        Command::Txn(request) => Answer::Txn(client.kv().txn(request).await?.into_inner()),
        Command::Compact(request) => {
            Answer::Compact(client.kv().compact(request).await?.into_inner())
        }
        Command::Grant(request) => {
            Answer::Grant(client.lease().lease_grant(request).await?.into_inner())
        }
        Command::Revoke(request) => {
            Answer::Revoke(client.lease().lease_revoke(request).await?.into_inner())
        }
        Command::TimeToLive(request) => time_to_live(client, request).await?,
        Command::HashKv(request) => {
            Answer::HashKv(client.maintenance().hash_kv(request).await?.into_inner())
        }
        Command::Watch(request) => Answer::Watch(watch(client, request).await?),
    })
}

/// In a story no time passes.
async fn time_to_live(
    client: &Client,
    request: pb::LeaseTimeToLiveRequest,
) -> Result<Answer, Status> {
    let mut response = client.lease().lease_time_to_live(request).await?.into_inner();
    if response.ttl >= 0 {
        response.ttl = response.granted_ttl;
    }
    response.keys.sort_unstable();
    Ok(Answer::TimeToLive(response))
}

/// All events up to the current revision.
async fn watch(client: &Client, request: pb::WatchCreateRequest) -> Result<Vec<Event>, Status> {
    let probe = pb::RangeRequest { key: "\0".into(), ..Default::default() };
    let header = client.kv().range(probe).await?.into_inner().header;
    let last = header.map_or(0, |header| header.revision);
    let start = request.start_revision;
    let create = pb::WatchRequest { request_union: Some(RequestUnion::CreateRequest(request)) };
    let requests = futures::stream::iter([create]).chain(futures::stream::pending());
    let mut stream = client.watch().watch(requests).await?.into_inner();
    let mut events: Vec<Event> = Vec::new();
    while start <= last && events.last().is_none_or(|event| event.kv().mod_revision() < last) {
        let response = timeout(EVENTS_WAIT, stream.message()).await;
        let response =
            response.map_err(|elapsed| Status::deadline_exceeded(elapsed.to_string()))?;
        let Some(response) = response? else { break };
        if response.canceled {
            return Err(Status::out_of_range(ApiError::Compacted.message()));
        }
        events.extend(response.events);
    }
    Ok(events)
}
