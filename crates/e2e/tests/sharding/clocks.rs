//! Wall clocks that differ: nobody compares another's clock with its own.

use anyhow::{Context, Result, ensure};
use e2e::sharding::InstanceOptions;
use e2e::skew::Clock;
use serde_json::json;

use crate::crew::{Crew, only_moves, patient};
use crate::stage::{Stage, cases};

cases! {
    beside: [],
    alone: [
        clocks_differ_by_half_a_minute,
    ],
}

const SKEW_SECONDS: i64 = 30;

/// One instance is ahead, one behind, and the sharder is behind too. A deadline is the sharder's, so
/// it may seem to be over that much too early.
async fn clocks_differ_by_half_a_minute(stage: &mut Stage) -> Result<()> {
    let scene = stage.world.scene.clone();
    let clock = |name: &str, seconds: i64| -> Result<Clock> {
        let clock = Clock::new(&scene, name)?;
        clock.set(seconds)?;
        Ok(clock)
    };
    let (ahead, behind) = (clock("ahead", SKEW_SECONDS)?, clock("behind", -SKEW_SECONDS)?);
    let at = |clock: &Clock, options: InstanceOptions| InstanceOptions {
        environment: clock.environment(),
        ..options
    };
    stage.run(0).await?;
    stage.sharders.push(stage.world.sharder_in(behind.environment()).await?);
    let alone = [("a-0", at(&ahead, patient()))];
    let (mut crew, _) = Crew::assemble_with(stage, "skewed", &json!({}), &alone).await?;
    crew.arena.skew = std::time::Duration::from_secs(SKEW_SECONDS.unsigned_abs() + 1);
    let renewed = crew.arena.leases().get("a-0").await?.spec.and_then(|spec| spec.renew_time);
    let ahead_by = renewed.context("it was renewed")?.0.duration_since(jiff::Timestamp::now());
    ensure!(ahead_by.as_secs() > SKEW_SECONDS / 2, "its clock is not ahead: {ahead_by:?}");
    crew.join_as(stage, "b-0", &at(&behind, InstanceOptions::default())).await?;
    let of_two = crew.settle().await?;
    crew.join(stage, "c-0").await?;
    let of_three = crew.settle().await?;
    only_moves(&of_two, &of_three, |_, to| to == "c-0")?;
    crew.kill("a-0")?;
    let rest = crew.settle().await?;
    only_moves(&of_three, &rest, |from, _| from == "a-0")?;
    crew.leave("b-0").await?;
    crew.settle().await?;
    crew.finish(stage).await?;
    // The next case gets one whose clock is right.
    stage.run(0).await
}
