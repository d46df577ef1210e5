//! Sharding on a real API server: what more instances are worth, how fast objects change hands, what
//! moves when instances restart or die, and what the sharder costs.
//!
//! Sharder and instances are processes of their own, as in a cluster; what they cost is read from the
//! kernel and from their own counters, what they did from a watch. Everything is in a namespace and a
//! ring of its own, which are removed again. What is measured without a ring comes first: afterwards
//! the fence would refuse a controller that is alone.

mod accounts;
mod capacity;
mod costs;
mod creation;
mod evenness;
mod fleet;
mod instance;
mod ledger;
mod objects;
mod rebalance;
mod report;
mod setting;
mod sight;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};

pub use evenness::simulated;
pub use instance::{InstanceOptions, Pace, run as run_instance};
pub use report::{
    Capacity, Cpu, Crash, Creation, Evenness, Footprint, Gap, Move, Report, Rolling, Spread,
};

use crate::Machine;
use fleet::Fleet;
use setting::Setting;

#[derive(Clone, Debug)]
pub struct Options {
    /// Reaches an API server that has the sharder's manifests, as its administrator.
    pub kubeconfig: PathBuf,
    /// The binary that has the commands `sharder` and `bench shard-instance`.
    pub program: PathBuf,
    /// Where credentials of the processes are kept while they run.
    pub scratch: PathBuf,
    /// Objects that are spread, moved and worked on.
    pub objects: usize,
    /// The same for one large move; none is made if there are fewer than [`objects`](Self::objects).
    pub objects_large: usize,
    /// Capacity is measured with one instance up to this many.
    pub instances: usize,
    /// How long work is counted.
    pub window: Duration,
    /// How long a Lease lasts, of all but those who are killed.
    pub lease: Duration,
    /// The same of those who are killed.
    pub crash_leases: Vec<Duration>,
    /// Objects that are created one after the other, with and without a ring.
    pub creations: usize,
    pub churn: Churn,
    /// Numbers of objects at which the sharder's memory is read, in ascending order.
    pub footprints: Vec<usize>,
}

/// Objects that come, change and go.
#[derive(Clone, Copy, Debug)]
pub struct Churn {
    pub changes_per_second: u32,
    pub lasts: Duration,
    /// Between the creation of an object, its change and its end.
    pub step: Duration,
}

/// Measures all of it and tells `progress` of each step.
pub async fn run(options: &Options, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Report> {
    options.check()?;
    let mut setting = Setting::open(options).await?;
    let measured = measure(options, &mut setting, progress).await;
    let removed = setting.remove().await;
    let report = measured?;
    removed.context("remove what was made")?;
    Ok(report)
}

async fn measure(
    options: &Options,
    setting: &mut Setting,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Report> {
    let machine = Machine::read()?;
    let mut fleet = Fleet::new(options);
    let bare = creation::bare(setting, options.creations).await.context("creations")?;
    progress(&format!("creations without a ring: {bare}"));
    let alone = costs::alone(setting, &mut fleet, options).await.context("one controller alone")?;
    progress(&format!("one controller alone takes {alone:.3} cores"));

    setting.open_ring().await?;
    fleet.start_sharder(setting).await?;
    setting.wait_fenced().await?;
    let ringed = creation::ringed(setting, &mut fleet, options.creations).await;
    let ringed = ringed.context("creations in the ring")?;
    let creation = Creation { bare, ringed };
    progress(&creation.to_string());
    let (capacity, spread) = capacity::measure(setting, &mut fleet, options).await?;
    progress(&format!("{} instances: {:.2} times one", capacity.len(), ratio_of_last(&capacity)));
    let cpu = costs::churn(setting, &mut fleet, options, alone).await.context("churn")?;
    progress(&cpu.to_string());
    let turns = rebalance::measure(setting, &mut fleet, options, progress).await?;
    let footprints = costs::footprints(setting, &mut fleet, options, progress).await?;
    setting.close_ring().await?;
    fleet.stop().await?;
    let evenness = evenness::all(spread)?;
    let rebalance::Turns { moves, gap, rolling, crashes } = turns;
    Ok(Report {
        machine,
        objects: options.objects,
        capacity,
        evenness,
        moves,
        gap,
        rolling,
        crashes,
        creation,
        cpu,
        footprints,
    })
}

fn ratio_of_last(capacity: &[Capacity]) -> f64 {
    capacity.last().map_or(1.0, |last| last.ratio)
}

// === impl Options ===

impl Options {
    fn check(&self) -> Result<()> {
        ensure!(self.objects >= 20 && self.instances >= 1, "too few to measure anything");
        ensure!(self.footprints.is_sorted(), "objects are only added");
        Ok(())
    }

    /// What is published.
    #[must_use]
    pub fn full(kubeconfig: PathBuf, program: PathBuf, scratch: PathBuf) -> Self {
        Self {
            kubeconfig,
            program,
            scratch,
            objects: 1_000,
            objects_large: 10_000,
            instances: 5,
            window: Duration::from_secs(20),
            lease: Duration::from_secs(15),
            crash_leases: vec![Duration::from_secs(15), Duration::from_secs(5)],
            creations: 1_000,
            churn: Churn {
                changes_per_second: 156,
                lasts: Duration::from_secs(60),
                step: Duration::from_secs(1),
            },
            footprints: vec![1_000, 10_000, 100_000],
        }
    }

    /// Shows that everything works; the figures mean little.
    #[must_use]
    pub fn quick(kubeconfig: PathBuf, program: PathBuf, scratch: PathBuf) -> Self {
        let churn = Churn {
            changes_per_second: 30,
            lasts: Duration::from_secs(2),
            step: Duration::from_millis(300),
        };
        Self {
            objects: 40,
            objects_large: 0,
            instances: 2,
            window: Duration::from_secs(1),
            crash_leases: vec![Duration::from_secs(5)],
            creations: 10,
            churn,
            footprints: vec![60],
            ..Self::full(kubeconfig, program, scratch)
        }
    }
}
