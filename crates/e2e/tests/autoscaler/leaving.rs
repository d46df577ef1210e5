//! Nodes that are lost and nodes on their way out: what goes, what stays, and what a crash leaves.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::wait::{Level, pass, wait_for};
use serde_json::Value;

use crate::stage::{Autoscaler, PATIENCE, Stage, TO_BE_DELETED, cases, target};

cases! {
    ETCD: [a_removal_that_was_killed_is_taken_back],
    AT_LENGTH: [
        a_lost_node_goes_though_it_is_in_use,
        what_is_forbidden_stays,
        pods_are_evicted_as_their_budget_allows,
        what_was_handed_over_is_finished_after_a_kill,
    ],
}

const POOL: &str = "
tick: 200ms
groups: [{id: pool, min: 1, max: 8, target: TARGET, boot: 500ms, register: 300ms, ready: 300ms, delete: 500ms}]
faults: [FAULTS]
";

fn pool(target: u32, faults: &str) -> String {
    POOL.replace("TARGET", &target.to_string()).replace("FAULTS", faults)
}

/// As the autoscalers of these cases are told.
const UNREADY: Duration = Duration::from_secs(8);

/// How long a lost node is only explained, and how long its machine then takes to go, where both are
/// looked at: long enough for whoever looks on a busy machine.
const LOST_SECS: i64 = 20;
const SLOW_DELETE: &str = "delete: 5s";

/// SC6.1: its pod is evicted by the controllers, and whoever makes room for it leaves the budget of
/// those that live alone.
async fn a_lost_node_goes_though_it_is_in_use(stage: &mut Stage) -> Result<()> {
    let pool = pool(5, "{fault: silent, from: 45s, count: 1}");
    stage.cloud(&pool.replace("delete: 500ms", SLOW_DELETE)).await?;
    stage.controllers()?;
    stage.wait_nodes(5).await?;
    stage.budget("web", 4).await?;
    stage.replicas("web", 5, "3").await?;
    stage.wait_available("web", 5).await?;
    let unready_time = format!("--scale-down-unready-time={LOST_SECS}s");
    let mut autoscaler = stage.autoscaler(&["--scale-down-delay-after-add=1s", &unready_time])?;
    let lost = stage.wait_unready(1).await?.pop().context("one node is lost")?;
    let goes = async {
        autoscaler.wait_explained(&lost, "class    Unready").await?;
        let since = ready_since(&node(stage, &lost).await?)?;
        let tainted = stage.wait_tainted().await?;
        ensure!(tainted == lost, "{tainted} goes, and {lost} is lost");
        let began = taint_value(&node(stage, &lost).await?)?;
        ensure!(began >= since + LOST_SECS, "lost at {since}, and removed at {began}");
        wait_gone(stage, &mut autoscaler, &lost).await
    };
    tokio::select! {
        gone = goes => gone?,
        broken = stage.watch_available("web", 4) => broken?,
    }
    stage.wait_available("web", 5).await?;
    let evicted = autoscaler.metric("cluster_autoscaler_evicted_pods_total").await?;
    ensure!(evicted == 0.0, "{evicted} pods were evicted by the autoscaler");
    ensure!(autoscaler.metric("cluster_autoscaler_scaled_down_nodes_total").await? == 1.0);
    autoscaler.stop().await
}

/// SC6.3
async fn what_is_forbidden_stays(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(3, "{fault: not-ready, from: 15s, count: 1}")).await?;
    stage.wait_nodes(3).await?;
    let disabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
    stage.kubectl(&["annotate", "nodes", "--all", &format!("{disabled}=true")]).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    let lost = stage.wait_unready(1).await?.pop().context("one node is unready")?;
    autoscaler.wait_explained(&lost, "stays    ScaleDownDisabledAnnotation").await?;
    ensure_stays(stage, &mut autoscaler, 3).await?;
    autoscaler.stop().await?;
    let mut autoscaler = stage
        .autoscaler(&["--scale-down-unready-enabled=false", "--scale-down-unneeded-time=1h"])?;
    stage.kubectl(&["annotate", "nodes", "--all", &format!("{disabled}-")]).await?;
    autoscaler.wait_explained(&lost, "stays    ScaleDownUnreadyDisabled").await?;
    ensure_stays(stage, &mut autoscaler, 3).await?;
    autoscaler.stop().await
}

