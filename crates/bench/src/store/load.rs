//! The closed loop: clients that each do one thing after the other, timed from outside.
//!
//! Latencies are kept as they were measured, four bytes each, so percentiles are exact.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};

use super::figures::{Figures, Metric};
use crate::process;

/// How long clients may take to finish what they were doing when the time was up.
const FINISH_MAX: Duration = Duration::from_secs(60);

/// The step by which a load that is slower than its time goes on until there is a figure.
const OVERTIME: Duration = Duration::from_millis(10);

/// One of many that put load on a server.
pub(crate) trait Client: Send + 'static {
    /// Does one operation, whose time is measured.
    fn operate(&mut self) -> impl Future<Output = Result<()>> + Send;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) warm_up: Duration,
    pub(crate) timed: Duration,
}

/// What was measured of one load.
#[derive(Debug)]
pub(crate) struct Load {
    /// Of each operation, ascending.
    micros: Vec<u32>,
    elapsed: Duration,
    /// What the server took of the processor meanwhile, if its process is known.
    cpu: Option<Duration>,
}

/// Tells the clients when to start counting and when to stop.
#[derive(Default)]
struct Phase {
    now: AtomicU8,
    /// Whether any operation was counted yet.
    has_counted: AtomicBool,
}

const WARMING_UP: u8 = 0;
const TIMED: u8 = 1;
const OVER: u8 = 2;

/// Runs the clients for a while, and counts what they complete after the warm-up.
pub(crate) async fn timed<C: Client>(
    clients: Vec<C>,
    span: Span,
    server_pid: Option<u32>,
) -> Result<Load> {
    let phase = Arc::new(Phase::default());
    let mut running = JoinSet::new();
    for client in clients {
        running.spawn(run_timed(client, Arc::clone(&phase)));
    }
    pass(span.warm_up, &mut running).await?;
    let cpu_before = cpu_time(server_pid)?;
    let began = Instant::now();
    phase.now.store(TIMED, Ordering::Relaxed);
    pass(span.timed, &mut running).await?;
    while !phase.has_counted.load(Ordering::Relaxed) && began.elapsed() < FINISH_MAX {
        pass(OVERTIME, &mut running).await?;
    }
    phase.now.store(OVER, Ordering::Relaxed);
    let elapsed = began.elapsed();
    let cpu_after = cpu_time(server_pid)?;
    let micros = timeout(FINISH_MAX, gather(running)).await.context("clients hang")??;
    Ok(Load::new(micros, elapsed, cpu_before.zip(cpu_after)))
}

/// Runs the clients until they did `total` operations together, and counts all of them.
pub(crate) async fn counted<C: Client>(
    clients: Vec<C>,
    total: u64,
    server_pid: Option<u32>,
) -> Result<Load> {
    let taken = Arc::new(AtomicU64::new(0));
    let cpu_before = cpu_time(server_pid)?;
    let began = Instant::now();
    let mut running = JoinSet::new();
    for client in clients {
        running.spawn(run_counted(client, Arc::clone(&taken), total));
    }
    let micros = gather(running).await?;
    let elapsed = began.elapsed();
    let cpu_after = cpu_time(server_pid)?;
    Ok(Load::new(micros, elapsed, cpu_before.zip(cpu_after)))
}

async fn run_timed<C: Client>(mut client: C, phase: Arc<Phase>) -> Result<Vec<u32>> {
    let mut micros = Vec::new();
    loop {
        let began = Instant::now();
        client.operate().await?;
        match phase.now.load(Ordering::Relaxed) {
            WARMING_UP => {}
            TIMED => {
                if micros.is_empty() {
                    phase.has_counted.store(true, Ordering::Relaxed);
                }
                micros.push(to_micros(began.elapsed()));
            }
            _ => return Ok(micros),
        }
    }
}

