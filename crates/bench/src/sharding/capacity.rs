//! What one more instance is worth: all work as fast as their workers can.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::{ResourceExt, api::ListParams};
use tokio::time::{Instant, sleep};

use super::{
    Options, evenness,
    fleet::{Fleet, Manner},
    instance::Pace,
    objects,
    report::{Capacity, Evenness},
    setting::Setting,
    sight::Sight,
};

/// With one instance, then one more and so on; and how even it was with all of them.
pub(super) async fn measure(
    setting: &Setting,
    fleet: &mut Fleet,
    options: &Options,
) -> Result<(Vec<Capacity>, Vec<Evenness>)> {
    objects::create_many(&setting.secrets(), 0, options.objects).await?;
    let mut all: Vec<Capacity> = Vec::new();
    for number in 0..options.instances {
        let of_so_many = || format!("{} instances", number + 1);
        fleet.join(setting, &format!("busy-{number}"), Manner::in_ring(Pace::Busy)).await?;
        // The watch ends before anything is counted: it would be part of the load.
        let sight = Sight::open(setting)?;
        sight.wait_settled(options.objects, &fleet.ids()).await.with_context(of_so_many)?;
        drop(sight);
        let per_second = rate(fleet, options).await.with_context(of_so_many)?;
        let one = all.first().map_or(per_second, |first| first.per_second);
        all.push(Capacity { instances: number + 1, per_second, ratio: per_second / one });
    }
    // The last window was longer than a status may be behind.
    setting.wait_balanced().await?;
    Sight::open(setting)?.wait_settled(options.objects, &fleet.ids()).await?;
    let counts = counts(setting).await?;
    let instances = options.instances;
    let max_over_mean = evenness::max_over_mean(&counts, instances)?;
    let way = format!("{} objects, measured", options.objects);
    fleet.leave_all().await?;
    Ok((all, vec![Evenness { way, instances, max_over_mean }]))
}

async fn rate(fleet: &Fleet, options: &Options) -> Result<f64> {
    let (began, before) = (Instant::now(), fleet.reconciles().await?);
    sleep(options.window).await;
    let after = fleet.reconciles().await?;
    Ok((after - before) / began.elapsed().as_secs_f64())
}

/// What each instance has.
async fn counts(setting: &Setting) -> Result<BTreeMap<String, usize>> {
    let label = setting.names()?.shard_label();
    let mut counts = BTreeMap::new();
    for object in setting.secrets().list_metadata(&ListParams::default()).await? {
        let owner = object.labels().get(&label).cloned().unwrap_or_default();
        *counts.entry(owner).or_default() += 1;
    }
    Ok(counts)
}
