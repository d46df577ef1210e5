//! A store and nodes at it, each node in a network of its own, with links that can fail between all of
//! them; the work that was given to them, and the judgement over what became of it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tasks::client::Client;
use tasks::wire::{State, TaskSpec, TaskView};

use super::check::{self, History, Moment, Submitted, Tally};
use super::ledger::{Ledger, Work};
use super::link::{Link, Target};
use super::net::Network;
use super::node::{Node, NodeOptions};
use super::records;
use super::traces::Traces;
use crate::report::say;
use crate::scene::Scene;
use crate::store::{Lane, Store, StoreOptions};
use crate::wait::{Level, wait_for};

/// The shortest that is allowed, so that what follows from it follows soon.
pub const TTL: Duration = Duration::from_secs(5);

/// Where nodes find the store, each in its own network.
const STORE_PORT: u16 = 2379;
/// Where each node listens, at an address of its own.
const API_PORT: u16 = 8080;

/// What programs see of this machine, beside the ledger.
const HOST_VIEW: &str = "/usr,/etc,/bin,/sbin,/lib,/lib64";

/// How long a cluster may take to finish, on a machine that is busy with other things too.
const FINISH_WAIT: Duration = Duration::from_secs(90);

/// More tasks than any case submits.
const LIST_MAX: usize = 10_000;

/// What a case may ask of its cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    pub lane: Lane,
    pub nodes: u8,
    /// Flags of every node.
    pub flags: Vec<String>,
    /// Variables of each node, by its number from 0.
    pub environments: Vec<Vec<(String, String)>>,
    /// Where the first node keeps its data, if not in the scene.
    pub data_dir: Option<PathBuf>,
}

/// See the module.
pub struct Cluster {
    pub store: Store,
    pub nodes: Vec<Node>,
    pub ledger: Ledger,
    /// From each node to the store.
    pub store_links: Vec<Link>,
    /// From each node to each other one.
    peer_links: Vec<(usize, usize, Link)>,
    submitted: Vec<Submitted>,
    traces: Traces,
    /// Where nodes are started, also again.
    _networks: Vec<Arc<Network>>,
}

// === impl ClusterOptions ===

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            lane: Lane::Windlass,
            nodes: 3,
            flags: Vec::new(),
            environments: Vec::new(),
            data_dir: None,
        }
    }
}

// === impl Cluster ===

impl Cluster {
    /// Starts everything and waits until every node takes tasks.
    pub async fn start(scene: &Scene, options: &ClusterOptions) -> Result<Self> {
        let mut cluster = Self::prepare(scene, options).await?;
        for node in &mut cluster.nodes {
            node.launch()?;
        }
        for node in &mut cluster.nodes {
            node.wait_ready().await?;
        }
        Ok(cluster)
    }

