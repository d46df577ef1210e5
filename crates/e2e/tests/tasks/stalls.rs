//! Processes that stand still and neither end nor notice that time passes.

use anyhow::{Context, Result, ensure};
use e2e::scene::Scene;
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL, is_final};
use e2e::tasks::ledger::Work;
use e2e::tasks::shims::Shims;
use e2e::wait::{Level, pass, wait_for};
use rustix::process::Signal;
use tasks::wire::status::Status;

use crate::stage::{PATIENCE, cases};

/// Longer than a stall, in half seconds.
const LONG: u32 = 120;

/// Shorter than a stall, and long enough that none has ended when the last one has begun.
const SHORT: u32 = 8;

/// Tasks whose shims stand still.
const TASKS: usize = 4;

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
    let ids = cluster.submit(TASKS, Work::of(LONG)).await?;
    cluster.wait_began(&ids).await?;
    Shims::exactly(cluster.nodes[0].process()?.id(), TASKS)?.signal(Signal::STOP)?;
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
        Ok(if stopped == TASKS { Level::Reached(()) } else { Level::Below(format!("{stopped} of {TASKS}")) })
    })
    .await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.given_up == TASKS, "{tally:?}");
    Ok(())
}

/// What ended meanwhile is told once they can.
async fn stopped_shims_go_on(scene: &Scene) -> Result<()> {
    let options = ClusterOptions { nodes: 1, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(TASKS, Work::of(SHORT)).await?;
    cluster.wait_began(&ids).await?;
    let shims = Shims::exactly(cluster.nodes[0].process()?.id(), TASKS)?;
    shims.signal(Signal::STOP)?;
    pass(TTL).await?;
    let views = cluster.tasks().await?;
    ensure!(!views.iter().any(is_final), "an end was told past a shim that stands still");
    shims.signal(Signal::CONT)?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == TASKS && tally.attempts == TASKS, "{tally:?}");
    Ok(())
}
