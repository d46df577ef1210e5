//! One node as a process: started, killed, stopped and started again on the same data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tasks::client::{self, Client};

use super::net::Network;
use super::shims::Shims;
use crate::assets::Asset;
use crate::process::{Process, Program};
use crate::scene::Scene;
use crate::wait::{Level, wait_for};

/// A node on a busy machine first kills what an earlier one left.
const READY_WAIT: Duration = Duration::from_secs(30);

/// How to start a node.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    pub name: String,
    /// Beside those that every node gets.
    pub flags: Vec<String>,
    /// Whose it is, if not the test's own.
    pub network: Option<Arc<Network>>,
    pub environment: Vec<(String, String)>,
    /// A folder in another place than the scene's.
    pub data_dir: Option<PathBuf>,
}

/// A node that runs, or one that does not at the moment.
#[derive(Debug)]
pub struct Node {
    name: String,
    program: Program,
    data_dir: PathBuf,
    socket: PathBuf,
    process: Option<Process>,
}

// === impl Node ===

impl Node {
    /// Chooses folders; starts nothing.
    pub fn prepare(scene: &Scene, options: &NodeOptions) -> Result<Self> {
        let name = options.name.clone();
        let folder = scene.folder(&name)?;
        let data_dir = options.data_dir.clone().unwrap_or_else(|| folder.join("data"));
        let socket = folder.join("node.sock");
        let windlass = scene.program(Asset::Windlass)?;
        let mut arguments = vec!["node".to_owned(), "--name".to_owned(), name.clone()];
        arguments.extend(["--data-dir".to_owned(), data_dir.display().to_string()]);
        arguments.extend(["--socket".to_owned(), socket.display().to_string()]);
        arguments.extend(options.flags.clone());
        let path = match &options.network {
            None => windlass,
            Some(network) => {
                let enter = [format!("--net={}", network.path()), windlass.display().to_string()];
                arguments.splice(0..0, enter);
                PathBuf::from("nsenter")
            }
        };
        let program = Program {
            name: name.clone(),
            path,
            arguments,
            environment: options.environment.clone(),
            log_folder: scene.folder("logs")?,
        };
        Ok(Self { name, program, data_dir, socket, process: None })
    }

    /// Starts what does not run, and waits until it takes tasks.
    pub async fn start(&mut self) -> Result<()> {
        self.launch()?;
        self.wait_ready().await
    }

    pub fn launch(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "{} runs already", self.name);
        self.process = Some(Process::start(&self.program)?);
        Ok(())
    }

    pub async fn wait_ready(&mut self) -> Result<()> {
        let (name, address) = (self.name.clone(), self.address());
        let process = self.process.as_mut().context("the node was not started")?;
        wait_for(&format!("{name} to be ready"), READY_WAIT, async || {
            process.ensure_alive()?;
            Ok(match nodes(&address).await {
                Ok(names) if names.contains(&name) => Level::Reached(()),
                Ok(names) => Level::Below(format!("it knows of {names:?}")),
                Err(error) => Level::Below(format!("{error:#}")),
            })
        })
        .await
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Reached from every network: a socket is a file.
    #[must_use]
    pub fn address(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    pub async fn client(&self) -> Result<Client> {
        connect(&self.address()).await
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    pub fn process(&mut self) -> Result<&mut Process> {
        let name = &self.name;
        self.process.as_mut().with_context(|| format!("{name} does not run"))
    }

    /// kill -9 of the daemon: what it started is on its own.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("the node does not run")?.kill_alone()
    }

    /// kill -9 of the daemon and of its shims; how many these were. The daemon goes first: it would do
    /// the work of a shim that is gone before it.
    pub fn kill_with_shims(&mut self) -> Result<usize> {
        let shims = Shims::of(self.process()?.id())?;
        self.kill()?;
        shims.signal(Signal::KILL)?;
        Ok(shims.count())
    }

    /// SIGSTOP to the daemon alone.
    pub fn pause(&mut self) -> Result<()> {
        self.process()?.signal_alone(Signal::STOP)
    }

    pub fn resume(&mut self) -> Result<()> {
        self.process()?.signal_alone(Signal::CONT)
    }

    /// SIGTERM to the daemon, and a clean end.
    pub async fn stop(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the node does not run")?;
        process.signal_alone(Signal::TERM)?;
        let status = process.wait_end(READY_WAIT).await?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }

    /// The id of its data folder, by which its cgroups are called.
    pub fn host_id(&self) -> Result<String> {
        let path = self.data_dir.join("tasks/host-id");
        let id = std::fs::read_to_string(&path);
        Ok(id.with_context(|| format!("read {}", path.display()))?.trim().to_owned())
    }
}

/// The names of the nodes that the node at an address knows of.
async fn nodes(address: &str) -> Result<Vec<String>> {
    let nodes = connect(address).await?.nodes().await.context("list nodes")?;
    Ok(nodes.into_iter().map(|node| node.name).collect())
}

async fn connect(address: &str) -> Result<Client> {
    let options = client::Options { address: address.to_owned(), tls: None };
    Client::connect(&options).await.with_context(|| format!("connect to {address}"))
}
