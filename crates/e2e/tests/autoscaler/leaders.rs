//! Several instances, none that acts, and what was recorded.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::stage::{Stage, cases, target};

cases![
    only_the_leader_acts,
    a_dry_run_changes_nothing,
    a_record_replays,
    people_are_answered_with_and_without_an_instance,
];

const POOL: &str = "
tick: 200ms
groups: [{id: pool, max: 10, boot: 500ms, register: 300ms, ready: 300ms, delete: 500ms}]
";

/// SC9.3
async fn only_the_leader_acts(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut first = stage.autoscaler(&["--scale-down-enabled=false"])?;
    first.wait_status("the first to lead", |it| it["standing"] == "leading").await?;
    let mut second = stage.autoscaler(&["--scale-down-enabled=false"])?;
    second
        .wait_status("the second to stand by", |it| it["standing"]["standby"].is_object())
        .await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    stage.wait_bound(2).await?;
    ensure!(second.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 0.0);
    ensure!(first.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 1.0);
    first.process.kill()?;
    second.wait_status("the second to lead", |it| it["standing"] == "leading").await?;
    let status = second.wait_status("the group", |it| target(it, "pool") >= 0).await?;
    ensure!(target(&status, "pool") == 1, "{status}");
    second.stop().await
}

async fn a_dry_run_changes_nothing(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&["--dry-run"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a"], "2", &json!({})).await?;
    let log = e2e::wait::wait_for("what it would do", crate::stage::PATIENCE, async || {
        let log = autoscaler.process.log()?;
        Ok(match log.contains("would raise the target of pool by 1") {
            true => e2e::wait::Level::Reached(log),
            false => e2e::wait::Level::Below(format!(
                "{}\n{}",
                autoscaler.explain("default/a").await?,
                autoscaler.explain("pool").await?
            )),
        })
    });
    log.await?;
    let status = autoscaler.status().await?;
    ensure!(target(&status, "pool") == 0, "{status}");
    let maps = stage.kubectl(&["get", "configmaps", "-n", "kube-system", "-o", "name"]).await?;
    ensure!(maps.contains("cluster-autoscaler-status-dry-run"), "{maps}");
    ensure!(!maps.lines().any(|map| map == "configmap/cluster-autoscaler-status"), "{maps}");
    autoscaler.stop().await
}

/// What was recorded of a node that came and went comes to the same again.
async fn a_record_replays(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let file = std::env::temp_dir().join(format!("record-{:016x}", rand::random::<u64>()));
    let path = file.display().to_string();
    let mut autoscaler = stage.autoscaler(&["--record-inputs", &path])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    stage.wait_bound(2).await?;
    stage.kubectl(&["delete", "pods", "--all", "--force", "--grace-period=0"]).await?;
    autoscaler.wait_status("the idle node to go", |it| target(it, "pool") == 0).await?;
    autoscaler.stop().await?;
    let (code, words) = stage.windlass(&["autoscaler", "replay", &path])?;
    std::fs::remove_file(&file)?;
    ensure!(code == 0 && words.contains("come to the same decisions"), "{code}: {words}");
    Ok(())
}

async fn people_are_answered_with_and_without_an_instance(stage: &mut Stage) -> Result<()> {
    stage.cloud(&POOL.replace("max: 10", "min: 1, max: 10, target: 1")).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    autoscaler.wait_explained("pool-0", "class    Ready").await?;
    let server = format!("--server=127.0.0.1:{}", autoscaler.port);
    let kubeconfig = stage.kubeconfig();
    let ask =
        |what: &[&str]| stage.windlass(&[&["autoscaler"], what, &[&server, &kubeconfig]].concat());
    let (code, words) = ask(&["status"])?;
    ensure!(code == 0 && words.contains("standing    leading"), "{code}: {words}");
    ensure!(words.lines().any(|line| line.starts_with("pool ")), "{words}");
    let (code, words) = ask(&["explain", "pool-0"])?;
    ensure!(code == 0 && words.starts_with("node pool-0   group pool"), "{code}: {words}");
    ensure!(ask(&["explain", "nobody"])?.0 == 1);
    autoscaler.stop().await?;
    let (code, words) = ask(&["status"])?;
    ensure!(code == 0 && words.lines().any(|line| line.starts_with("pool ")), "{code}: {words}");
    let (code, words) = ask(&["explain", "pool"])?;
    ensure!(code == 0 && words.contains("profile"), "{code}: {words}");
    Ok(())
}
