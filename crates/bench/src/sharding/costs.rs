//! What sharding costs: processor time under a steady stream of changes, compared with one controller
//! alone; and the sharder's memory, whatever the number of objects.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    Churn, Options,
    fleet::{Fleet, Manner},
    instance::Pace,
    objects,
    report::{Cpu, Footprint},
    setting::Setting,
};

/// As many as the Go project has in this scenario.
const INSTANCES: usize = 3;

/// An object is created, changed and removed.
const CHANGES_PER_OBJECT: u32 = 3;

/// Objects under way at once; far more than a steady stream needs.
const UNDER_WAY_MAX: usize = 4_096;

/// A leader first counts everything. Then it looks for what each departed instance has left, however many
/// there were, and for what nobody has.
const PASSES_MIN: f64 = 2.0;
const PASSES: &str = "windlass_sharding_pass_seconds_count";
const PASS_MAX: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long no pass ends before the sharder counts as idle.
const IDLE: Duration = Duration::from_secs(10);

/// Cores that a controller takes which is alone.
pub(super) async fn alone(setting: &Setting, fleet: &mut Fleet, options: &Options) -> Result<f64> {
    let manner = Manner { pace: Pace::OnChange, hold: None, is_alone: true };
    fleet.join(setting, "alone", manner).await?;
    let (_, cores) = cores(setting, fleet, options.churn).await?;
    fleet.leave("alone").await?;
    Ok(cores)
}

/// The same load on three instances and the sharder.
pub(super) async fn churn(
    setting: &Setting,
    fleet: &mut Fleet,
    options: &Options,
    alone: f64,
) -> Result<Cpu> {
    for number in 0..INSTANCES {
        fleet.join(setting, &format!("churn-{number}"), Manner::in_ring(Pace::OnChange)).await?;
    }
    objects::wait_assigned(&setting.secrets(), &setting.names()?.shard_label()).await?;
    let (sharder, instances) = cores(setting, fleet, options.churn).await?;
    fleet.leave_all().await?;
    let changes_per_second = options.churn.changes_per_second;
    Ok(Cpu { changes_per_second, sharder, instances, alone })
}

/// Cores of the sharder and of all instances while objects come and go. One that stays comes first: once
/// it was worked on, whatever comes will be.
async fn cores(setting: &Setting, fleet: &Fleet, churn: Churn) -> Result<(f64, f64)> {
    let (secrets, first) = (setting.secrets(), "lasting");
    objects::create(&secrets, first).await?;
    objects::wait_done(&secrets, first).await?;
    let (began, before) = (Instant::now(), fleet.cpu()?);
    stir(&secrets, churn).await?;
    let (after, elapsed) = (fleet.cpu()?, began.elapsed().as_secs_f64());
    objects::remove(&secrets, first).await?;
    let of = |before: Duration, after: Duration| (after - before).as_secs_f64() / elapsed;
    Ok((of(before.0, after.0), of(before.1, after.1)))
}

/// Objects begin their short lives at equal intervals.
async fn stir(secrets: &Api<Secret>, churn: Churn) -> Result<()> {
    let per_second = f64::from(churn.changes_per_second) / f64::from(CHANGES_PER_OBJECT);
    let interval = Duration::from_secs_f64(1.0 / per_second);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands")]
    let count = (churn.lasts.as_secs_f64() * per_second) as u32;
    let begin = Instant::now();
    let lives = stream::iter(0..count).map(async |number: u32| {
        sleep_until(begin + interval * number).await;
        let name = format!("brief-{number:06}");
        objects::create(secrets, &name).await?;
        sleep(churn.step).await;
        objects::want(secrets, &name, "more").await?;
        sleep(churn.step).await;
        objects::remove(secrets, &name).await
    });
    lives.buffer_unordered(UNDER_WAY_MAX).try_collect().await
}

/// At each number of objects, of a sharder that was started when they were there.
pub(super) async fn footprints(
    setting: &Setting,
    fleet: &mut Fleet,
    options: &Options,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Footprint>> {
    for number in 0..2 {
        fleet.join(setting, &format!("idle-{number}"), Manner::in_ring(Pace::Idle)).await?;
    }
    let (secrets, label) = (setting.secrets(), setting.names()?.shard_label());
    objects::remove_all(&secrets).await?;
    let (mut all, mut there) = (Vec::new(), 0);
    for count in &options.footprints {
        objects::create_many(&secrets, there, *count).await?;
        there = *count;
        objects::wait_assigned(&secrets, &label).await?;
        fleet.stop_sharder().await?;
        fleet.start_sharder(setting).await?;
        wait_idle(fleet).await?;
        let footprint = fleet.footprint(there)?;
        progress(&footprint.to_string());
        all.push(footprint);
    }
    fleet.leave_all().await?;
    Ok(all)
}

/// Waits until the sharder has gone through everything, and through nothing more for a while.
async fn wait_idle(fleet: &Fleet) -> Result<()> {
    let until = Instant::now() + PASS_MAX;
    let (mut passes, mut since) = (0.0, Instant::now());
    while passes < PASSES_MIN || since.elapsed() < IDLE {
        ensure!(Instant::now() < until, "the sharder has not looked at everything");
        sleep(LOOK_EVERY).await;
        let now = fleet.sharder_metric(PASSES).await?;
        if now > passes {
            (passes, since) = (now, Instant::now());
        }
    }
    Ok(())
}
