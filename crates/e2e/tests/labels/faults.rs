//! Processes and peers that die, stall and come back: no label lost, none restored twice, none
//! invented.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::labels::{Cluster, Role, labels};
use e2e::report::say;
use e2e::scene::bound;
use e2e::wait::{Level, wait_for};
use futures::StreamExt;
use futures::stream;
use kube::ResourceExt;
use kube::api::ListParams;
use rustix::process::Signal;

use crate::stage::{Stage, cases, gold};

/// Nodes of a small and of a large storm; the large one only at length.
const STORM: usize = 150;
const LARGE_STORM: usize = 5000;

/// Requests in flight while nodes are created and deleted.
const STORM_WIDTH: usize = 16;

/// How long a storm may take; on two shared cores the API server itself is the limit.
const STORM_WAIT: Duration = Duration::from_secs(900);

/// Replicas of each kind that are killed in turn.
const CROWD: usize = 4;

/// Nodes that come and go while replicas are killed, by default and at length.
const CHAOS_NODES: (usize, usize) = (24, 100);

/// Longer than a lock (10 s) and than a watcher's Lease (15 s).
const STALL: Duration = Duration::from_secs(20);

cases! {
    watchers_down_over_delete_and_return_within_history,
    watchers_down_over_delete_and_return_beyond_history,
    unseen_incarnation_is_not_invented,
    nothing_runs_while_nodes_are_deleted,
    api_server_restarts_while_nodes_come_and_go,
    storage_stalls,
    watcher_stalls,
    history_rolls_back,
    replicas_are_killed_at_random,
    storm,
}

/// The API server still has the events: the last edit before the deletion is kept.
async fn watchers_down_over_delete_and_return_within_history(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.add("within", &gold()).await?;
    cluster.wait_settled("within").await?;
    stage.run(0, 1).await?;
    cluster.edit("within", &[("rack", Some("unseen"))]).await?;
    cluster.remove("within").await?;
    cluster.add("within", &BTreeMap::new()).await?;
    stage.run_both().await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "unseen")]);
    cluster.wait_restored("within", &expected).await
}

/// The events are gone: the checkpoint's labels come back, without the edit nobody saw.
async fn watchers_down_over_delete_and_return_beyond_history(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.add("beyond", &gold()).await?;
    cluster.wait_checkpointed("beyond", &gold()).await?;
    stage.run(0, 1).await?;
    cluster.edit("beyond", &[("rack", Some("unseen"))]).await?;
    cluster.remove("beyond").await?;
    cluster.add("beyond", &BTreeMap::new()).await?;
    restart_server(stage).await?;
    stage.run_both().await?;
    cluster.wait_restored("beyond", &gold()).await
}

/// Born and deleted while nobody looked and forgotten by the API server: there is nothing to know.
async fn unseen_incarnation_is_not_invented(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    cluster.add("ghost", &gold()).await?;
    cluster.remove("ghost").await?;
    restart_server(stage).await?;
    stage.run_both().await?;
    cluster.add("ghost", &labels(&[("fresh", "yes")])).await?;
    cluster.remember("ghost-probe", &gold()).await?;
    cluster.wait_settled("ghost").await?;
    ensure!(cluster.labels("ghost").await? == labels(&[("fresh", "yes")]));
    ensure!(cluster.marker("ghost").await?.is_none() && cluster.record("ghost").await?.is_none());
    Ok(())
}

async fn nothing_runs_while_nodes_are_deleted(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let nodes = names("deserted", 10);
    for node in &nodes {
        cluster.add(node, &gold()).await?;
    }
    for node in &nodes {
        cluster.wait_checkpointed(node, &gold()).await?;
    }
    stage.run(0, 0).await?;
    for node in &nodes {
        cluster.remove(node).await?;
    }
    restart_server(stage).await?;
    stage.run_both().await?;
    for node in &nodes {
        cluster.wait_stored(node, &gold()).await?;
    }
    Ok(())
}

