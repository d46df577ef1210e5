//! Too many unready nodes halt everything.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::wait::pass;
use serde_json::json;

use crate::stage::{Stage, cases, target};

cases! {
    ETCD: [four_of_eight_halt, three_of_four_do_not],
    AT_LENGTH: [half_of_the_nodes_unready_halts, nodes_of_others_halt_only_if_asked_to],
}

const POOL: &str = "
tick: 200ms
groups: [{id: pool, max: 20, target: TARGET, boot: 500ms, register: 300ms, ready: 300ms}]
faults: [{fault: FAULT, from: 8s, until: UNTIL, count: COUNT}]
";

/// So many nodes, of which some are struck.
fn pool(nodes: u32, (fault, unready): (&str, u32), until: &str) -> String {
    let pool = POOL.replace("TARGET", &nodes.to_string()).replace("FAULT", fault);
    pool.replace("COUNT", &unready.to_string()).replace("UNTIL", until)
}

/// SC8.1: kubelets fall silent, and the controllers say so of their nodes.
async fn half_of_the_nodes_unready_halts(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(10, ("silent", 5), "120s")).await?;
    stage.controllers()?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    let halted = autoscaler
        .wait_status("the halt", |it| it["clusterWide"]["health"]["status"] == "Unhealthy")
        .await?;
    let message = halted["message"].as_str().unwrap_or_default();
    ensure!(message.contains("5 of 10 autoscaled nodes are unready"), "{message}");
    stage.wait_event("ClusterUnhealthy").await?;
    ensure!(autoscaler.metric("cluster_autoscaler_cluster_safe_to_autoscale").await? == 0.0);
    let names: Vec<String> = (0..20).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.pods(&names, "3", &json!({})).await?;
    pass(Duration::from_secs(3)).await?;
    let status = autoscaler.status().await?;
    ensure!(status["clusterWide"]["health"]["status"] == "Unhealthy", "{status}");
    ensure!(target(&status, "pool") == 10, "{status}");
    let resumed = autoscaler.wait_status("it to go on", |it| target(it, "pool") == 20).await?;
    ensure!(resumed["clusterWide"]["health"]["status"] == "Healthy", "{resumed}");
    autoscaler.stop().await
}

/// SC8.3
async fn four_of_eight_halt(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(8, ("not-ready", 4), "1h")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    let halted = autoscaler
        .wait_status("the halt", |it| it["clusterWide"]["health"]["status"] == "Unhealthy")
        .await?;
    let message = halted["message"].as_str().unwrap_or_default();
    ensure!(message.contains("4 of 8 autoscaled nodes are unready"), "{message}");
    autoscaler.stop().await
}

/// SC8.3
async fn three_of_four_do_not(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(4, ("not-ready", 3), "1h")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    let status = autoscaler
        .wait_status("three to be unready", |it| {
            it["clusterWide"]["health"]["nodeCounts"]["registered"]["unready"]["total"] == 3
        })
        .await?;
    ensure!(status["clusterWide"]["health"]["status"] == "Healthy", "{status}");
    ensure!(autoscaler.metric("cluster_autoscaler_cluster_safe_to_autoscale").await? == 1.0);
    autoscaler.stop().await
}

/// SC8.2
async fn nodes_of_others_halt_only_if_asked_to(stage: &mut Stage) -> Result<()> {
    stage.cloud(&pool(5, ("not-ready", 1), "9s")).await?;
    stage.wait_nodes(5).await?;
    stage.silent_nodes(6).await?;
    let all = ["--scale-down-enabled=false", "--unready-scope=all"];
    let mut autoscaler = stage.autoscaler(&all)?;
    let halted = autoscaler
        .wait_status("the halt", |it| it["clusterWide"]["health"]["status"] == "Unhealthy")
        .await?;
    ensure!(halted["message"].as_str().unwrap_or_default().contains("of 11 nodes"), "{halted}");
    autoscaler.stop().await?;
    let mut autoscaler = stage.autoscaler(&all[..1])?;
    let fits_pool = json!({"nodeSelector": {"simcloud.windlass.dev/group": "pool"}});
    let names: Vec<String> = (0..6).map(|number| format!("p{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.pods(&names, "3", &fits_pool).await?;
    let status = autoscaler.wait_status("the increase", |it| target(it, "pool") == 6).await?;
    ensure!(status["clusterWide"]["health"]["status"] == "Healthy", "{status}");
    autoscaler.stop().await
}