    /// The store runs; no node does.
    pub async fn prepare(scene: &Scene, options: &ClusterOptions) -> Result<Self> {
        let store = Store::start(scene, &StoreOptions::new(options.lane, "store")).await?;
        let ledger = Ledger::open(scene.folder("ledger")?)?;
        let networks: Vec<Arc<Network>> =
            (0..options.nodes).map(|_| Network::new().map(Arc::new)).collect::<Result<_>>()?;
        let (mut nodes, mut store_links, mut peer_links) = (Vec::new(), Vec::new(), Vec::new());
        for (number, network) in networks.iter().enumerate() {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, STORE_PORT));
            let target = Target::Outside((Ipv4Addr::LOCALHOST, store.port()).into());
            store_links.push(Link::open(network, address, target)?);
            for (other, peer) in networks.iter().enumerate().filter(|(other, _)| *other != number) {
                let target = Target::Inside(peer.clone(), api(other)?);
                peer_links.push((number, other, Link::open(network, api(other)?, target)?));
            }
            let environment = options.environments.get(number).cloned().unwrap_or_default();
            let mut flags = flags(number, &ledger)?;
            flags.extend(options.flags.clone());
            let name = format!("node{}", number + 1);
            let network = Some(network.clone());
            let data_dir = options.data_dir.clone().filter(|_| number == 0);
            let options = NodeOptions { name, flags, network, environment, data_dir };
            nodes.push(Node::prepare(scene, &options)?);
        }
        let traces = Traces { folder: scene.path().to_owned(), host_ids: Vec::new() };
        let submitted = Vec::new();
        Ok(Self {
            store,
            nodes,
            ledger,
            store_links,
            peer_links,
            submitted,
            traces,
            _networks: networks,
        })
    }

    /// The client of some node that runs.
    pub async fn client(&self) -> Result<Client> {
        let node = self.nodes.iter().find(|node| node.is_running());
        node.context("no node runs")?.client().await
    }

    /// Submits work of the ledger's, all of it at once.
    pub async fn submit(&mut self, count: usize, work: Work) -> Result<Vec<String>> {
        let mut specs = Vec::with_capacity(count);
        for _ in 0..count {
            specs.push(self.ledger.task(work)?);
        }
        let client = self.client().await?;
        let mut ids = Vec::with_capacity(count);
        for result in client.submit_batch(specs).await.context("submit")? {
            ids.push(result.map_err(|refusal| anyhow!("refused: {refusal:?}"))?.id);
        }
        let noted = ids.iter().cloned();
        self.submitted.extend(noted.map(|task| Submitted { task, restarts: work.restarts }));
        Ok(ids)
    }

    /// Submits something that keeps no record of itself; its id.
    pub async fn submit_other(&self, spec: TaskSpec) -> Result<String> {
        Ok(self.client().await?.submit(spec).await.context("submit")?.id)
    }

    /// All tasks that were submitted, as they are now.
    pub async fn tasks(&self) -> Result<Vec<TaskView>> {
        let listing = self.client().await?.list(Default::default(), LIST_MAX).await;
        Ok(listing.context("list tasks")?.tasks)
    }

    /// Waits until commands of so many of these have said that they live.
    pub async fn wait_began(&self, tasks: &[String]) -> Result<()> {
        self.wait_attempts(tasks, 1).await
    }

    /// Waits until each of these has begun its attempt of this number or a later one.
    pub async fn wait_attempts(&self, tasks: &[String], attempt: u32) -> Result<()> {
        wait_for(&format!("attempt {attempt} to begin"), FINISH_WAIT, async || {
            let signs = self.ledger.signs();
            let has_begun = |task: &&String| {
                signs.iter().any(|sign| sign.task == **task && sign.attempt >= attempt)
            };
            let begun = tasks.iter().filter(has_begun).count();
            Ok(if begun == tasks.len() {
                Level::Reached(())
            } else {
                Level::Below(format!("{begun} of {}", tasks.len()))
            })
        })
        .await
    }

    /// Waits until the commands of these have said that they ended.
    pub async fn wait_ended(&self, tasks: &[String]) -> Result<()> {
        wait_for("commands to end", FINISH_WAIT, async || {
            let signs = self.ledger.signs();
            let ends = signs.iter().filter(|sign| sign.moment == Moment::Ended);
            let ended: BTreeSet<&str> = ends.map(|sign| sign.task.as_str()).collect();
            let open = tasks.iter().filter(|task| !ended.contains(task.as_str())).count();
            Ok(if open == 0 { Level::Reached(()) } else { Level::Below(format!("{open} go on")) })
        })
        .await
    }

    /// Waits until nothing is queued or runs any more.
    pub async fn wait_finished(&self) -> Result<()> {
        wait_for("all tasks to end", FINISH_WAIT, async || {
            let tasks = match self.tasks().await {
                Ok(tasks) => tasks,
                // A store that is away comes back.
                Err(error) => return Ok(Level::Below(format!("{error:#}"))),
            };
            let open = tasks.iter().filter(|view| !is_final(view)).count();
            Ok(if open == 0 {
                Level::Reached(())
            } else {
                Level::Below(format!("{open} are open"))
            })
        })
        .await
    }

    /// Those of these tasks whose last attempt is or was on a node.
    pub async fn on_node(&self, number: usize, ids: &[String]) -> Result<Vec<String>> {
        let name = self.nodes[number].name();
        let is_there = |view: &TaskView| {
            let last = view.task.as_ref().and_then(|task| task.attempts.last());
            last.is_some_and(|attempt| attempt.node_name == name)
        };
        let tasks = self.tasks().await?;
        let there = tasks.iter().filter(|view| is_there(view));
        let there = there.filter_map(|view| Some(view.task.as_ref()?.id.clone()));
        Ok(there.filter(|id| ids.contains(id)).collect())
    }

    /// Cancels those that still run their first attempt, which was to be longer than the case.
    pub async fn stop_long_ones(&self, ids: &[String]) -> Result<()> {
        let client = self.client().await?;
        for view in self.tasks().await?.into_iter().filter(|view| !is_final(view)) {
            let task = view.task.context("a view has its task")?;
            let is_first = task.attempts.last().is_some_and(|attempt| attempt.number == 1);
            if is_first && ids.contains(&task.id) {
                client.cancel(task.id.parse().context("an id")?).await.context("cancel")?;
            }
        }
        Ok(())
    }

    /// Nothing passes between a node and the rest of the world.
    pub fn isolate(&self, number: usize) {
        self.store_links[number].cut();
        self.links_of(number).for_each(Link::cut);
    }

    pub fn rejoin(&self, number: usize) {
        self.store_links[number].heal();
        self.links_of(number).for_each(Link::heal);
    }

    fn links_of(&self, number: usize) -> impl Iterator<Item = &Link> {
        let concerns = move |from: usize, to: usize| from == number || to == number;
        self.peer_links.iter().filter(move |(from, to, _)| concerns(*from, *to)).map(|it| &it.2)
    }

    /// What must hold at the end of every case: all work has ended, the store is consistent, no promise
    /// was broken, and once the nodes have stopped nothing of them is left on the machine.
    pub async fn judge(mut self, scene: &Scene) -> Result<Tally> {
        for node in self.nodes.iter_mut().filter(|node| !node.is_running()) {
            node.start().await?;
        }
        self.wait_finished().await?;
        let found = self.client().await?.fsck(false).await.context("fsck")?.findings;
        ensure!(found.is_empty(), "fsck: {found:?}");
        let hosts = self.nodes.iter().map(Node::host_id);
        self.traces.host_ids = hosts.collect::<Result<_>>()?;
        for node in &mut self.nodes {
            node.stop().await?;
        }
        let history = History {
            submitted: self.submitted,
            versions: records::read(&self.store.client()?).await?,
            signs: self.ledger.signs(),
        };
        let tally = check::check(&history).map_err(|found| anyhow!("{found:#?}"))?;
        drop(self.store);
        self.traces.wait_gone().await?;
        say(&format!("{}: {tally:?}", scene.name()));
        Ok(tally)
    }
}

