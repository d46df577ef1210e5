//! Processes and peers that die, stall and come back: no label lost, none restored twice, none
//! invented.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::labels::{CHECKPOINTS, Cluster, Role, labels};
use e2e::scene::bound;
use e2e::wait::{Level, pass, wait_for};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use rustix::process::Signal;

use crate::stage::{CROWD, Stage, cases, gold, labels_of, names};
use crate::storms::{add_each, for_each};

/// Nodes that come and go while replicas are killed, by default and at length.
const CHAOS_NODES: (usize, usize) = (24, 100);

/// Longer than a lock (10 s) and than a watcher's Lease (15 s).
const STALL: Duration = Duration::from_secs(20);

/// How long the API server may take to reach a store that was away.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Writes of which history is robbed: far more than replicas and an API server that starts make
/// until the last watcher has found its way back, which takes it half a minute at most.
const VERSIONS_AHEAD: usize = 600;

/// How long a watcher may take to see that history went back: its longest wait between attempts,
/// and what a busy machine takes.
const NOTICE_WAIT: Duration = Duration::from_secs(120);

/// How often a watcher has found versions fallen.
const WENT_BACK: &str = r#"windlass_labels_watch_restarts_total{watch="nodes",reason="went_back"}"#;

/// Nodes that come and go while one watcher of several is stopped: so many that, for some, it is the
/// one the others wait for.
const STALL_NODES: usize = 24;

cases! {
    watchers_down_over_delete_and_return_within_history,
    watchers_down_over_delete_and_return_beyond_history,
    unseen_incarnation_is_not_invented,
    nothing_runs_while_nodes_are_deleted,
    api_server_restarts_while_nodes_come_and_go,
    storage_stalls,
    storage_is_killed_and_starts_again,
    watcher_stalls,
    history_rolls_back,
    history_rolls_back_while_replicas_run,
    replicas_are_killed_at_random,
}

/// The API server still has the events: the last edit before the deletion is kept.
async fn watchers_down_over_delete_and_return_within_history(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    cluster.add("within", &gold()).await?;
    cluster.wait_settled("within").await?;
    stage.run(0, CROWD).await?;
    cluster.edit("within", &[("rack", Some("unseen"))]).await?;
    cluster.remove("within").await?;
    cluster.add("within", &BTreeMap::new()).await?;
    stage.run(CROWD, CROWD).await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "unseen")]);
    cluster.wait_restored("within", &expected).await?;
    settled_once(stage, "within").await
}

/// The events are gone: the checkpoint's labels come back, without the edit nobody saw.
async fn watchers_down_over_delete_and_return_beyond_history(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    cluster.add("beyond", &gold()).await?;
    cluster.wait_checkpointed("beyond", &gold()).await?;
    stage.run(0, CROWD).await?;
    cluster.edit("beyond", &[("rack", Some("unseen"))]).await?;
    cluster.remove("beyond").await?;
    cluster.add("beyond", &BTreeMap::new()).await?;
    restart_server(stage).await?;
    stage.run(CROWD, CROWD).await?;
    cluster.wait_restored("beyond", &gold()).await?;
    settled_once(stage, "beyond").await
}

/// Nothing is left to do for the node, and it was written once.
async fn settled_once(stage: &mut Stage, node: &str) -> Result<()> {
    stage.cluster().wait_settled(node).await?;
    stage.restored_once(&[node.to_owned()]).await?;
    stage.run(1, 1).await
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
    stage.run(CROWD, CROWD).await?;
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
    stage.restored_once(&nodes).await?;
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
    stage.restored_once(&["slow-storage".to_owned()]).await
}

/// The other watchers post what the stalled one would have; awake again, it makes nobody restore twice.
async fn watcher_stalls(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    let nodes = names("one-eye", STALL_NODES);
    stage.watchers[0].pause().await?;
    add_each(&cluster, &nodes, labels_of).await?;
    for_each(&nodes, async |node| cluster.remove(node).await).await?;
    for node in &nodes {
        cluster.wait_stored(node, &labels_of(node)).await?;
    }
    add_each(&cluster, &nodes, |_| BTreeMap::new()).await?;
    for node in &nodes {
        cluster.wait_restored(node, &labels_of(node)).await?;
    }
    pass(STALL).await?;
    stage.watchers[0].resume()?;
    cluster.remember("one-eye-probe", &gold()).await?;
    for node in &nodes {
        cluster.wait_settled(node).await?;
    }
    stage.restored_once(&nodes).await?;
    stage.run(1, 1).await
}

