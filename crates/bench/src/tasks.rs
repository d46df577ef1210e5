//! The task runner: many tasks on several nodes, containers beside those of runc and crun, plain
//! processes, and how soon the tasks of a lost node run elsewhere.
//!
//! Nodes are processes of their own at one store, as in a cluster; what they cost is read from the
//! kernel and from their own counters. Containers are measured without a cluster, by the library that
//! nodes start them with. Everything lies in one scratch folder, and nothing outlives the run.

mod containers;
mod crowd;
mod fleet;
mod loss;
mod report;
mod rivals;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

pub use report::{Containers, Crowd, Loss, Report, Spread};

use crate::Machine;

/// A lease as nodes have it when nobody says otherwise.
const TTL: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Options {
    /// The binary that has the commands `node` and `shim`.
    pub program: PathBuf,
    /// Where nodes keep their data; on the disk that is meant to be measured.
    pub scratch: PathBuf,
    pub nodes: usize,
    /// Tasks on all nodes together, in four equal parts.
    pub tasks: usize,
    /// Tasks of one node that runs plain processes.
    pub process_tasks: usize,
    /// Containers of each kind, one after the other and many at once.
    pub containers: usize,
    /// Tasks of the node that is lost, about.
    pub lost_tasks: usize,
    /// Programs that are to be compared with.
    pub rivals: Vec<PathBuf>,
    pub ttl: Duration,
}

/// Measures all of it and tells `progress` of each step.
pub async fn run(options: &Options, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Report> {
    options.check()?;
    remove(&options.scratch)?;
    let measured = containers::measure(options, progress).await;
    let (containers, not_measured) = measured.context("containers")?;
    let crowd = crowd::on_nodes(options).await.context("tasks on several nodes")?;
    progress(&crowd.to_string());
    let processes = crowd::of_processes(options).await.context("plain processes")?;
    progress(&processes.to_string());
    let losses = loss::measure(options).await.context("loss of a node")?;
    for loss in &losses {
        progress(&loss.to_string());
    }
    remove(&options.scratch)?;
    let ttl_s = options.ttl.as_secs_f64();
    let machine = Machine::read()?;
    Ok(Report { machine, ttl_s, containers, crowd, processes, losses, not_measured })
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

// === impl Options ===

impl Options {
    fn check(&self) -> Result<()> {
        ensure!(rustix::process::geteuid().is_root(), "containers need root");
        ensure!(self.nodes >= 2, "a lost node needs another one");
        ensure!(self.tasks >= 100 && self.containers > 0, "too few to measure anything");
        Ok(())
    }

    /// What is published.
    #[must_use]
    pub fn full(program: PathBuf, scratch: PathBuf) -> Self {
        Self {
            program,
            scratch,
            nodes: 3,
            tasks: 10_000,
            process_tasks: 10_000,
            containers: 1_000,
            lost_tasks: 50,
            rivals: rivals::installed(),
            ttl: TTL,
        }
    }

    /// Shows that everything works; the figures mean little.
    #[must_use]
    pub fn quick(program: PathBuf, scratch: PathBuf) -> Self {
        let ttl = Duration::from_secs(5);
        let full = Self::full(program, scratch);
        Self { tasks: 200, process_tasks: 200, containers: 20, lost_tasks: 8, ttl, ..full }
    }
}
