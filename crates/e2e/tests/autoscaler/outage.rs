//! The store behind the API server dies.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::stage::{Stage, cases, target};

cases! {
    WINDLASS: [a_killed_store_costs_neither_the_state_nor_a_second_increase],
}

const POOL: &str = "
tick: 200ms
groups: [{id: pool, max: 10, boot: 2s, register: 300ms, ready: 300ms, delete: 500ms}]
";

/// It dies while a node is on its way: what was asked for is remembered, and nothing is asked for twice.
async fn a_killed_store_costs_neither_the_state_nor_a_second_increase(
    stage: &mut Stage,
) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&["--scale-down-enabled=false"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    autoscaler.wait_status("the increase", |it| target(it, "pool") == 1).await?;
    stage.kill_store().await?;
    stage.wait_bound(2).await?;
    stage.pods(&["c", "d"], "2", &json!({})).await?;
    stage.wait_bound(4).await?;
    let status = autoscaler.wait_status("the lead", |it| it["standing"] == "leading").await?;
    ensure!(target(&status, "pool") == 2, "{status}");
    ensure!(autoscaler.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 2.0);
    autoscaler.stop().await
}
