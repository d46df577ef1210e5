//! The nodes under measurement: started, counted, killed and stopped. Never judges what they did.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tasks::client::{self, Client};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep},
};

use super::report::Holding;
use crate::{http, process};

/// A node first kills what an earlier one left.
const READY_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(60);
const PROBE_PAUSE: Duration = Duration::from_millis(20);

/// All nodes; dropping it kills them. The first has the store of all of them.
pub(super) struct Fleet {
    nodes: Vec<Node>,
}

/// How to start one.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    pub(super) program: &'a Path,
    pub(super) folder: PathBuf,
    pub(super) nodes: usize,
    /// `native` or `process`.
    pub(super) runtime: &'static str,
    pub(super) ttl: Duration,
}

struct Node {
    name: String,
    command: Vec<String>,
    program: PathBuf,
    log: PathBuf,
    api: SocketAddr,
    child: Option<Child>,
}

/// What the nodes' counters say of claims, summed over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Claims {
    pub(super) won: f64,
    /// Lost, fenced or of unknown outcome.
    pub(super) wasted: f64,
}

// === impl Fleet ===

impl Fleet {
    pub(super) async fn start(plan: &Plan<'_>) -> Result<Self> {
        fs::create_dir_all(&plan.folder).context("make the folder")?;
        let store = free_address().await?;
        let mut fleet = Self { nodes: Vec::new() };
        for number in 1..=plan.nodes {
            let role = match number {
                1 => ["--store-listen".to_owned(), store.to_string()],
                _ => ["--store".to_owned(), format!("http://{store}")],
            };
            let mut node = Node::plan(plan, &format!("node{number}"), role).await?;
            node.launch()?;
            node.wait_ready().await?;
            fleet.nodes.push(node);
        }
        Ok(fleet)
    }

    /// Speaks with the first node, which is never lost.
    pub(super) async fn client(&self) -> Result<Client> {
        self.nodes[0].client().await
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    pub(super) fn last(&self) -> &str {
        &self.nodes[self.nodes.len() - 1].name
    }

    /// kill -9 of the last node's daemon.
    pub(super) async fn kill_last(&mut self) -> Result<()> {
        let last = self.nodes.last_mut().context("there is a node")?;
        let mut child = last.child.take().context("the node runs")?;
        child.kill().await.context("kill the node")
    }

    pub(super) async fn restart_last(&mut self) -> Result<()> {
        let last = self.nodes.last_mut().context("there is a node")?;
        last.launch()?;
        last.wait_ready().await
    }

    pub(super) fn holding(&self) -> Result<Holding> {
        let (with_store, others) = self.nodes.split_first().context("there is a node")?;
        let descriptors = self.nodes.iter().map(Node::descriptors).collect::<Result<Vec<_>>>()?;
        let others = others.iter().map(Node::resident_bytes).collect::<Result<Vec<_>>>()?;
        Ok(Holding {
            with_store_bytes: with_store.resident_bytes()?,
            without_store_bytes: others.into_iter().max(),
            descriptors: descriptors.into_iter().max().context("there is a node")?,
        })
    }

    pub(super) async fn claims(&self) -> Result<Claims> {
        let mut sum = Claims::default();
        for node in &self.nodes {
            let claims = read_claims(&http::get(node.api, "/metrics").await?.body);
            sum = Claims { won: sum.won + claims.won, wasted: sum.wasted + claims.wasted };
        }
        Ok(sum)
    }

    /// The one with the store goes last.
    pub(super) async fn stop(mut self) -> Result<()> {
        while let Some(node) = self.nodes.pop() {
            node.stop().await?;
        }
        Ok(())
    }
}

// === impl Node ===

impl Node {
    async fn plan(plan: &Plan<'_>, name: &str, role: [String; 2]) -> Result<Self> {
        let api = free_address().await?;
        let data = plan.folder.join(name);
        let mut command: Vec<String> = [
            ["node", "--insecure"].map(ToOwned::to_owned),
            ["--name".to_owned(), name.to_owned()],
            ["--listen".to_owned(), api.to_string()],
            ["--data-dir".to_owned(), data.display().to_string()],
            ["--runtime".to_owned(), plan.runtime.to_owned()],
            ["--lease-ttl".to_owned(), format!("{}s", plan.ttl.as_secs())],
            ["--log-level".to_owned(), "warn".to_owned()],
        ]
        .concat();
        command.extend(role);
        let program = plan.program.to_owned();
        let log = plan.folder.join(format!("{name}.log"));
        Ok(Self { name: name.to_owned(), command, program, log, api, child: None })
    }

    fn launch(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("open {}", self.log.display()))?;
        let child = Command::new(&self.program)
            .args(&self.command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    async fn wait_ready(&mut self) -> Result<()> {
        let until = Instant::now() + READY_MAX;
        while !self.is_ready().await {
            let ended = self.child.as_mut().context("it was started")?.try_wait()?;
            if let Some(status) = ended {
                bail!("{} ended: {status}; see {}", self.name, self.log.display());
            }
            ensure!(
                Instant::now() < until,
                "{} is not ready; see {}",
                self.name,
                self.log.display()
            );
            sleep(PROBE_PAUSE).await;
        }
        Ok(())
    }

    /// Whether it lists itself.
    async fn is_ready(&self) -> bool {
        let Ok(client) = self.client().await else { return false };
        let nodes = client.nodes().await.unwrap_or_default();
        nodes.iter().any(|node| node.name == self.name)
    }

    async fn client(&self) -> Result<Client> {
        let options = client::Options { address: self.api.to_string(), tls: None };
        Ok(Client::connect(&options).await?)
    }

    fn id(&self) -> Result<u32> {
        self.child.as_ref().and_then(Child::id).context("a node has ended")
    }

    fn resident_bytes(&self) -> Result<u64> {
        Ok(process::resident_bytes(self.id()?)?)
    }

    fn descriptors(&self) -> Result<usize> {
        let files = fs::read_dir(format!("/proc/{}/fd", self.id()?));
        Ok(files.context("count files")?.count())
    }

    async fn stop(mut self) -> Result<()> {
        let id = Pid::from_raw(i32::try_from(self.id()?)?).context("a process has a number")?;
        kill_process(id, Signal::TERM).context("stop the node")?;
        let mut child = self.child.take().context("it was started")?;
        let ended = tokio::time::timeout(STOP_MAX, child.wait()).await;
        let status = ended.with_context(|| format!("{} does not stop", self.name))??;
        ensure!(status.success(), "{} ended: {status}; see {}", self.name, self.log.display());
        Ok(())
    }
}

async fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("find a free port")?;
    Ok(listener.local_addr()?)
}

fn read_claims(page: &str) -> Claims {
    let mut claims = Claims::default();
    for line in page.lines() {
        let Some(sample) = line.strip_prefix("windlass_task_claims_total{") else { continue };
        let Some((labels, value)) = sample.rsplit_once(' ') else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        if labels.contains("result=\"won\"") {
            claims.won += value;
        } else {
            claims.wasted += value;
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_won_is_wasted() {
        let page = "\
# TYPE windlass_task_claims counter
windlass_task_claims_total{result=\"won\"} 40
windlass_task_claims_total{result=\"lost\"} 3
windlass_task_claims_total{result=\"unknown\"} 1
windlass_task_claimsomething_total{result=\"won\"} 7
";
        assert_eq!(read_claims(page), Claims { won: 40.0, wasted: 4.0 });
    }
}
