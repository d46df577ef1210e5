//! Several store processes over one shared journal, beside a cluster of etcd with as many members.
//!
//! Clients are dealt over all members. What stands behind the journal is known by its processes
//! alone: their memory and processor time are told apart from the stores'.

mod crew;
mod report;
mod work;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use serde::Serialize;

pub use report::Report;

use crate::{Machine, store::load::Span, table};
use crew::{Crew, Kind};

/// Of either cluster.
const MEMBERS: usize = 3;
/// Clients that put at once.
const PUTTERS: [usize; 2] = [100, 1000];

#[derive(Clone, Debug)]
pub struct Options {
    /// Serves with the words `store serve`.
    pub windlass: PathBuf,
    /// Where the shared journal is; created before, and better empty.
    pub journal: String,
    /// Whether its settings may be unsafe.
    pub is_unsafe_allowed: bool,
    /// Processes behind the journal.
    pub engine_pids: Vec<u32>,
    /// Measured beside it, if given.
    pub etcd: Option<PathBuf>,
    /// Where etcd keeps its data, and all their logs.
    pub scratch: PathBuf,
    pub scale: Scale,
}

/// How large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scale {
    pub warm_up_ms: u64,
    pub timed_ms: u64,
    /// Keys that are there when gets, watches and starts are measured.
    pub keys: u64,
    pub watchers: usize,
    /// How often the member that writes is killed.
    pub changes: usize,
}

/// What was measured of one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    pub name: &'static str,
    pub loads: Vec<Loaded>,
    /// From the kill of the member that writes to the first write through another one, each time.
    pub failovers_ms: Vec<f64>,
    /// From the start of the one that was killed to its first linearizable answer, each time.
    pub starts_ms: Vec<f64>,
    /// Of all members together, with all keys there.
    pub members_bytes: u64,
    /// Of the processes behind the journal together, if there are any.
    pub engine_bytes: Option<u64>,
}

/// One kind of load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loaded {
    pub work: String,
    pub rate_per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Requests that were refused and tried again.
    pub refused: u64,
    /// Per operation, of all members.
    pub members_cpu_micros: f64,
    pub engine_cpu_micros: Option<f64>,
}

/// Measures one cluster after the other, each alone, and tells `progress` of each step.
pub async fn run(options: &Options, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Report> {
    let windlass = Kind::Windlass {
        program: options.windlass.clone(),
        journal: options.journal.clone(),
        is_unsafe_allowed: options.is_unsafe_allowed,
    };
    let mut clusters = vec![measure(options, windlass, &options.engine_pids, progress).await?];
    if let Some(program) = options.etcd.clone() {
        clusters.push(measure(options, Kind::Etcd { program }, &[], progress).await?);
    }
    Ok(Report { machine: Machine::read()?, scale: options.scale, clusters })
}

async fn measure(
    options: &Options,
    kind: Kind,
    engine: &[u32],
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Cluster> {
    let name = kind.name();
    let folder = options.scratch.join(name);
    let mut crew = Crew::start(kind, &folder, MEMBERS).await.context(name)?;
    let mut loads = Vec::new();
    for clients in PUTTERS {
        loads.push(work::puts(&crew, engine, &options.scale, clients).await?);
        tell(progress, name, loads.last());
    }
    work::fill(&crew, &options.scale).await.context("put the keys in place")?;
    loads.push(work::gets(&crew, engine, &options.scale).await?);
    tell(progress, name, loads.last());
    loads.push(work::watches(&crew, engine, &options.scale).await?);
    tell(progress, name, loads.last());
    let members_bytes = crew.resident_bytes()?;
    let engine_bytes = work::resident_bytes(engine)?;
    let (mut failovers_ms, mut starts_ms) = (Vec::new(), Vec::new());
    for _ in 0..options.scale.changes {
        let changed = work::change(&mut crew).await;
        let (failover, start) = changed.context("kill the member that writes")?;
        progress(&format!(
            "{name}: another member writes after {}, the killed one starts in {}",
            table::millis(millis(failover)),
            table::millis(millis(start))
        ));
        failovers_ms.push(millis(failover));
        starts_ms.push(millis(start));
    }
    let engine_bytes = (!engine.is_empty()).then_some(engine_bytes);
    Ok(Cluster { name, loads, failovers_ms, starts_ms, members_bytes, engine_bytes })
}

fn tell(progress: &mut (dyn FnMut(&str) + Send), name: &str, loaded: Option<&Loaded>) {
    if let Some(Loaded { work, rate_per_second, p50_micros, p99_micros, .. }) = loaded {
        let (rate, p50) = (table::rate(*rate_per_second), table::micros(*p50_micros));
        progress(&format!("{name}: {work}: {rate}, p50 {p50}, p99 {}", table::micros(*p99_micros)));
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

// === impl Scale ===

impl Scale {
    /// As it is published.
    #[must_use]
    pub fn full() -> Self {
        Self { warm_up_ms: 2_000, timed_ms: 10_000, keys: 100_000, watchers: 300, changes: 5 }
    }

    /// Shows that everything works; the figures mean little.
    #[must_use]
    pub fn quick() -> Self {
        Self { warm_up_ms: 200, timed_ms: 1_000, keys: 2_000, watchers: 30, changes: 1 }
    }

    fn warm_up(&self) -> Span {
        Span { warm_up: Duration::ZERO, timed: Duration::from_millis(self.warm_up_ms) }
    }

    fn timed(&self) -> Span {
        Span { warm_up: Duration::ZERO, timed: Duration::from_millis(self.timed_ms) }
    }
}
