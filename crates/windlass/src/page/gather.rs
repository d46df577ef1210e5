//! Asking the parts how they are, each over the way its clients have.

use std::{fmt, future::Future, net::SocketAddr, time::Duration};

use etcd_api::etcdserverpb::{
    RangeRequest, RangeResponse, RequestOp, StatusRequest, TxnRequest,
    kv_client::KvClient,
    maintenance_client::MaintenanceClient,
    range_request::{SortOrder, SortTarget},
    request_op::Request,
    response_op::Response,
};
use futures::future::join_all;
use jiff::Timestamp;
use tasks::{
    client::{Client, Options},
    core::{
        id::TaskId,
        keys::{Key, KeyRange, StatusKey},
    },
    wire,
};
use tokio::time::timeout;
use tonic::transport::Channel;

use super::snapshot::{Counts, ServiceFacts, Snapshot, StoreFacts, TaskFacts, Told};
use crate::{
    cli::TlsArgs,
    client::{self, http},
    commands::{nodes, task::describe},
};

/// Tasks of a kind that are shown.
const SHOWN_MAX: usize = 10;

/// A part on the same machine that takes longer is as good as silent.
const PATIENCE: Duration = Duration::from_secs(2);

/// Every key there is.
const EVERYTHING: KeyRange = KeyRange { start: &[0], end: &[0] };

/// Whom to ask.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Where the store serves clients.
    pub(crate) store: String,
    /// Where the task node does.
    pub(crate) node: String,
    pub(crate) services: Vec<Health>,
}

/// A service that answers probes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Health {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
}

/// All at once, so that it takes no longer than one that is silent.
pub(super) async fn all(parts: &Parts, now: Timestamp) -> Snapshot {
    let services = join_all(parts.services.iter().map(service));
    let (store, tasks, services) =
        tokio::join!(told(store(&parts.store)), told(tasks(parts)), services);
    Snapshot { version: env!("CARGO_PKG_VERSION"), at: now, store, tasks, services }
}

async fn service(health: &Health) -> ServiceFacts {
    ServiceFacts {
        name: health.name,
        address: health.address.to_string(),
        ready: told(ready(health.address)).await,
    }
}

async fn told<T>(asked: impl Future<Output = anyhow::Result<T>>) -> Told<T> {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Told::Known(answer),
        Ok(Err(error)) => Told::Unknown(format!("{error:#}")),
        Err(_elapsed) => Told::Unknown(format!("silent for {} s", PATIENCE.as_secs())),
    }
}

async fn connect(endpoint: &str) -> anyhow::Result<Channel> {
    Ok(client::connect(endpoint, &TlsArgs::default()).await?)
}

async fn store(endpoint: &str) -> anyhow::Result<StoreFacts> {
    let channel = connect(endpoint).await?;
    let status = MaintenanceClient::new(channel.clone()).status(StatusRequest {}).await;
    let status = status.map_err(refused)?.into_inner();
    let everything = KvClient::new(channel).range(count(EVERYTHING)).await;
    Ok(StoreFacts {
        endpoint: endpoint.to_owned(),
        revision: status.header.as_ref().map_or(0, |header| header.revision),
        keys: everything.map_err(refused)?.into_inner().count,
        bytes: status.db_size,
        bytes_in_use: status.db_size_in_use,
        errors: status.errors,
    })
}

async fn tasks(parts: &Parts) -> anyhow::Result<TaskFacts> {
    let client = Client::connect(&Options { address: parts.node.clone(), tls: None }).await?;
    let (counts, ended) = status_keys(&parts.store).await?;
    let mut latest = Vec::new();
    for id in ended {
        latest.push(described(client.status(id).await?)?);
    }
    Ok(TaskFacts {
        counts,
        nodes: client.nodes().await?.into_iter().map(nodes::Described::of).collect(),
        running: listed(&client, wire::State::Running).await?,
        queued: listed(&client, wire::State::Queued).await?,
        ended: latest,
    })
}

async fn listed(client: &Client, state: wire::State) -> anyhow::Result<Vec<describe::Described>> {
    let filter = wire::Filter { states: vec![state.into()], ..Default::default() };
    let listing = client.list(filter, SHOWN_MAX).await?;
    listing.tasks.into_iter().map(described).collect()
}

fn described(view: wire::TaskView) -> anyhow::Result<describe::Described> {
    Ok(describe::Described::read(view)?)
}

/// How many tasks there are of each kind, and which ended last: all of one moment, and of any number of
/// tasks at the same price.
async fn status_keys(endpoint: &str) -> anyhow::Result<(Counts, Vec<TaskId>)> {
    let ends = [KeyRange::COMPLETE, KeyRange::CANCELED, KeyRange::FAILED];
    let counted = [KeyRange::QUEUED, KeyRange::RUNNING].map(count);
    let requests = counted.into_iter().chain(ends.map(latest));
    let operation = |range| RequestOp { request: Some(Request::RequestRange(range)) };
    let txn = TxnRequest { success: requests.map(operation).collect(), ..Default::default() };
    let answer = KvClient::new(connect(endpoint).await?).txn(txn).await.map_err(refused)?;
    let answers = answer.into_inner().responses.into_iter().map(|op| match op.response {
        Some(Response::ResponseRange(range)) => Ok(range),
        _ => Err(anyhow::anyhow!("the store answered a read with something else")),
    });
    let answers = answers.collect::<anyhow::Result<Vec<RangeResponse>>>()?;
    let [queued, running, complete, canceled, failed] = answers.as_slice() else {
        anyhow::bail!("the store answered {} of 5 reads", answers.len());
    };
    let counts = Counts {
        queued: queued.count,
        running: running.count,
        complete: complete.count,
        canceled: canceled.count,
        failed: failed.count,
    };
    Ok((counts, newest([complete, canceled, failed])))
}

/// Status keys of ended tasks hold the second of their end; within one, ids that count up tell.
fn newest(ends: [&RangeResponse; 3]) -> Vec<TaskId> {
    let keys = ends.into_iter().flat_map(|range| &range.kvs).map(|kv| Key::parse(kv.key()));
    let mut ended: Vec<_> = keys
        .filter_map(|key| match key {
            Ok(Key::Status(StatusKey::Ended(_, epoch, id))) => Some((epoch, id)),
            // What is no key of a task is `windlass task fsck`'s to tell.
            _ => None,
        })
        .collect();
    ended.sort_unstable_by(|a, b| b.cmp(a));
    ended.into_iter().take(SHOWN_MAX).map(|(_, id)| id).collect()
}

fn count(KeyRange { start, end }: KeyRange) -> RangeRequest {
    let (key, range_end) = (start.into(), end.into());
    RangeRequest { key, range_end, count_only: true, ..Default::default() }
}

fn latest(KeyRange { start, end }: KeyRange) -> RangeRequest {
    RangeRequest {
        key: start.into(),
        range_end: end.into(),
        limit: i64::try_from(SHOWN_MAX).expect("a page is small"),
        keys_only: true,
        sort_order: SortOrder::Descend.into(),
        sort_target: SortTarget::Key.into(),
        ..Default::default()
    }
}

async fn ready(address: SocketAddr) -> anyhow::Result<()> {
    let answer = http::get(&address.to_string(), "/readyz").await?;
    anyhow::ensure!(answer.code == 200, "{}", answer.body.trim_end());
    Ok(())
}

fn refused(status: impl fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{status}")
}
