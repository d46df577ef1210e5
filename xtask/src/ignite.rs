//! A cluster of Ignite nodes on loopback, for trying things out: `cargo xtask ignite up` and `down`.
//!
//! Owns the nodes' settings, data and logs, all in the user's cache folder. Nodes outlive this
//! process; what is running is known by the files they are started with.

mod node;
mod rest;

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use self::node::Node;
use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::peers::{self, Provision};
use crate::process::Stopwatch;

const PEER: &str = "ignite-3.1.0";
/// More would not fit a desk's memory: a node takes about 0.8 GB.
const NODES_MAX: u16 = 7;
/// A node of a busy machine answers after half a minute.
const START_WAIT: Duration = Duration::from_secs(180);
/// A node flushes what it keeps; one that stands still never ends.
const STOP_WAIT: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(200);

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the nodes, make them one cluster, and print where clients reach it
    Up {
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=i64::from(NODES_MAX)))]
        nodes: u16,
    },
    /// Stop the nodes
    Down {
        /// Remove what they kept, too
        #[arg(long)]
        purge: bool,
    },
}

pub(crate) fn run(checkout: &Checkout, command: &Command) -> Result<bool> {
    let cache = Cache::open()?;
    match command {
        Command::Up { nodes } => up(checkout, &cache, *nodes),
        Command::Down { purge } => down(&cache, *purge),
    }
}

fn up(checkout: &Checkout, cache: &Cache, count: u16) -> Result<bool> {
    let peer = peers::catalogue()
        .iter()
        .find(|peer| peer.to_string() == PEER)
        .context("Ignite is in the catalogue")?;
    let library = match peers::provision(checkout, peer)? {
        Provision::Ready(assets) => assets.first().context("Ignite has one asset")?.path.clone(),
        Provision::Unavailable(reason) => bail!("{PEER}: unavailable: {reason}"),
    };
    let stopwatch = Stopwatch::start();
    let mut nodes = Vec::new();
    for number in 1..=count {
        nodes.push(Running::ensure(Node::new(cache, number), &library, count)?);
    }
    for running in &mut nodes {
        running.wait(|state| state.is_some())?;
    }
    let first = nodes[0].node.rest_port();
    if rest::state(first)?.as_deref() == Some("STARTING") {
        rest::initialize(first, nodes.iter().map(|running| running.node.name()))?;
    }
    for running in &mut nodes {
        running.wait(|state| state == Some("STARTED"))?;
    }
    eprintln!("{count} nodes are up after {}", stopwatch.elapsed());
    let list = |port: fn(&Node) -> u16| {
        let all = nodes.iter().map(|running| format!("127.0.0.1:{}", port(&running.node)));
        all.collect::<Vec<_>>().join(",")
    };
    println!("clients: {}", list(Node::client_port));
    println!("rest:    {}", list(Node::rest_port));
    let ids = nodes.iter().map(Running::id).collect::<Result<Vec<String>>>()?;
    println!("pids:    {}", ids.join(","));
    Ok(true)
}

/// A node that is to come up.
struct Running {
    node: Node,
    /// Present if this run started it. What a process was started with cannot be read in its first
    /// moments, so only its parent can tell whether it is there.
    child: Option<Child>,
}

// === impl Running ===

impl Running {
    fn ensure(node: Node, library: &Path, count: u16) -> Result<Self> {
        let is_there = node.process()?.is_some();
        let child = if is_there { None } else { Some(node.start(library, count)?) };
        Ok(Self { node, child })
    }

    /// The number of its process.
    fn id(&self) -> Result<String> {
        let id = match &self.child {
            Some(child) => Some(child.id()),
            None => self.node.process()?,
        };
        id.map(|id| id.to_string()).with_context(|| format!("{} ended", self.node.name()))
    }

    fn has_ended(&mut self) -> Result<bool> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait().context("look at the node's process")?.is_some()),
            None => Ok(self.node.process()?.is_none()),
        }
    }

    fn wait(&mut self, is_reached: impl Fn(Option<&str>) -> bool) -> Result<()> {
        let polls = START_WAIT.as_millis() / POLL_EVERY.as_millis();
        for _ in 0..polls {
            if self.has_ended()? {
                bail!("{} ended; its log is {}", self.node.name(), self.node.log().display());
            }
            if is_reached(rest::state(self.node.rest_port())?.as_deref()) {
                return Ok(());
            }
            pause();
        }
        bail!("{} is not ready; its log is {}", self.node.name(), self.node.log().display())
    }
}

fn down(cache: &Cache, is_purged: bool) -> Result<bool> {
    let nodes: Vec<Node> = (1..=NODES_MAX).map(|number| Node::new(cache, number)).collect();
    for node in &nodes {
        if node.stop()? {
            eprintln!("{} is told to stop", node.name());
        }
    }
    for node in &nodes {
        wait_for_end(node)?;
    }
    if is_purged && cache.ignite().exists() {
        fs::remove_dir_all(cache.ignite()).context("cannot remove the nodes' data")?;
    }
    Ok(true)
}

fn wait_for_end(node: &Node) -> Result<()> {
    let polls = STOP_WAIT.as_millis() / POLL_EVERY.as_millis();
    for _ in 0..polls {
        match node.process()? {
            None => return Ok(()),
            Some(_) => pause(),
        }
    }
    bail!("{} does not end; its log is {}", node.name(), node.log().display())
}

#[expect(clippy::disallowed_methods, reason = "a tool that waits for other processes")]
fn pause() {
    std::thread::sleep(POLL_EVERY);
}