/// The store dies without warning and is started again, with everything it had acknowledged, while
/// nodes return.
async fn storage_is_killed_and_starts_again(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    let nodes = names("unplugged", 12);
    add_each(&cluster, &nodes, labels_of).await?;
    for_each(&nodes, async |node| cluster.remove(node).await).await?;
    for node in &nodes {
        cluster.wait_stored(node, &labels_of(node)).await?;
        cluster.wait_settled(node).await?;
    }
    add_each(&cluster, &nodes[..6], |_| BTreeMap::new()).await?;
    stage.world.store.kill()?;
    stage.world.store.restart().await?;
    wait_for("the API server to find its store again", ANSWER_WAIT, async || {
        Ok(match cluster.nodes().list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Level::Reached(()),
            Err(error) => Level::Below(error.to_string()),
        })
    })
    .await?;
    add_each(&cluster, &nodes[6..], |_| BTreeMap::new()).await?;
    for node in &nodes {
        cluster.wait_restored(node, &labels_of(node)).await?;
        cluster.wait_settled(node).await?;
    }
    stage.restored_once(&nodes).await?;
    stage.run(1, 1).await
}

/// The store is put back to an earlier state, as from a backup: versions fall, nodes are alive again
/// that had been deleted, and the service goes on.
async fn history_rolls_back(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("rolled", &gold()).await?;
    cluster.add("alive", &gold()).await?;
    cluster.wait_settled("alive").await?;
    let backup = stage.back_up("rolled").await?;
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

/// The same under replicas that go on running. They find versions fallen, list everything and say so;
/// who is alive again lives for them too.
async fn history_rolls_back_while_replicas_run(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("under-rolled", &gold()).await?;
    cluster.add("under-alive", &gold()).await?;
    cluster.wait_settled("under-alive").await?;
    let backup = stage.back_up("under-replicas").await?;
    stage.run(2, 2).await?;
    cluster.remove("under-alive").await?;
    cluster.wait_stored("under-alive", &gold()).await?;
    cluster.wait_settled("under-alive").await?;
    outdistance(&cluster).await?;
    stage.put_back_under_replicas(&backup).await?;
    wait_noticed(stage).await?;
    cluster.add("under-rolled", &BTreeMap::new()).await?;
    cluster.wait_restored("under-rolled", &gold()).await?;
    ensure!(cluster.labels("under-alive").await? == gold());
    cluster.edit("under-alive", &[("rack", Some("r8"))]).await?;
    cluster.remove("under-alive").await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "r8")]);
    cluster.wait_stored("under-alive", &expected).await?;
    cluster.add("under-alive", &BTreeMap::new()).await?;
    cluster.wait_restored("under-alive", &expected).await?;
    stage.run(1, 1).await
}

/// Writes so much that versions cannot have risen as far again before every watcher has looked.
async fn outdistance(cluster: &Cluster) -> Result<()> {
    for_each(&names("ahead", VERSIONS_AHEAD), async |name| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        cluster.post("default", &map).await
    })
    .await
}

/// Every watcher has seen that history went back, and people were told.
async fn wait_noticed(stage: &Stage) -> Result<()> {
    for watcher in &stage.watchers {
        wait_for("a watcher to see that history went back", NOTICE_WAIT, async || {
            let count = watcher.metric(WENT_BACK).await?;
            Ok(if count >= 1.0 { Level::Reached(()) } else { Level::Below(format!("{count}")) })
        })
        .await?;
    }
    let cluster = stage.cluster();
    wait_for("an Event that tells of it", NOTICE_WAIT, async || {
        let told = cluster.told_of(CHECKPOINTS).await?;
        let is_told = told.iter().any(|reason| reason == "HistoryMissed");
        Ok(if is_told { Level::Reached(()) } else { Level::Below(format!("{told:?}")) })
    })
    .await
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
        cluster.wait_worked_off(node, &stage.killed).await?;
    }
    stage.restored_once(&nodes).await?;
    stage.run(1, 1).await
}

/// Kills a replica without warning and starts another, without waiting for it.
async fn kill_one(stage: &mut Stage, number: usize) -> Result<()> {
    let (role, replicas) = if number.is_multiple_of(2) {
        (Role::Watch, &mut stage.watchers)
    } else {
        (Role::Process, &mut stage.processors)
    };
    let victim = replicas.remove(number / 2 % CROWD);
    replicas.push(stage.world.launch(role, &[])?);
    stage.kill(victim).map(drop)
}

async fn restart_server(stage: &mut Stage) -> Result<()> {
    stage.world.server.kill()?;
    stage.world.server.restart().await
}
