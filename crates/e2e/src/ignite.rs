//! A cluster of real Ignite nodes on loopback.
//!
//! Owns the nodes and their folders. Knows nothing of what is kept in them.

mod guard;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::json;

pub use guard::Guard;

use crate::http;
use crate::ports;
use crate::process::{Process, Program};
use crate::tasks::link::{Link, Target};
use crate::tasks::net::Network;
use crate::wait::{Level, wait_for};

/// A JVM on a busy machine takes its time.
const START_WAIT: Duration = Duration::from_secs(240);
const MAIN: &str = "org.apache.ignite.internal.app.IgniteRunner";
/// What tables keep in memory.
const PAGES_BYTES: u64 = 256 << 20;
/// With the settings that Ignite has by default, every change of a schema takes a second, and cases
/// make many. The clocks of nodes on one machine do not differ.
const QUICK_SCHEMAS: &str = "schemaSync { delayDurationMillis = 20, maxClockSkewMillis = 20 }";

/// How the nodes are set up.
#[derive(Clone, Debug)]
pub struct Settings {
    pub nodes: usize,
    pub is_synced: bool,
    /// With the user that Ignite has by default, `ignite` with the same password, and with certificates
    /// that clients must know and show.
    pub is_guarded: bool,
    /// Whether tables are made in no time, which Ignite does not do by default.
    pub is_quick: bool,
    /// Whether each node is in a network of its own, with links that can fail to each other one and
    /// to whoever is outside. Takes root.
    pub is_apart: bool,
}

/// Running nodes, killed when dropped.
#[derive(Debug)]
pub struct Ignite {
    library: PathBuf,
    folder: PathBuf,
    nodes: Vec<Node>,
    guard: Option<Guard>,
    /// From each node to each other one, where they are apart.
    links: Vec<(usize, usize, Link)>,
    /// From the test's own network to nodes that are apart.
    _doors: Vec<Link>,
}

#[derive(Debug)]
struct Node {
    name: String,
    client_port: u16,
    rest_port: u16,
    /// Where REST is encrypted, if it is.
    rest_tls_port: u16,
    network_port: u16,
    /// Whose it is, if not the test's own.
    network: Option<Arc<Network>>,
    /// `None` while it is down.
    process: Option<Process>,
}

// === impl Ignite ===

impl Ignite {
    /// Starts nodes from a folder of jars, and makes them one cluster.
    pub async fn start(library: &Path, folder: &Path, settings: &Settings) -> Result<Self> {
        let mut nodes = Vec::new();
        for number in 1..=settings.nodes {
            let [client_port, rest_port, rest_tls_port, network_port] = ports::free()?;
            let name = format!("node{number}");
            let network = settings.is_apart.then(|| Network::new().map(Arc::new)).transpose()?;
            nodes.push(Node {
                name,
                client_port,
                rest_port,
                rest_tls_port,
                network_port,
                network,
                process: None,
            });
        }
        let guard = settings.is_guarded.then(|| Guard::make(folder)).transpose()?;
        let (library, folder) = (library.to_owned(), folder.to_owned());
        let (links, _doors) = (links(&nodes)?, doors(&nodes)?);
        let mut ignite = Self { library, folder, nodes, guard, links, _doors };
        let network: Vec<u16> = ignite.nodes.iter().map(|node| node.network_port).collect();
        for node in &ignite.nodes {
            let own = ignite.folder.join(&node.name);
            fs::create_dir_all(&own).context("make a node's folder")?;
            let text = node.settings(&network, settings, ignite.guard.as_ref());
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
        let security = if settings.is_guarded { "security { enabled = true }" } else { "" };
        let schemas = if settings.is_quick { QUICK_SCHEMAS } else { "" };
        request["clusterConfiguration"] = format!("ignite {{ {security}\n {schemas} }}").into();
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

    /// Where the nodes tell their settings, in the clear.
    #[must_use]
    pub fn rest(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.rest_port)).collect()
    }

