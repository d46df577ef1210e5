//! A node and a task of a newer version beside ours: ours neither touch what they do not understand nor
//! wait for it.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use e2e::client::Client;
use e2e::scene::Scene;
use e2e::tasks::cluster::{Cluster, ClusterOptions};
use e2e::tasks::ledger::{Work, shell};
use etcd_api::etcdserverpb as pb;
use prost::Message;
use sha2::{Digest, Sha256};
use tasks::core::record::SCHEMA;
use tasks::wire::{self, Queued, status::Status};

use crate::stage::cases;

/// Both belong to nobody.
const TASK: &str = "00000000-0000-4000-8000-000000000001";
const NODE: &str = "00000000-0000-4000-8000-000000000002";

/// Longer than the case.
const LEASE_SECONDS: i64 = 600;

cases! { newer_records_are_left_alone }

async fn newer_records_are_left_alone(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let store = cluster.store.client()?;
    let lease = newer_node(&store).await?;
    let written = newer_task(&store).await?;
    let ids = cluster.submit(20, Work::of(1)).await?;
    cluster.wait_ended(&ids).await?;
    let client = cluster.client().await?;
    let nodes = client.nodes().await.context("list nodes")?;
    ensure!(
        nodes.iter().any(|node| node.node_id == NODE),
        "the newer node is not listed: {nodes:?}"
    );
    let found = client.fsck(false).await.context("fsck")?.findings;
    ensure!(found.is_empty(), "{found:?}");
    let canceled = client.cancel(TASK.parse().context("an id")?).await;
    ensure!(canceled.is_err(), "a newer task was rewritten: {canceled:?}");
    let kept = read(&store, &format!("/task/{TASK}")).await?;
    ensure!(kept == written, "the newer task was changed");
    remove(&store, lease).await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 20, "{tally:?}");
    Ok(())
}

/// One that is larger than all others and takes nothing.
async fn newer_node(store: &Client) -> Result<i64> {
    let lease = pb::LeaseGrantRequest { ttl: LEASE_SECONDS, id: 0 };
    let lease = store.lease().lease_grant(lease).await.context("grant a lease")?.into_inner().id;
    let amounts = wire::Amounts {
        cpu_millis: 64_000,
        memory_bytes: 1 << 40,
        pids: 1 << 20,
        disk_bytes: 1 << 40,
    };
    let node = wire::Node {
        node_id: NODE.to_owned(),
        host_id: NODE.to_owned(),
        name: "newer".to_owned(),
        address: "127.0.0.9:8080".to_owned(),
        version: "99.0.0".to_owned(),
        schema: SCHEMA + 1,
        runtime: "native".to_owned(),
        limits_enforced: true,
        capacity: Some(amounts),
        ..Default::default()
    };
    put(store, &format!("/node/{NODE}"), node.encode_to_vec(), lease).await?;
    Ok(lease)
}

async fn newer_task(store: &Client) -> Result<Bytes> {
    let spec = Bytes::from(shell("echo never").encode_to_vec());
    let task = wire::Task {
        id: TASK.to_owned(),
        schema: SCHEMA + 1,
        spec_hash: sha(&spec),
        spec,
        status: Some(wire::Status { status: Some(Status::Queued(Queued::default())) }),
        write_id: NODE.to_owned(),
        submitted_at_ms: 1,
        submitted_by: "the future".to_owned(),
        ..Default::default()
    };
    let bytes = task.encode_to_vec();
    put(store, &format!("/task/{TASK}"), bytes.clone(), 0).await?;
    put(store, &format!("/task/status/queued/{TASK}"), Vec::new(), 0).await?;
    Ok(bytes.into())
}

fn sha(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&Sha256::digest(bytes))
}

async fn remove(store: &Client, lease: i64) -> Result<()> {
    for key in [format!("/task/{TASK}"), format!("/task/status/queued/{TASK}")] {
        let request = pb::DeleteRangeRequest { key: key.into(), ..Default::default() };
        store.kv().delete_range(request).await.context("remove the newer task")?;
    }
    let revoke = pb::LeaseRevokeRequest { id: lease };
    store.lease().lease_revoke(revoke).await.context("revoke the newer node's lease")?;
    Ok(())
}

async fn put(store: &Client, key: &str, value: Vec<u8>, lease: i64) -> Result<()> {
    let (key, value) = (Bytes::from(key.to_owned()), Bytes::from(value));
    let request = pb::PutRequest { key, value, lease, ..Default::default() };
    store.kv().put(request).await.context("put a newer record")?;
    Ok(())
}

async fn read(store: &Client, key: &str) -> Result<Bytes> {
    let request = pb::RangeRequest { key: key.to_owned().into(), ..Default::default() };
    let answer = store.kv().range(request).await.context("read a record")?.into_inner();
    Ok(Bytes::copy_from_slice(answer.kvs.first().context("it is there")?.value()))
}