async fn api_server_restarts_while_nodes_come_and_go(stage: &mut Stage) -> Result<()> {
    stage.run(2, 2).await?;
    let cluster = stage.cluster();
    let nodes = names("restarted", 6);
    for node in &nodes {
        cluster.remember(node, &gold()).await?;
    }
    for node in &nodes[..3] {
        cluster.add(node, &BTreeMap::new()).await?;
    }
    restart_server(stage).await?;
    for node in &nodes[3..] {
        cluster.add(node, &BTreeMap::new()).await?;
    }
    for node in &nodes {
        cluster.wait_restored(node, &gold()).await?;
    }
    restored_once(stage, &nodes)?;
    stage.run(1, 1).await
}

async fn storage_stalls(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("slow-storage", &gold()).await?;
    cluster.add("slow-storage", &BTreeMap::new()).await?;
    stage.world.store.process()?.signal(Signal::STOP)?;
    pass(STALL).await?;
    stage.world.store.process()?.signal(Signal::CONT)?;
    cluster.wait_restored("slow-storage", &gold()).await?;
    restored_once(stage, &["slow-storage".to_owned()])
}

/// The other watcher posts what the stalled one would have; awake again, it posts nothing twice.
async fn watcher_stalls(stage: &mut Stage) -> Result<()> {
    stage.run(2, 1).await?;
    let cluster = stage.cluster();
    stage.watchers[0].pause()?;
    cluster.remember("one-eye", &gold()).await?;
    cluster.add("one-eye", &BTreeMap::new()).await?;
    cluster.wait_restored("one-eye", &gold()).await?;
    pass(STALL).await?;
    stage.watchers[0].resume()?;
    cluster.remember("one-eye-probe", &gold()).await?;
    cluster.wait_settled("one-eye").await?;
    restored_once(stage, &["one-eye".to_owned()])?;
    stage.run(1, 1).await
}

/// The store is put back to an earlier state, as from a backup: versions fall, nodes are alive again
/// that had been deleted, and the service goes on.
async fn history_rolls_back(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("rolled", &gold()).await?;
    cluster.add("alive", &gold()).await?;
    cluster.wait_settled("alive").await?;
    let backup = stage.back_up().await?;
    stage.run_both().await?;
    cluster.remove("alive").await?;
    cluster.wait_stored("alive", &gold()).await?;
    stage.put_back(&backup).await?;
    stage.run_both().await?;
    cluster.add("rolled", &BTreeMap::new()).await?;
    cluster.wait_restored("rolled", &gold()).await?;
    ensure!(cluster.labels("alive").await? == gold());
    cluster.edit("alive", &[("rack", Some("r8"))]).await?;
    cluster.remove("alive").await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "r8")]);
    cluster.wait_stored("alive", &expected).await?;
    cluster.add("alive", &BTreeMap::new()).await?;
    cluster.wait_restored("alive", &expected).await
}

/// Four watchers and four processors, one of either killed whenever a node has come or gone.
async fn replicas_are_killed_at_random(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    let nodes = names("chaos", bound(CHAOS_NODES.0, CHAOS_NODES.1));
    for node in &nodes {
        cluster.add(node, &labels_of(node)).await?;
    }
    for (number, node) in nodes.iter().enumerate() {
        cluster.remove(node).await?;
        kill_one(stage, number).await?;
    }
    for node in &nodes {
        cluster.wait_stored(node, &labels_of(node)).await?;
    }
    for (number, node) in nodes.iter().enumerate() {
        cluster.add(node, &BTreeMap::new()).await?;
        kill_one(stage, number).await?;
    }
    for node in &nodes {
        cluster.wait_restored(node, &labels_of(node)).await?;
        cluster.wait_settled(node).await?;
    }
    restored_once(stage, &nodes)?;
    stage.run(1, 1).await
}

/// Kills a replica without warning and starts another, without waiting for it.
async fn kill_one(stage: &mut Stage, number: usize) -> Result<()> {
    let (role, replicas) = if number.is_multiple_of(2) {
        (Role::Watch, &mut stage.watchers)
    } else {
        (Role::Process, &mut stage.processors)
    };
    replicas.remove(number / 2 % CROWD).kill()?;
    replicas.push(stage.world.launch(role, &[])?);
    Ok(())
}