    /// The same, encrypted.
    #[must_use]
    pub fn rest_tls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("https://127.0.0.1:{}", node.rest_tls_port)).collect()
    }

    /// The nodes as somebody outside reaches them by links of their own.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        self.nodes.iter().map(|node| node.target(node.client_port)).collect()
    }

    /// Links between a node and the others.
    pub fn links_of(&self, index: usize) -> impl Iterator<Item = &Link> {
        let concerns = move |from: usize, to: usize| from == index || to == index;
        self.links.iter().filter(move |(from, to, _)| concerns(*from, *to)).map(|it| &it.2)
    }

    /// What clients must know and show, if anything.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }

    /// SIGKILL to a node.
    pub fn kill(&mut self, index: usize) -> Result<()> {
        let process = self.nodes[index].process.take().context("the node runs")?;
        process.kill()
    }

    /// SIGKILL to all nodes.
    pub fn kill_all(&mut self) -> Result<()> {
        (0..self.nodes.len()).try_for_each(|index| self.kill(index))
    }

    /// Starts all nodes again, which need each other to start.
    pub async fn restart_all(&mut self) -> Result<()> {
        for index in 0..self.nodes.len() {
            self.launch(index)?;
        }
        for index in 0..self.nodes.len() {
            self.wait_state(index, "STARTED").await?;
        }
        Ok(())
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
        let (path, mut arguments) = match &node.network {
            None => ("java", Vec::new()),
            Some(network) => {
                ("nsenter", vec![format!("--net={}", network.path()), "java".to_owned()])
            }
        };
        arguments.extend([
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
        ]);
        let program = Program {
            name: node.name.clone(),
            path: path.into(),
            arguments,
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
            // Who asks for a password has its settings from the cluster, and so is part of it.
            let is_reached =
                [wanted, "STARTED", "Unauthorized"].iter().any(|it| state.contains(it));
            Ok(if is_reached { Level::Reached(()) } else { Level::Below(state) })
        })
        .await
    }
}

// === impl Node ===

impl Node {
    /// One of its ports.
    fn target(&self, port: u16) -> Target {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match &self.network {
            None => Target::Outside(address),
            Some(network) => Target::Inside(network.clone(), address),
        }
    }

    fn settings(&self, network: &[u16], settings: &Settings, guard: Option<&Guard>) -> String {
        let tls = guard.map(|guard| format!(", ssl {{ {} }}", guard.mutual())).unwrap_or_default();
        let rest_tls = guard.map(|guard| {
            let (port, own) = (self.rest_tls_port, guard.own());
            format!(", dualProtocol = true, ssl {{ enabled = true, port = {port}, {own} }}")
        });
        let all: Vec<String> = network.iter().map(|port| format!("\"127.0.0.1:{port}\"")).collect();
        format!(
            "ignite {{
  network {{ port = {own}, listenAddresses = [\"127.0.0.1\"], nodeFinder.netClusterNodes = [{all}] }}
  clientConnector {{ port = {client}, listenAddresses = [\"127.0.0.1\"]{tls} }}
  rest {{ port = {rest}{rest_tls} }}
  raft.fsync = {is_synced}
  storage.profiles = [{{ name = default, engine = aipersist, sizeBytes = {PAGES_BYTES} }}]
}}
",
            all = all.join(", "),
            own = self.network_port,
            client = self.client_port,
            rest = self.rest_port,
            rest_tls = rest_tls.unwrap_or_default(),
            is_synced = settings.is_synced,
        )
    }
}

/// Every node finds the others at the addresses that they have themselves.
fn links(nodes: &[Node]) -> Result<Vec<(usize, usize, Link)>> {
    let mut links = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let Some(network) = &node.network else { continue };
        for (other, peer) in nodes.iter().enumerate().filter(|(other, _)| *other != number) {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, peer.network_port));
            let link = Link::open(network, address, peer.target(peer.network_port))?;
            links.push((number, other, link));
        }
    }
    Ok(links)
}

fn doors(nodes: &[Node]) -> Result<Vec<Link>> {
    let apart = nodes.iter().filter(|node| node.network.is_some());
    let ports = apart.flat_map(|node| [node.client_port, node.rest_port].map(|port| (node, port)));
    ports.map(|(node, port)| Link::here(port, node.target(port))).collect()
}