#[must_use]
pub fn is_final(view: &TaskView) -> bool {
    matches!(state(view), State::Complete | State::Canceled | State::Failed)
}

/// Where a task is, in the words of filters.
#[must_use]
pub fn state(view: &TaskView) -> State {
    use tasks::wire::status::Status;
    let status = view.task.as_ref().and_then(|task| task.status.as_ref()?.status.as_ref());
    match status {
        None => State::Unspecified,
        Some(Status::Queued(_)) => State::Queued,
        Some(Status::Running(_)) => State::Running,
        Some(Status::Complete(_)) => State::Complete,
        Some(Status::Canceled(_)) => State::Canceled,
        Some(Status::Failed(_)) => State::Failed,
    }
}

/// The address of a node's API, the same in every network.
fn api(number: usize) -> Result<SocketAddr> {
    let last = u8::try_from(number + 1).context("few nodes")?;
    Ok((Ipv4Addr::new(127, 0, 0, last), API_PORT).into())
}

fn flags(number: usize, ledger: &Ledger) -> Result<Vec<String>> {
    let flags = [
        ("--listen", api(number)?.to_string()),
        ("--store", format!("http://127.0.0.1:{STORE_PORT}")),
        ("--lease-ttl", format!("{}s", TTL.as_secs())),
        ("--host-view", format!("{HOST_VIEW},{}", ledger.folder().display())),
        ("--log-level", "debug".to_owned()),
    ];
    let flags = flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
    Ok(flags.chain(["--insecure".to_owned()]).collect())
}