/// Every node of a cluster leaves and returns.
async fn storm(stage: &mut Stage) -> Result<()> {
    stage.run(2, CROWD).await?;
    let count = bound(STORM, LARGE_STORM);
    let cluster = stage.cluster();
    let nodes = names("storm", count);
    for_each(&nodes, async |node| cluster.add(node, &labels_of(node)).await.map(drop)).await?;
    for_each(&nodes, async |node| cluster.remove(node).await).await?;
    let began = tokio::time::Instant::now();
    wait_for("every node's labels to be stored", STORM_WAIT, async || {
        let records =
            cluster.config_maps(e2e::labels::RECORDS).list(&ListParams::default()).await?;
        let stored = records.iter().filter(|map| map.name_any().starts_with("storm-")).count();
        Ok(if stored == count { Level::Reached(()) } else { Level::Below(format!("{stored}")) })
    })
    .await?;
    let stored_in = began.elapsed();
    for_each(&nodes, async |node| cluster.add(node, &BTreeMap::new()).await.map(drop)).await?;
    wait_all_restored(&cluster, &nodes).await?;
    say(&format!("{count} nodes stored in {stored_in:?}, restored after {:?}", began.elapsed()));
    restored_once(stage, &nodes)?;
    let locks = cluster.locks().await?;
    ensure!(locks.is_empty(), "locks left behind: {locks:?}");
    stage.run(1, 1).await
}

async fn wait_all_restored(cluster: &Cluster, nodes: &[String]) -> Result<()> {
    wait_for("every node to be restored", STORM_WAIT, async || {
        let live = cluster.nodes().list(&ListParams::default()).await?;
        let live: BTreeMap<String, BTreeMap<String, String>> =
            live.into_iter().map(|node| (node.name_any(), node.labels().clone())).collect();
        let is_restored = |node: &&String| {
            let labels = live.get(*node);
            labels.is_some_and(|labels| {
                labels.contains_key("labels_restored")
                    && labels_of(node).iter().all(|(key, value)| labels.get(key) == Some(value))
            })
        };
        let restored = nodes.iter().filter(is_restored).count();
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
    wait_for("the queue to be empty", STORM_WAIT, async || {
        let queued =
            cluster.config_maps(e2e::labels::TRANSACTIONS).list(&ListParams::default()).await?;
        let left = queued.items.len();
        Ok(if left == 0 { Level::Reached(()) } else { Level::Below(format!("{left}")) })
    })
    .await
}

async fn for_each(nodes: &[String], act: impl AsyncFn(&str) -> Result<()>) -> Result<()> {
    let act = &act;
    let results = stream::iter(nodes).map(async |node| act(node).await);
    let results: Vec<Result<()>> = results.buffer_unordered(STORM_WIDTH).collect().await;
    results.into_iter().collect()
}

/// One write to each node by the service, since only one incarnation of it was restored.
fn restored_once(stage: &Stage, nodes: &[String]) -> Result<()> {
    let user = stage.world.account(Role::Process);
    let mut patches: BTreeMap<String, usize> = BTreeMap::new();
    for request in stage.world.audit.requests()? {
        if request.user == user
            && request.verb == "patch"
            && request.resource == "nodes"
            && request.code == 200
        {
            *patches.entry(request.name).or_default() += 1;
        }
    }
    let wrong: Vec<_> = nodes
        .iter()
        .filter(|node| patches.get(*node) != Some(&1))
        .map(|node| (node, patches.get(node)))
        .collect();
    ensure!(wrong.is_empty(), "restored more or less than once: {wrong:?}");
    Ok(())
}

async fn restart_server(stage: &mut Stage) -> Result<()> {
    stage.world.server.kill()?;
    stage.world.server.restart().await
}

/// Lets time pass that is the subject of the test.
async fn pass(time: Duration) -> Result<()> {
    let began = tokio::time::Instant::now();
    wait_for("time to pass", 2 * time, async || {
        let elapsed = began.elapsed();
        Ok(if elapsed >= time { Level::Reached(()) } else { Level::Below(format!("{elapsed:?}")) })
    })
    .await
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number:04}")).collect()
}

/// Labels that no other node has.
fn labels_of(node: &str) -> BTreeMap<String, String> {
    labels(&[("team/tier", "gold"), ("of", node), ("node-role.kubernetes.io/worker", "")])
}
