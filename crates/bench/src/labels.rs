//! The labels service on a real API server: storms of nodes, one node at a time, and nothing at all.
//!
//! Replicas are processes of their own, as in a cluster; what they cost is read from the kernel and
//! from their own counters. The nodes it makes are bare objects whose names begin with `bench-`, and
//! it removes them again; records of them stay.

mod fleet;
mod nodes;
mod report;
mod writes;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use tokio::time::Instant;

pub use report::{Report, Single, Storm};
pub use writes::{Kind, Tally, Writes};

use crate::Machine;
use fleet::Fleet;
use nodes::Nodes;

/// The namespaces of the service.
const TRANSACTIONS: &str = "node-metadata-transactions";
const RECORDS: &str = "node-metadata";
const CHECKPOINTS: &str = "node-metadata-checkpoints";

/// How long nothing happens, for the requests of an idle replica to be counted.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Options {
    /// Reaches an API server that has the service's manifests; may create and delete Nodes.
    pub kubeconfig: PathBuf,
    /// What the replicas log in with, if not the same.
    pub watcher_kubeconfig: Option<PathBuf>,
    pub processor_kubeconfig: Option<PathBuf>,
    /// The binary that has the command `labels`.
    pub program: PathBuf,
    pub watchers: usize,
    pub processors: usize,
    /// Sizes of the storms, in order.
    pub storms: Vec<usize>,
    /// Nodes that leave and return one at a time.
    pub singles: usize,
    pub idle: Duration,
}

/// Measures all of it and tells `progress` of each step.
pub async fn run(options: &Options, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Report> {
    options.check()?;
    let nodes = Nodes::connect(&options.kubeconfig).await?;
    let mut fleet = Fleet::start(options).await?;
    let singles = singles(options, &nodes, progress).await?;
    let mut storms = Vec::new();
    for size in &options.storms {
        let storm =
            storm(*size, &nodes, &fleet).await.with_context(|| format!("storm of {size}"))?;
        progress(&storm.to_string());
        storms.push(storm);
    }
    let idle_requests_per_second = fleet.idle_requests_per_second(options.idle).await?;
    progress(&format!("idle: {idle_requests_per_second:.2} requests/s of each replica"));
    let report = Report {
        machine: Machine::read()?,
        watchers: options.watchers,
        processors: options.processors,
        single: Single::of(&singles),
        storms,
        idle_requests_per_second,
    };
    fleet.stop().await?;
    nodes.remove_all().await?;
    Ok(report)
}

/// From the creation of a node that has a record to its labels being back, one node at a time.
async fn singles(
    options: &Options,
    nodes: &Nodes,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(options.singles);
    for number in 0..options.singles {
        let name = format!("bench-single-{number}");
        nodes.add(&name, true).await?;
        nodes.remove(&name).await?;
        nodes.wait_stored(&name).await?;
        times.push(nodes.add_and_wait_restored(&name).await?);
    }
    progress(&format!("single nodes: {}", Single::of(&times)));
    Ok(times)
}

/// All nodes leave at once, then return at once.
async fn storm(size: usize, nodes: &Nodes, fleet: &Fleet) -> Result<Storm> {
    let names: Vec<String> =
        (0..size).map(|number| format!("bench-storm-{size}-{number}")).collect();
    nodes.add_all(&names, true).await?;
    nodes.wait_idle().await?;
    let before = fleet.counts().await?;
    let began = Instant::now();
    nodes.remove_each(&names).await?;
    nodes.wait_idle().await?;
    let stored_in = began.elapsed();
    let began = Instant::now();
    nodes.add_all(&names, false).await?;
    let restored = nodes.wait_restored(&names).await?;
    let restored_in = began.elapsed();
    nodes.wait_idle().await?;
    let after = fleet.counts().await?;
    let storm = Storm::new(size, restored, [stored_in, restored_in], &before, &after);
    let memory = fleet.memory()?;
    nodes.remove_each(&names).await?;
    nodes.wait_idle().await?;
    Ok(storm.with_memory(memory))
}

// === impl Options ===

impl Options {
    fn check(&self) -> Result<()> {
        ensure!(self.watchers > 0 && self.processors > 0, "one replica of each is the least");
        ensure!(self.singles > 0, "a median needs at least one node");
        Ok(())
    }

    /// What is published.
    #[must_use]
    pub fn full(kubeconfig: PathBuf, program: PathBuf) -> Self {
        Self {
            kubeconfig,
            watcher_kubeconfig: None,
            processor_kubeconfig: None,
            program,
            watchers: 2,
            processors: 4,
            storms: vec![150, 5000],
            singles: 100,
            idle: IDLE,
        }
    }

    /// Shows that everything works; the figures mean little.
    #[must_use]
    pub fn quick(kubeconfig: PathBuf, program: PathBuf) -> Self {
        let idle = Duration::from_secs(5);
        Self { storms: vec![20], singles: 3, idle, ..Self::full(kubeconfig, program) }
    }
}
