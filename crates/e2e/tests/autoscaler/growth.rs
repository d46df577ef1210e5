//! Pods that wait bring nodes, and nodes that nobody needs go.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::wait::pass;
use serde_json::json;

use crate::stage::{Stage, cases, target};

cases! {
    BOTH: [waiting_pods_bring_nodes_once, a_killed_autoscaler_asks_for_nothing_twice],
    ETCD: [
        a_provider_of_the_older_generation_is_understood,
        idle_nodes_go,
        an_unsupported_constraint_brings_nothing,
    ],
}

const POOL: &str = "
tick: 200ms
groups: [{id: pool, max: 10, boot: 1s, register: 500ms, ready: 500ms, delete: 500ms}]
";

/// SC1.1
async fn waiting_pods_bring_nodes_once(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a", "b", "c", "d"], "2", &json!({})).await?;
    stage.wait_bound(4).await?;
    let closed = autoscaler
        .wait_status("the request to close", |it| {
            target(it, "pool") == 2 && it["clusterWide"]["scaleUp"]["status"] == "NoActivity"
        })
        .await?;
    ensure!(closed["clusterWide"]["health"]["status"] == "Healthy", "{closed}");
    ensure!(autoscaler.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 2.0);
    stage.wait_event("TriggeredScaleUp").await?;
    stage.wait_event("ScaledUpGroup").await?;
    let words = autoscaler.explain("pool").await?;
    ensure!(words.starts_with("group pool"), "{words}");
    // The status is published for those who cannot ask.
    let map = stage.json(&["get", "configmap", "cluster-autoscaler-status", "-n", "kube-system"]);
    let map = map.await?;
    let text = map["data"]["status"].as_str().unwrap_or_default();
    ensure!(text.contains("autoscalerStatus: Running"), "{text}");
    autoscaler.stop().await
}

/// SC1.2
async fn a_killed_autoscaler_asks_for_nothing_twice(stage: &mut Stage) -> Result<()> {
    stage.cloud(&POOL.replace("boot: 1s", "boot: 4s")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a", "b", "c", "d"], "2", &json!({})).await?;
    autoscaler.wait_status("the increase", |it| target(it, "pool") == 2).await?;
    autoscaler.process.kill()?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    stage.wait_bound(4).await?;
    let status = autoscaler.wait_status("the group again", |it| target(it, "pool") >= 0).await?;
    ensure!(target(&status, "pool") == 2, "{status}");
    ensure!(autoscaler.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 0.0);
    autoscaler.stop().await
}

/// SC2.1 and SC2.2: without a time of its own a node has the default to start, and is awaited.
async fn a_provider_of_the_older_generation_is_understood(stage: &mut Stage) -> Result<()> {
    stage
        .cloud(&format!("generation: legacy\n{}", POOL.replace("ready: 500ms", "ready: 3s")))
        .await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a"], "2", &json!({})).await?;
    let words = autoscaler.wait_explained("pool-0", "class    Starting").await?;
    ensure!(words.contains("limit 6s") && words.contains("counts as upcoming"), "{words}");
    autoscaler.wait_explained("pool-0", "class    Ready").await?;
    stage.wait_bound(1).await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == 1, "{status}");
    autoscaler.stop().await
}

async fn idle_nodes_go(stage: &mut Stage) -> Result<()> {
    stage.cloud(&POOL.replace("max: 10", "min: 1, max: 10, target: 3")).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    let status = autoscaler.wait_status("the idle to go", |it| target(it, "pool") == 1).await?;
    ensure!(status["clusterWide"]["health"]["status"] == "Healthy", "{status}");
    stage.wait_nodes(1).await?;
    stage.wait_event("ScaleDownEmpty").await?;
    // Its least size keeps the last.
    pass(Duration::from_secs(6)).await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == 1, "{status}");
    autoscaler.stop().await
}

/// SC9.2
async fn an_unsupported_constraint_brings_nothing(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.claim("devices").await?;
    let claims = json!({"resourceClaims": [{"name": "c", "resourceClaimName": "devices"}]});
    stage.pods(&["a"], "1", &claims).await?;
    let note = stage.wait_event("NotTriggerScaleUp").await?;
    ensure!(note.contains("unsupported constraint"), "{note}");
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == 0, "{status}");
    let words = autoscaler.explain("default/a").await?;
    ensure!(words.contains("unsupported constraint"), "{words}");
    autoscaler.stop().await
}
