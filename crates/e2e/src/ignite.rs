//! A cluster of real Ignite nodes on loopback.
//!
//! Owns the nodes and their folders. Knows nothing of what is kept in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

use crate::http;
use crate::ports;
use crate::process::{Process, Program};
use crate::wait::{Level, wait_for};

/// A JVM on a busy machine takes its time.
const START_WAIT: Duration = Duration::from_secs(240);
const MAIN: &str = "org.apache.ignite.internal.app.IgniteRunner";
/// What tables keep in memory.
const PAGES_BYTES: u64 = 256 << 20;

/// How the nodes are set up.
#[derive(Clone, Debug)]
pub struct Settings {
    pub nodes: usize,
    pub is_synced: bool,
    /// With the user that Ignite has by default, `ignite` with the same password.
    pub is_secured: bool,
}

/// Running nodes, killed when dropped.
#[derive(Debug)]
pub struct Ignite {
    library: PathBuf,
    folder: PathBuf,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    name: String,
    client_port: u16,
    rest_port: u16,
    /// `None` while it is down.
    process: Option<Process>,
}

// === impl Ignite ===

impl Ignite {
    /// Starts nodes from a folder of jars, and makes them one cluster.
    pub async fn start(library: &Path, folder: &Path, settings: &Settings) -> Result<Self> {
        let mut nodes = Vec::new();
        let mut network = Vec::new();
        for number in 1..=settings.nodes {
            let [client_port, rest_port, network_port] = ports::free()?;
            network.push(network_port);
            let name = format!("node{number}");
            nodes.push(Node { name, client_port, rest_port, process: None });
        }
        let mut ignite = Self { library: library.to_owned(), folder: folder.to_owned(), nodes };
        for (node, port) in ignite.nodes.iter().zip(&network) {
            let own = folder.join(&node.name);
            fs::create_dir_all(&own).context("make a node's folder")?;
            let text = node.settings(*port, &network, settings);
            fs::write(own.join("ignite.conf"), text).context("write a node's settings")?;
        }
        for index in 0..settings.nodes {
            ignite.launch(index)?;
        }
        for index in 0..settings.nodes {
            ignite.wait_state(index, "STARTING").await?;
        }
        ignite.initialize(settings).await?;
        for index in 0..settings.nodes {
            ignite.wait_state(index, "STARTED").await?;
        }
        Ok(ignite)
    }

    async fn initialize(&self, settings: &Settings) -> Result<()> {
        let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut request =
            json!({ "metaStorageNodes": names, "cmgNodes": names, "clusterName": "windlass" });
        if settings.is_secured {
            request["clusterConfiguration"] = "ignite { security { enabled = true } }".into();
        }
        let answer =
            http::post(self.nodes[0].rest_port, "/management/v1/cluster/init", &request).await?;
        ensure!(answer.status.is_success(), "init: {} {}", answer.status, answer.body);
        Ok(())
    }

    /// Where clients reach the nodes, running or not.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.client_port)).collect()
    }

    /// Where the nodes tell their settings.
    #[must_use]
    pub fn rest(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.rest_port)).collect()
    }

    /// SIGKILL to a node.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        let process = self.nodes[index].process.take().context("the node runs")?;
        process.kill()
    }

    /// Stops a node without ending it, or lets it go on.
    pub fn signal(&self, index: usize, signal: Signal) -> Result<()> {
        self.nodes[index].process.as_ref().context("the node runs")?.signal(signal)
    }

    /// Starts a killed node again with what it kept.
    pub async fn restart(&mut self, index: usize) -> Result<()> {
        self.launch(index)?;
        self.wait_state(index, "STARTED").await
    }

    fn launch(&mut self, index: usize) -> Result<()> {
        let node = &mut self.nodes[index];
        let own = self.folder.join(&node.name);
        let shown = |path: PathBuf| path.display().to_string();
        let program = Program {
            name: node.name.clone(),
            path: "java".into(),
            arguments: vec![
                format!("@{}", shown(self.library.join("java.args"))),
                "-cp".to_owned(),
                format!("{}/*", self.library.display()),
                MAIN.to_owned(),
                "--config-path".to_owned(),
                shown(own.join("ignite.conf")),
                "--work-dir".to_owned(),
                shown(own.join("work")),
                "--node-name".to_owned(),
                node.name.clone(),
            ],
            environment: Vec::new(),
            log_folder: self.folder.clone(),
        };
        node.process = Some(Process::start(&program)?);
        Ok(())
    }

    /// Waits until a node is at least that far: a started one has been starting.
    async fn wait_state(&mut self, index: usize, wanted: &str) -> Result<()> {
        let node = &mut self.nodes[index];
        let port = node.rest_port;
        let process = node.process.as_mut().context("the node runs")?;
        wait_for(&format!("{} to be {wanted}", node.name), START_WAIT, async || {
            process.ensure_alive()?;
            let state = match http::get(port, "/management/v1/node/state").await {
                Ok(answer) => answer.body,
                Err(error) => format!("{error:#}"),
            };
            let is_reached = state.contains(wanted) || state.contains("STARTED");
            Ok(if is_reached { Level::Reached(()) } else { Level::Below(state) })
        })
        .await
    }
}

// === impl Node ===

impl Node {
    fn settings(&self, own: u16, network: &[u16], settings: &Settings) -> String {
        let all: Vec<String> = network.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        format!(
            "ignite {{
  network {{ port = {own}, listenAddresses = [\"127.0.0.1\"], nodeFinder.netClusterNodes = [{all}] }}
  clientConnector {{ port = {client}, listenAddresses = [\"127.0.0.1\"] }}
  rest.port = {rest}
  raft.fsync = {is_synced}
  storage.profiles = [{{ name = default, engine = aipersist, sizeBytes = {PAGES_BYTES} }}]
}}
",
            all = all.join(", "),
            client = self.client_port,
            rest = self.rest_port,
            is_synced = settings.is_synced,
        )
    }
}
