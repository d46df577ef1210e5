//! The keyspace's stories, told to whole stores: what they expect is what etcd answers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etcd_api::ApiError;
use etcd_api::etcdserverpb as pb;
use etcd_api::mvccpb::Event;
use futures::StreamExt;
use mvcc::story::{self, Answer, Command};
use pb::watch_request::RequestUnion;
use tokio::time::timeout;
use tonic::Status;

use crate::client::Client;

/// How long a store may take to send what happened long ago.
const EVENTS_WAIT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Story {
    pub name: String,
    text: String,
}

/// All there are.
pub fn all() -> Result<Vec<Story>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mvcc/testdata");
    let mut stories = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let name = path.file_stem().context("a story has a name")?.to_string_lossy().into_owned();
        stories.push(Story { name, text });
    }
    ensure!(!stories.is_empty(), "there are no stories in {}", folder.display());
    Ok(stories)
}

// === impl Story ===

impl Story {
    /// Tells it to a store that was told nothing yet, each step to the next of its members; where answers
    /// differ.
    pub async fn tell(&self, members: &[Client]) -> Result<Vec<String>> {
        let Self { name, text } = self;
        let steps = story::parse(text).with_context(|| format!("read the story {name}"))?;
        let mut differences = Vec::new();
        for (step, member) in steps.into_iter().zip(members.iter().cycle()) {
            let answer = match answer(member, step.command).await {
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
            catch_up(client).await?;
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
    let last = catch_up(client).await?;
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

/// The current revision, which the member shows once it was asked: hashes and watches are of what it shows.
async fn catch_up(client: &Client) -> Result<i64, Status> {
    let probe = pb::RangeRequest { key: "\0".into(), ..Default::default() };
    let header = client.kv().range(probe).await?.into_inner().header;
    Ok(header.map_or(0, |header| header.revision))
}
