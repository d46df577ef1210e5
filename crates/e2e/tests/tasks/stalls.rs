//! Processes that stand still and neither end nor notice that time passes.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::scene::Scene;
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL};
use e2e::tasks::ledger::Work;
use e2e::wait::{Level, pass, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tasks::wire::status::Status;

use crate::stage::{PATIENCE, cases};

/// Longer than a stall, in half seconds.
const LONG: u32 = 120;

cases! {
    stopped_daemon_for_three_ttl,
    stopped_shims_are_canceled,
    stopped_shims_go_on,
}

/// Its shims hold the deadline without it; awake again, it finds that others have its tasks.
async fn stopped_daemon_for_three_ttl(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(18, Work::of(LONG).then(2)).await?;
    cluster.wait_began(&ids).await?;
    let mine = cluster.on_node(0, &ids).await?;
    cluster.nodes[0].pause()?;
    // Ask the others from here on.
    cluster.nodes.rotate_left(1);
    pass(3 * TTL).await?;
    cluster.wait_attempts(&mine, 2).await?;
    cluster.nodes.rotate_right(1);
    cluster.nodes[0].resume()?;
    cluster.stop_long_ones(&ids).await?;
    cluster.judge(scene).await?;
    Ok(())
}

/// A shim that does not do what it is told is done without.
async fn stopped_shims_are_canceled(scene: &Scene) -> Result<()> {
    let options = ClusterOptions { nodes: 1, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(4, Work::of(LONG)).await?;
    cluster.wait_began(&ids).await?;
    signal_children(cluster.nodes[0].process()?.id(), Signal::STOP)?;
    let client = cluster.client().await?;
    for id in &ids {
        client.cancel(id.parse().context("an id")?).await.context("cancel")?;
    }
    wait_for("the last process of each to be gone", PATIENCE, async || {
        let tasks = cluster.tasks().await?;
        let is_stopped = |status: &Status| {
            matches!(status, Status::Canceled(canceled) if canceled.stopped_at_ms.is_some())
        };
        let statuses = tasks.iter().filter_map(|view| view.task.as_ref()?.status.as_ref());
        let stopped = statuses.filter_map(|it| it.status.as_ref()).filter(|it| is_stopped(it));
        let stopped = stopped.count();
        Ok(if stopped == 4 { Level::Reached(()) } else { Level::Below(format!("{stopped} of 4")) })
    })
    .await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.given_up == 4, "{tally:?}");
    Ok(())
}

/// What ended meanwhile is told once they can.
async fn stopped_shims_go_on(scene: &Scene) -> Result<()> {
    let options = ClusterOptions { nodes: 1, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(4, Work::of(4)).await?;
    cluster.wait_began(&ids).await?;
    let daemon = cluster.nodes[0].process()?.id();
    signal_children(daemon, Signal::STOP)?;
    pass(TTL).await?;
    signal_children(daemon, Signal::CONT)?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 4 && tally.attempts == 4, "{tally:?}");
    Ok(())
}

/// Shims are what a daemon starts.
fn signal_children(daemon: u32, signal: Signal) -> Result<()> {
    let mut count = 0;
    for thread in fs::read_dir(format!("/proc/{daemon}/task")).context("list its threads")? {
        let path = thread.context("list its threads")?.path().join("children");
        // A thread may end while its folder is read.
        let children = fs::read_to_string(path).unwrap_or_default();
        for child in children.split_whitespace() {
            let child = Pid::from_raw(child.parse()?).context("a process has a number")?;
            kill_process(child, signal).context("send a signal to a shim")?;
            count += 1;
        }
    }
    ensure!(count > 0, "the daemon has no shims");
    Ok(())
}
