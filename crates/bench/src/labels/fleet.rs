//! The replicas under measurement: started, counted and stopped. Never judges what they did.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::{Options, writes::Writes};
use crate::{http, process};

/// The first lists of a large cluster take a while.
const READY_MAX: Duration = Duration::from_secs(120);

const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// All replicas; dropping it kills them.
pub(super) struct Fleet {
    watchers: Vec<Replica>,
    processors: Vec<Replica>,
}

struct Replica {
    child: Child,
    address: SocketAddr,
}

/// What the replicas' counters say, summed over some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) processed: f64,
    pub(super) requests: f64,
    pub(super) lists: f64,
    pub(super) writes: Writes,
}

/// The counters of the whole fleet.
#[derive(Clone, Debug)]
pub(super) struct FleetCounts {
    pub(super) all: Counts,
    /// Asked for by one processor, on average.
    pub(super) lists_per_processor: f64,
}

/// The largest resident size of either kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) watcher_bytes: u64,
    pub(super) processor_bytes: u64,
}

// === impl Fleet ===

impl Fleet {
    pub(super) async fn start(options: &Options) -> Result<Self> {
        let watcher = options.watcher_kubeconfig.as_ref().unwrap_or(&options.kubeconfig);
        let processor = options.processor_kubeconfig.as_ref().unwrap_or(&options.kubeconfig);
        let mut fleet = Self { watchers: Vec::new(), processors: Vec::new() };
        for _ in 0..options.watchers {
            fleet.watchers.push(Replica::start(&options.program, "watch", watcher).await?);
        }
        for _ in 0..options.processors {
            fleet.processors.push(Replica::start(&options.program, "process", processor).await?);
        }
        Ok(fleet)
    }

    #[expect(clippy::cast_precision_loss, reason = "a handful of replicas")]
    pub(super) async fn counts(&self) -> Result<FleetCounts> {
        let mut all = sum(&self.watchers).await?;
        let of_processors = sum(&self.processors).await?;
        all.add(&of_processors);
        let lists_per_processor = of_processors.lists / self.processors.len() as f64;
        Ok(FleetCounts { all, lists_per_processor })
    }

    pub(super) async fn idle_requests_per_second(&mut self, idle: Duration) -> Result<f64> {
        let before = self.counts().await?;
        sleep(idle).await;
        let after = self.counts().await?;
        let replicas = self.watchers.len() + self.processors.len();
        #[expect(clippy::cast_precision_loss, reason = "a handful of replicas")]
        let replicas = replicas as f64;
        Ok((after.all.requests - before.all.requests) / idle.as_secs_f64() / replicas)
    }

    pub(super) fn memory(&self) -> Result<Memory> {
        let largest = |replicas: &[Replica]| {
            let sizes = replicas.iter().map(Replica::memory_bytes);
            Ok::<_, anyhow::Error>(
                sizes.collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0),
            )
        };
        Ok(Memory {
            watcher_bytes: largest(&self.watchers)?,
            processor_bytes: largest(&self.processors)?,
        })
    }

    /// SIGTERM to all, then waits for each: an unclean end is a failed measurement.
    pub(super) async fn stop(self) -> Result<()> {
        for mut replica in self.watchers.into_iter().chain(self.processors) {
            kill_process(replica.pid()?, Signal::TERM).context("cannot stop a replica")?;
            let status = replica.child.wait().await.context("cannot wait for a replica")?;
            ensure!(status.success(), "a replica ended with {status}");
        }
        Ok(())
    }
}

// === impl Replica ===

impl Replica {
    async fn start(program: &Path, command: &str, kubeconfig: &Path) -> Result<Self> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no free port")?;
        let address = free.local_addr().context("no free port")?;
        drop(free);
        let child = Command::new(program)
            .args(["labels", command, "--log-level=warn"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--listen={address}"))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut replica = Self { child, address };
        replica.ready().await?;
        Ok(replica)
    }

    async fn ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            let ended = self.child.try_wait().context("cannot look at a replica")?;
            ensure!(ended.is_none(), "a replica ended before it was ready");
            let answer = http::get(self.address, "/readyz?verbose").await;
            if answer.as_ref().is_ok_and(|answer| answer.is_success) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "a replica did not become ready: {answer:?}");
            sleep(PROBE_PAUSE).await;
        }
    }

    fn pid(&self) -> Result<Pid> {
        let id = self.child.id().context("a replica has ended")?;
        Pid::from_raw(i32::try_from(id)?).context("a process has a number above zero")
    }

    fn memory_bytes(&self) -> Result<u64> {
        let id = self.child.id().context("a replica has ended")?;
        Ok(process::resident_bytes(id)?)
    }

    async fn counts(&self) -> Result<Counts> {
        let page = http::get(self.address, "/metrics").await?.body;
        Ok(read_counts(&page))
    }
}

async fn sum(replicas: &[Replica]) -> Result<Counts> {
    let mut sum = Counts::default();
    for replica in replicas {
        sum.add(&replica.counts().await?);
    }
    Ok(sum)
}

// === impl Counts ===

impl Counts {
    fn add(&mut self, others: &Self) {
        self.processed += others.processed;
        self.requests += others.requests;
        self.lists += others.lists;
        self.writes.add(&others.writes);
    }
}

fn read_counts(page: &str) -> Counts {
    let mut counts = Counts::default();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let Some((sample, value)) = line.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        if sample.starts_with("windlass_labels_processed_total") {
            counts.processed += value;
        } else if sample.starts_with("windlass_labels_api_requests_total") {
            counts.requests += value;
            if sample.contains("{verb=\"list\",") {
                counts.lists += value;
            }
            counts.writes.on_sample(sample, value);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed() {
        let page = "\
# TYPE windlass_labels_processed counter
windlass_labels_processed_total{row=\"D1\"} 3
windlass_labels_processed_total{row=\"A3\"} 4
windlass_labels_api_requests_total{verb=\"get\",resource=\"nodes\",namespace=\"\",code=\"200\"} 10
windlass_labels_api_requests_total{verb=\"list\",resource=\"nodes\",namespace=\"\",code=\"200\"} 2
windlass_labels_api_requests_total{verb=\"patch\",resource=\"nodes\",namespace=\"\",code=\"200\"} 5
";
        let counts = read_counts(page);
        let made = counts.writes.total().made;
        assert_eq!([counts.processed, counts.requests, counts.lists, made], [7.0, 17.0, 2.0, 5.0]);
    }
}