/// Each of three nodes has a pod, and one node would do.
async fn pods_are_evicted_as_their_budget_allows(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(3, "")).await?;
    stage.controllers()?;
    stage.wait_nodes(3).await?;
    stage.budget("web", 2).await?;
    stage.replicas("web", 3, "1").await?;
    stage.wait_available("web", 3).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    wait_for("one node to be left", 2 * PATIENCE, async || {
        let available = stage.available("web").await?;
        ensure!(available >= 2, "only {available} pods are left, and the budget asks for 2");
        let status = autoscaler.status().await;
        let size = status.as_ref().map_or(-1, |status| target(status, "pool"));
        Ok(if size == 1 { Level::Reached(()) } else { Level::Below(format!("{status:?}")) })
    })
    .await?;
    stage.wait_available("web", 3).await?;
    stage.wait_nodes(1).await?;
    let evicted = autoscaler.metric("cluster_autoscaler_evicted_pods_total").await?;
    ensure!(evicted >= 2.0, "{evicted} pods were evicted");
    stage.wait_event("ScaleDown").await?;
    autoscaler.stop().await
}

/// SC7.1: killed between taint and deletion, nobody knows of the removal any more.
async fn a_removal_that_was_killed_is_taken_back(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(2, "")).await?;
    stage.wait_nodes(2).await?;
    let autoscaler = stage.autoscaler(&["--node-delete-delay-after-taint=1h"])?;
    let leaving = stage.wait_tainted().await?;
    ensure!(node(stage, &leaving).await?["spec"]["unschedulable"] == true, "it is cordoned too");
    autoscaler.process.kill()?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    wait_for("the taint to be lifted", PATIENCE, async || {
        let node = node(stage, &leaving).await?;
        let is_marked = taint_value(&node).is_ok() || node["spec"]["unschedulable"] == true;
        Ok(if is_marked { Level::Below(node["spec"].to_string()) } else { Level::Reached(()) })
    })
    .await?;
    stage.wait_event("ClusterAutoscalerCleanup").await?;
    let status = autoscaler.wait_status("the group", |it| target(it, "pool") >= 0).await?;
    ensure!(target(&status, "pool") == 2, "{status}");
    autoscaler.stop().await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    autoscaler.wait_status("one to go", |it| target(it, "pool") == 1).await?;
    stage.wait_nodes(1).await?;
    autoscaler.stop().await
}

/// SC7.1: killed after it.
async fn what_was_handed_over_is_finished_after_a_kill(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(2, "{fault: slow-delete, takes: 25s, count: 1}")).await?;
    stage.wait_nodes(2).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    autoscaler.wait_status("the deletion", |it| target(it, "pool") == 1).await?;
    autoscaler.process.kill()?;
    let leaving = stage.wait_tainted().await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    let words = autoscaler.wait_explained(&leaving, "class    Leaving").await?;
    ensure!(!words.contains("upcoming"), "{words}");
    let status = autoscaler.status().await?;
    let counts = &status["clusterWide"]["health"]["nodeCounts"]["registered"];
    ensure!(counts["beingDeleted"] == 1 && counts["unready"]["total"] == 0, "{counts}");
    wait_gone(stage, &mut autoscaler, &leaving).await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == 1, "{status}");
    ensure!(autoscaler.metric("cluster_autoscaler_scaled_down_nodes_total").await? == 0.0);
    autoscaler.stop().await
}

async fn node(stage: &Stage, name: &str) -> Result<Value> {
    stage.json(&["get", "node", name]).await
}

/// When its condition Ready last changed, in Unix seconds.
fn ready_since(node: &Value) -> Result<i64> {
    let conditions = node["status"]["conditions"].as_array().context("a Node has conditions")?;
    let ready = conditions.iter().find(|each| each["type"] == "Ready");
    let since = ready.and_then(|ready| ready["lastTransitionTime"].as_str());
    let since: jiff::Timestamp = since.context("a condition has a time")?.parse()?;
    Ok(since.as_second())
}

/// When its removal began, in Unix seconds.
fn taint_value(node: &Value) -> Result<i64> {
    let taints = node["spec"]["taints"].as_array().context("it has no taints")?;
    let taint = taints.iter().find(|taint| taint["key"] == TO_BE_DELETED);
    let value = taint.and_then(|taint| taint["value"].as_str());
    value.context("it is not being removed")?.parse().context("the value is a time")
}

async fn wait_gone(stage: &Stage, autoscaler: &mut Autoscaler, name: &str) -> Result<()> {
    wait_for(&format!("{name} to be gone"), PATIENCE, async || {
        let nodes = stage.nodes().await?;
        let is_there = nodes.iter().any(|node| node["metadata"]["name"] == name);
        Ok(match is_there {
            true => Level::Below(autoscaler.explain(name).await?),
            false => Level::Reached(()),
        })
    })
    .await
}

/// Longer than an unready node would stay.
async fn ensure_stays(stage: &Stage, autoscaler: &mut Autoscaler, nodes: i64) -> Result<()> {
    pass(UNREADY + Duration::from_secs(4)).await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == nodes, "{status}");
    ensure!(stage.tainted().await?.is_empty(), "a node is being removed");
    Ok(())
}
