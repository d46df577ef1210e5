//! Several instances, none that acts, and what was recorded.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Stage, cases, target};

/// Within which who is told to stop ends, and has given its Lease back.
const STOP_MAX: Duration = Duration::from_secs(10);

cases! {
    ETCD: [
        only_the_leader_acts,
        a_leader_that_slept_past_its_lease_does_not_act,
        a_leader_told_to_stop_ends_soon_and_gives_its_lease_back,
        a_dry_run_changes_nothing,
        people_are_answered_with_and_without_an_instance,
    ],
    AT_LENGTH: [a_record_replays, a_record_that_cannot_be_written_is_told_at_once],
}

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

/// SC9.3: it wakes while the pods that the next one has asked a node for still wait.
async fn a_leader_that_slept_past_its_lease_does_not_act(stage: &mut Stage) -> Result<()> {
    stage.cloud(&POOL.replace("boot: 500ms", "boot: 4s")).await?;
    let mut first = stage.autoscaler(&["--scale-down-enabled=false"])?;
    first.wait_status("the first to lead", |it| it["standing"] == "leading").await?;
    let mut second = stage.autoscaler(&["--scale-down-enabled=false"])?;
    second
        .wait_status("the second to stand by", |it| it["standing"]["standby"].is_object())
        .await?;
    first.process.pause().await?;
    second.wait_status("the second to lead", |it| it["standing"] == "leading").await?;
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    second.wait_status("the second to act", |it| target(it, "pool") == 1).await?;
    ensure!(stage.bound().await?.is_empty(), "the pods have their node before the first woke");
    first.process.resume()?;
    first.wait_status("the first to stand by", |it| it["standing"]["standby"].is_object()).await?;
    stage.wait_bound(2).await?;
    let status = second.status().await?;
    ensure!(status["standing"] == "leading" && target(&status, "pool") == 1, "{status}");
    ensure!(second.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 1.0);
    ensure!(first.metric("cluster_autoscaler_scaled_up_nodes_total").await? == 0.0);
    first.stop().await?;
    second.stop().await
}

async fn a_leader_told_to_stop_ends_soon_and_gives_its_lease_back(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&[])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    let lease = ["get", "lease", "cluster-autoscaler", "-n", "kube-system"];
    let held = stage.json(&lease).await?;
    ensure!(!held["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{held}");
    // There is something to do when it is told.
    stage.pods(&["a", "b"], "2", &json!({})).await?;
    let told = Instant::now();
    autoscaler.stop().await?;
    ensure!(told.elapsed() < STOP_MAX, "ended after {:?}", told.elapsed());
    let left = stage.json(&lease).await?;
    ensure!(left["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty(), "{left}");
    Ok(())
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

/// Where every write fails.
async fn a_record_that_cannot_be_written_is_told_at_once(stage: &mut Stage) -> Result<()> {
    stage.cloud(POOL).await?;
    let mut autoscaler = stage.autoscaler(&["--record-inputs=/dev/full"])?;
    autoscaler.wait_status("the group to be known", |it| target(it, "pool") == 0).await?;
    e2e::wait::wait_for("what it says of the record", crate::stage::PATIENCE, async || {
        autoscaler.process.ensure_alive()?;
        let log = autoscaler.process.log()?;
        Ok(match log.contains("nothing is recorded from now on") {
            true => e2e::wait::Level::Reached(()),
            false => e2e::wait::Level::Below("nothing".to_owned()),
        })
    })
    .await?;
    autoscaler.process.kill()
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
