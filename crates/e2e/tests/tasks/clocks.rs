//! Wall clocks that step. Each node has its own.

use anyhow::{Result, ensure};
use e2e::scene::Scene;
use e2e::skew::Clock;
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL};
use e2e::tasks::ledger::Work;
use e2e::wait::pass;

use crate::stage::cases;

const HOUR_SECONDS: i64 = 3600;

cases! { clock_steps_of_an_hour }

/// Leases, deadlines and attempts do not notice: none of them is measured on the wall.
async fn clock_steps_of_an_hour(scene: &Scene) -> Result<()> {
    let clocks: Vec<Clock> = (0..3)
        .map(|number| Clock::new(scene, &number.to_string()))
        .collect::<Result<Vec<Clock>>>()?;
    let environments = clocks.iter().map(Clock::environment).collect();
    let options = ClusterOptions { environments, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(12, Work::of(30)).await?;
    cluster.wait_began(&ids).await?;
    for (ahead, behind) in [(HOUR_SECONDS, -HOUR_SECONDS), (-HOUR_SECONDS, HOUR_SECONDS), (0, 0)] {
        clocks[0].set(ahead)?;
        clocks[1].set(behind)?;
        let meanwhile = cluster.submit(6, Work::of(1)).await?;
        cluster.wait_ended(&meanwhile).await?;
        pass(TTL / 2).await?;
    }
    let stepped = cluster.tasks().await?;
    let submitted = stepped.iter().filter_map(|view| view.task.as_ref());
    let times: Vec<i64> = submitted.map(|task| task.submitted_at_ms).collect();
    let spread = times.iter().max().zip(times.iter().min()).map_or(0, |(max, min)| max - min);
    ensure!(spread > HOUR_SECONDS * 1000, "no clock was stepped: {spread} ms");
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 30 && tally.attempts == 30, "tasks were disturbed: {tally:?}");
    Ok(())
}
