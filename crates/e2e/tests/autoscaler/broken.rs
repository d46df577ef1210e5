//! Nodes that do not come, do not register or do not start, each told apart.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Stage, cases, group, target};

cases! {
    ETCD: [
        a_silent_stockout_is_given_up_and_another_group_grows,
        missing_quota_is_told_at_once_and_another_group_grows,
        an_instance_that_never_registers_is_deleted,
        a_target_raised_by_hand_is_taken_back,
    ],
    AT_LENGTH: [
        a_decrease_that_fails_keeps_no_other_group_from_growing,
        a_node_that_never_starts_is_removed,
        machines_that_are_lost_are_given_up,
    ],
}

/// How long sizes may stay wrong, by the flags of these cases.
const PROVISION: Duration = Duration::from_secs(6);

/// How long a node may take to start, and then be unready, likewise.
const STARTUP: Duration = Duration::from_secs(6);
const UNREADY: Duration = Duration::from_secs(8);

/// A Node says to the second when it was created, and is seen some time later.
const CREATED: Duration = Duration::from_secs(2);

/// What is shown is seen some time after it began.
const SCAN: Duration = Duration::from_secs(1);

/// Pods of two CPUs leave nothing of a small node, so that group is chosen first.
const TWO_POOLS: &str = "
tick: 200ms
groups:
- {id: large, max: 5, capacity: {cpu: '8', memory: 16Gi, pods: '110'}, boot: 500ms, register: 300ms, ready: 300ms, delete: 500ms}
- {id: small, max: 5, boot: 500ms, register: 300ms, ready: 300ms, delete: 500ms}
faults: [{fault: FAULT, group: small}]
";

/// SC4.1
async fn a_silent_stockout_is_given_up_and_another_group_grows(stage: &mut Stage) -> Result<()> {
    stage.cloud(&TWO_POOLS.replace("FAULT", "stockout")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the groups to be known", |it| target(it, "small") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    autoscaler.wait_status("the increase", |it| target(it, "small") == 1).await?;
    // Unhealthy until what did not come is given up.
    autoscaler
        .wait_status("the backoff", |it| {
            let scale_up = &group(it, "small")["scaleUp"];
            scale_up["backoffInfo"]["errorCode"] == "timeout" && scale_up["status"] == "Backoff"
        })
        .await?;
    stage.wait_event("ScaleUpTimedOut").await?;
    stage.wait_bound(2).await?;
    let status = autoscaler.wait_status("the rest", |it| target(it, "small") == 0).await?;
    ensure!(target(&status, "large") == 1, "{status}");
    autoscaler.stop().await
}

/// SC4.4
async fn a_decrease_that_fails_keeps_no_other_group_from_growing(stage: &mut Stage) -> Result<()> {
    let faults = "stockout, group: small}, \
                  {fault: call-fails, method: NodeGroupDecreaseTargetSize, count: 1";
    stage.cloud(&TWO_POOLS.replace("FAULT", faults)).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the groups to be known", |it| target(it, "small") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    stage.wait_event("FailedToRevertScaleUp").await?;
    stage.wait_bound(2).await?;
    let status = autoscaler.wait_status("another group", |it| target(it, "large") == 1).await?;
    ensure!(target(&status, "small") == 1, "{status}");
    autoscaler.wait_status("another attempt", |it| target(it, "small") == 0).await?;
    autoscaler.stop().await
}

/// SC4.2
async fn missing_quota_is_told_at_once_and_another_group_grows(stage: &mut Stage) -> Result<()> {
    stage.cloud(&TWO_POOLS.replace("FAULT", "quota")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the groups to be known", |it| target(it, "small") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    let note = stage.wait_event("ScaleUpFailed").await?;
    ensure!(note.contains("QUOTA_EXCEEDED"), "{note}");
    stage.wait_bound(2).await?;
    let status = autoscaler
        .wait_status("the failed machine to be deleted", |it| target(it, "small") == 0)
        .await?;
    ensure!(target(&status, "large") == 1, "{status}");
    ensure!(autoscaler.metric("cluster_autoscaler_failed_node_creations_total").await? >= 1.0);
    autoscaler.stop().await
}

/// SC5.1. A node of another group, since without any Node every instance would look unregistered.
async fn an_instance_that_never_registers_is_deleted(stage: &mut Stage) -> Result<()> {
    let two = TWO_POOLS
        .replace("FAULT", "never-registers")
        .replace("id: large,", "id: large, target: 1,");
    stage.cloud(&two).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the groups to be known", |it| target(it, "large") == 1).await?;
    stage.wait_nodes(1).await?;
    let fits_small = json!({"nodeSelector": {"simcloud.windlass.dev/group": "small"}});
    stage.pods(&["a", "b", "c"], "3", &fits_small).await?;
    autoscaler.wait_status("the increase", |it| target(it, "small") == 3).await?;
    let raised = Instant::now();
    stage.wait_event("DeleteUnregistered").await?;
    // Their time began when they were first listed, after the increase was.
    ensure!(raised.elapsed() + SCAN >= PROVISION, "deleted after {:?}", raised.elapsed());
    autoscaler
        .wait_metric("cluster_autoscaler_old_unregistered_nodes_removed_count", |count| {
            count >= 3.0
        })
        .await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "large") == 1, "{status}");
    autoscaler.stop().await
}

/// SC3.1
async fn a_node_that_never_starts_is_removed(stage: &mut Stage) -> Result<()> {
    stage.cloud(&TWO_POOLS.replace("FAULT", "never-ready, count: 1")).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-delay-after-add=1s"])?;
    autoscaler.wait_status("the groups to be known", |it| target(it, "small") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    stage.wait_nodes(1).await?;
    let came = Instant::now();
    // Its past is told even when it is already on its way out.
    autoscaler.wait_explained("small-0", "BrokenStart").await?;
    ensure!(came.elapsed() + CREATED >= STARTUP, "broken after {:?}", came.elapsed());
    autoscaler.wait_explained("small", "broken start").await?;
    stage.wait_bound(2).await?;
    let status = autoscaler.wait_status("it to be removed", |it| target(it, "small") == 0).await?;
    ensure!(came.elapsed() + CREATED >= UNREADY, "removed after {:?}", came.elapsed());
    ensure!(target(&status, "large") == 1, "{status}");
    autoscaler.stop().await
}

/// The rule of SC4.3: sizes that stay wrong, without a request that would explain it.
async fn machines_that_are_lost_are_given_up(stage: &mut Stage) -> Result<()> {
    let raised = TWO_POOLS
        .replace("FAULT", "vanishes, from: 3s, count: 2")
        .replace("id: small,", "id: small, target: 3,");
    stage.cloud(&raised).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "small") == 3).await?;
    let status = autoscaler.wait_status("the reduction", |it| target(it, "small") == 1).await?;
    ensure!(target(&status, "large") == 0, "{status}");
    autoscaler.stop().await
}

/// SC4.3
async fn a_target_raised_by_hand_is_taken_back(stage: &mut Stage) -> Result<()> {
    let one = TWO_POOLS.replace("FAULT", "stockout").replace("id: small,", "id: small, target: 1,");
    stage.cloud(&one).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "small") == 1).await?;
    let raised = Instant::now();
    stage.raise_by_hand("small", 2).await?;
    autoscaler.wait_status("the target to be seen", |it| target(it, "small") == 3).await?;
    autoscaler.wait_status("the reduction", |it| target(it, "small") == 1).await?;
    ensure!(raised.elapsed() >= PROVISION, "taken back after {:?}", raised.elapsed());
    stage.wait_nodes(1).await?;
    autoscaler.stop().await
}
