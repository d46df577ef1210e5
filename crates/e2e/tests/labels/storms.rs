//! Every node of a cluster leaves and returns: no label lost, none restored twice, and nothing left
//! in the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::labels::{Cluster, MARKER, RECORDS, TRANSACTIONS};
use e2e::report::say;
use e2e::scene::bound;
use e2e::wait::{Level, wait_for};
use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{ListParams, PartialObjectMeta};

use crate::stage::{CROWD, Stage, cases, labels_of, names};

/// Nodes of a small and of a large storm; the large one only at length.
const STORM: usize = 150;
const LARGE_STORM: usize = 5000;

/// Requests in flight while nodes are created and deleted.
const STORM_WIDTH: usize = 16;

/// How long a storm may take; on two shared cores the API server itself is the limit.
const STORM_WAIT: Duration = Duration::from_secs(900);

cases! {
    storm,
    processors_are_down_for_a_whole_storm,
}

async fn storm(stage: &mut Stage) -> Result<()> {
    stage.run(2, CROWD).await?;
    let nodes = names("storm", bound(STORM, LARGE_STORM));
    let cluster = stage.cluster();
    add_each(&cluster, &nodes, labels_of).await?;
    for_each(&nodes, async |node| cluster.remove(node).await).await?;
    let began = tokio::time::Instant::now();
    wait_count("records of the storm", &cluster, RECORDS, "storm-", nodes.len()).await?;
    let stored_in = began.elapsed();
    add_each(&cluster, &nodes, |_| BTreeMap::new()).await?;
    wait_all_restored(&cluster, &nodes).await?;
    let count = nodes.len();
    say(&format!("{count} nodes stored in {stored_in:?}, restored after {:?}", began.elapsed()));
    leave(stage, &nodes).await
}

/// All nodes have left and returned before the first processor looks: everything is in the queue,
/// the end of each node and its return, and all processors begin with the same list.
async fn processors_are_down_for_a_whole_storm(stage: &mut Stage) -> Result<()> {
    stage.run(2, 0).await?;
    let nodes = names("unattended", bound(STORM, LARGE_STORM));
    let cluster = stage.cluster();
    add_each(&cluster, &nodes, labels_of).await?;
    for_each(&nodes, async |node| cluster.remove(node).await).await?;
    add_each(&cluster, &nodes, |_| BTreeMap::new()).await?;
    // It was added, deleted and added.
    let queued = 3 * nodes.len();
    wait_count("queued transactions", &cluster, TRANSACTIONS, "", queued).await?;
    let began = tokio::time::Instant::now();
    stage.run(2, CROWD).await?;
    wait_all_restored(&cluster, &nodes).await?;
    say(&format!("{} nodes restored {:?} after they had returned", nodes.len(), began.elapsed()));
    leave(stage, &nodes).await
}

/// What has to be so after every storm.
async fn leave(stage: &mut Stage, nodes: &[String]) -> Result<()> {
    stage.restored_once(nodes).await?;
    let locks = stage.cluster().locks().await?;
    ensure!(locks.is_empty(), "locks left behind: {locks:?}");
    stage.run(1, 1).await
}

pub(crate) async fn add_each(
    cluster: &Cluster,
    nodes: &[String],
    labels: impl Fn(&str) -> BTreeMap<String, String>,
) -> Result<()> {
    for_each(nodes, async |node| cluster.add(node, &labels(node)).await.map(drop)).await
}

pub(crate) async fn for_each(
    nodes: &[String],
    act: impl AsyncFn(&str) -> Result<()>,
) -> Result<()> {
    let act = &act;
    let results = stream::iter(nodes).map(async |node| act(node).await);
    let results: Vec<Result<()>> = results.buffer_unordered(STORM_WIDTH).collect().await;
    results.into_iter().collect()
}

/// Waits until a namespace has this many ConfigMaps whose names begin like that.
async fn wait_count(
    what: &str,
    cluster: &Cluster,
    namespace: &str,
    prefix: &str,
    count: usize,
) -> Result<()> {
    wait_for(what, STORM_WAIT, async || {
        let maps = cluster.config_maps(namespace).list_metadata(&ListParams::default()).await?;
        let found = maps.iter().filter(|map| map.name_any().starts_with(prefix)).count();
        Ok(if found == count { Level::Reached(()) } else { Level::Below(format!("{found}")) })
    })
    .await
}

/// With its labels, the marker, and nothing else.
fn is_restored(node: &PartialObjectMeta<Node>) -> bool {
    let mut labels = node.labels().clone();
    labels.remove(MARKER).is_some() && labels == labels_of(&node.name_any())
}

async fn wait_all_restored(cluster: &Cluster, nodes: &[String]) -> Result<()> {
    wait_for("every node to be restored", STORM_WAIT, async || {
        let live = cluster.nodes().list_metadata(&ListParams::default()).await?;
        let restored = live.into_iter().filter(is_restored).map(|node| node.name_any());
        let restored: BTreeSet<String> = restored.collect();
        let restored = nodes.iter().filter(|node| restored.contains(*node)).count();
        Ok(if restored == nodes.len() {
            Level::Reached(())
        } else {
            Level::Below(format!("{restored}"))
        })
    })
    .await?;
    for node in [&nodes[0], &nodes[nodes.len() - 1]] {
        cluster.wait_settled(node).await?;
    }
    wait_count("the queue to be empty", cluster, TRANSACTIONS, "", 0).await
}