async fn run_counted<C: Client>(
    mut client: C,
    taken: Arc<AtomicU64>,
    total: u64,
) -> Result<Vec<u32>> {
    let mut micros = Vec::new();
    while taken.fetch_add(1, Ordering::Relaxed) < total {
        let began = Instant::now();
        client.operate().await?;
        micros.push(to_micros(began.elapsed()));
    }
    Ok(micros)
}

/// Lets time pass, unless a client fails first.
async fn pass(time: Duration, running: &mut JoinSet<Result<Vec<u32>>>) -> Result<()> {
    tokio::select! {
        () = sleep(time) => Ok(()),
        Some(ended) = running.join_next() => {
            joined(ended)?;
            bail!("a client ended before its time");
        }
    }
}

async fn gather(mut running: JoinSet<Result<Vec<u32>>>) -> Result<Vec<u32>> {
    let mut all = Vec::new();
    while let Some(ended) = running.join_next().await {
        all.append(&mut joined(ended)?);
    }
    Ok(all)
}

fn joined(ended: Result<Result<Vec<u32>>, JoinError>) -> Result<Vec<u32>> {
    ended.context("a client panicked")?.context("a client failed")
}

fn cpu_time(pid: Option<u32>) -> Result<Option<Duration>> {
    Ok(pid.map(process::cpu_time).transpose()?)
}

fn to_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

// === impl Load ===

impl Load {
    fn new(mut micros: Vec<u32>, elapsed: Duration, cpu: Option<(Duration, Duration)>) -> Self {
        micros.sort_unstable();
        Self { micros, elapsed, cpu: cpu.map(|(before, after)| after.saturating_sub(before)) }
    }

    /// How many were completed.
    pub(crate) fn operations(&self) -> usize {
        self.micros.len()
    }

    /// The figures of a load each of whose operations stands for `weight` of what the row counts.
    pub(crate) fn figures(&self, weight: usize) -> Result<Figures> {
        if self.micros.is_empty() {
            bail!("nothing was completed in {:?}", self.elapsed);
        }
        let units = (self.micros.len() * weight) as f64;
        let mut figures = Figures::default();
        figures.set(Metric::RatePerSecond, units / self.elapsed.as_secs_f64());
        figures.set(Metric::P50Micros, self.quantile(0.50));
        figures.set(Metric::P99Micros, self.quantile(0.99));
        if let Some(cpu) = self.cpu {
            figures.set(Metric::ServerCpuMicros, cpu.as_secs_f64() * 1e6 / units);
        }
        Ok(figures)
    }

    /// The latency that a share of the operations did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let rank = (self.micros.len() as f64 * share).ceil() as usize;
        f64::from(self.micros[rank.clamp(1, self.micros.len()) - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing;

    impl Client for Failing {
        async fn operate(&mut self) -> Result<()> {
            bail!("refused")
        }
    }

    struct Counting(Arc<AtomicU64>);

    impl Client for Counting {
        async fn operate(&mut self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn percentiles_are_exact() {
        let load = Load::new((1..=200).rev().collect(), Duration::from_secs(2), None);
        let figures = load.figures(3).unwrap();
        assert_eq!(figures.get(Metric::P50Micros), Some(100.0));
        assert_eq!(figures.get(Metric::P99Micros), Some(198.0));
        assert_eq!(figures.get(Metric::RatePerSecond), Some(300.0));
        assert_eq!(figures.get(Metric::ServerCpuMicros), None);
    }

    #[tokio::test]
    async fn a_count_is_kept_to_the_operation() {
        let done = Arc::new(AtomicU64::new(0));
        let clients = (0..7).map(|_| Counting(Arc::clone(&done))).collect();
        let load = counted(clients, 100, None).await.unwrap();
        assert_eq!((load.micros.len(), done.load(Ordering::Relaxed)), (100, 100));
    }

    #[tokio::test]
    async fn a_failing_client_ends_the_load_at_once() {
        let hour = Duration::from_secs(3600);
        let outcome = timed(vec![Failing], Span { warm_up: hour, timed: hour }, None).await;
        assert_eq!(format!("{:#}", outcome.unwrap_err()), "a client failed: refused");
    }
}
