//! Processors that die or stall in the middle of a node: with its lock in their hands, after each kind
//! of write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::labels::{Cluster, RECORDS, Request, Role, TRANSACTIONS, hash, identity, labels};
use e2e::wait::{Level, pass, wait_for};

use crate::seed::LOCK_DURATION;
use crate::stage::{CROWD, Stage, cases, gold, names};
use crate::storms::{add_each, for_each};

/// Nodes that leave and return together: more than a processor works on at once, so that whenever it
/// is stopped it is in the middle of some.
const NODES: usize = 24;

/// How often it is stopped at most until it was stopped where it is wanted.
const ROUNDS_MAX: usize = 20;

/// How long a write may be waited for.
const WRITE_WAIT: Duration = Duration::from_secs(60);

cases! {
    killed_replica_mid_transaction_is_replaced,
    stalled_replica_late_write_is_refused,
}

/// What a processor writes, in the order of a node's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Write {
    Lock,
    Record,
    Node,
    Mark,
    Delete,
}

impl Write {
    const ALL: [Self; 5] = [Self::Lock, Self::Record, Self::Node, Self::Mark, Self::Delete];

    /// What was written, and of which node: its name, or the hash of it.
    fn of(request: &Request) -> Option<(Self, &str)> {
        let (verb, name) = (request.verb.as_str(), request.name.as_str());
        let write = match (request.resource.as_str(), request.namespace.as_str(), verb) {
            ("leases", TRANSACTIONS, "create" | "update") => Self::Lock,
            ("configmaps", RECORDS, "create") => Self::Record,
            ("nodes", _, "patch") => Self::Node,
            ("configmaps", RECORDS, "update") => Self::Mark,
            ("configmaps", TRANSACTIONS, "delete") => Self::Delete,
            _ => return None,
        };
        let is_done = (200..300).contains(&request.code);
        is_done.then_some((write, name.split('.').next().unwrap_or(name)))
    }
}

/// A processor is killed after each kind of write, with the node's lock held. Whoever follows ends
/// what it began, and nothing is restored twice.
async fn killed_replica_mid_transaction_is_replaced(stage: &mut Stage) -> Result<()> {
    let mut struck = BTreeSet::new();
    for round in 0..ROUNDS_MAX {
        let Some(wanted) = Write::ALL.into_iter().find(|write| !struck.contains(write)) else {
            break;
        };
        struck.extend(kill_at(stage, wanted, &format!("victim{round}")).await?);
    }
    ensure!(struck.len() == Write::ALL.len(), "killed only after {struck:?}");
    stage.run(1, 1).await
}

/// Nodes leave and return; the processor is killed when it has written `wanted` for the first time.
/// Returns what it had written last for the nodes it was in the middle of.
async fn kill_at(stage: &mut Stage, wanted: Write, prefix: &str) -> Result<BTreeSet<Write>> {
    stage.run(2, 1).await?;
    let (cluster, nodes) = (stage.cluster(), names(prefix, NODES));
    add_each(&cluster, &nodes, |_| gold()).await?;
    settle_all(&cluster, &nodes, &stage.killed).await?;
    let leave = for_each(&nodes, async |node| cluster.remove(node).await);
    let mut struck = BTreeSet::new();
    if wanted == Write::Record {
        struck = strike(stage, &nodes, wanted, leave).await?;
    } else {
        leave.await?;
    }
    for node in &nodes {
        cluster.wait_stored(node, &gold()).await?;
    }
    settle_all(&cluster, &nodes, &stage.killed).await?;
    let enter = add_each(&cluster, &nodes, |_| BTreeMap::new());
    if wanted == Write::Record {
        enter.await?;
    } else {
        struck = strike(stage, &nodes, wanted, enter).await?;
    }
    for node in &nodes {
        cluster.wait_restored(node, &gold()).await?;
    }
    settle_all(&cluster, &nodes, &stage.killed).await?;
    stage.restored_once(&nodes).await?;
    Ok(struck)
}

/// Kills the only processor at its first write of this kind while `storm` goes on, and starts
/// another.
async fn strike(
    stage: &mut Stage,
    nodes: &[String],
    wanted: Write,
    storm: impl Future<Output = Result<()>>,
) -> Result<BTreeSet<Write>> {
    let mut requests = stage.world.audit.follow()?;
    let before = requests.by_ref().count();
    let victim = stage.processors.pop().context("a processor runs")?;
    let account = stage.world.account(Role::Process).to_owned();
    let kill = async {
        wait_for(&format!("a write of {wanted:?}"), WRITE_WAIT, async || {
            for request in requests.by_ref() {
                let request = request?;
                let write = Write::of(&request).map(|(write, _)| write);
                if request.user == account && write == Some(wanted) {
                    return Ok(Level::Reached(()));
                }
            }
            Ok(Level::Below("not yet".to_owned()))
        })
        .await?;
        stage.kill(victim)
    };
    let (stormed, killed) = tokio::join!(storm, kill);
    stormed?;
    let killed = killed?.context("a processor that writes has said who it is")?;
    let held = stage.cluster().locked_by(&killed).await?;
    stage.run(2, 1).await?;
    last_writes(stage, before, &held, nodes)
}

/// What was last written for each of these nodes, of all requests after the first `before`. Their
/// locks were held by the dead when this was looked at, and they lapse slowly: nobody else has
/// written since.
fn last_writes(
    stage: &Stage,
    before: usize,
    held: &[String],
    nodes: &[String],
) -> Result<BTreeSet<Write>> {
    let mut last: BTreeMap<String, Write> = BTreeMap::new();
    let names: BTreeMap<String, &String> = nodes.iter().map(|node| (hash(node), node)).collect();
    for request in stage.world.audit.follow()?.skip(before) {
        let request = request?;
        if let Some((write, about)) = Write::of(&request) {
            let node = names.get(about).map_or(about, |node| node.as_str());
            last.insert(node.to_owned(), write);
        }
    }
    Ok(held.iter().filter_map(|node| last.get(node).copied()).collect())
}

async fn settle_all(cluster: &Cluster, nodes: &[String], killed: &[String]) -> Result<()> {
    for node in nodes {
        cluster.wait_worked_off(node, killed).await?;
    }
    Ok(())
}

/// Stopped for three lock durations in the middle of its work, it wakes and writes nothing.
async fn stalled_replica_late_write_is_refused(stage: &mut Stage) -> Result<()> {
    let (victim, nodes) = stall(stage).await?;
    let cluster = stage.cluster();
    stage.run(CROWD, CROWD).await?;
    for node in &nodes {
        cluster.wait_restored(node, &gold()).await?;
    }
    cluster.edit(&victim, &[("rack", Some("edited-since"))]).await?;
    pass(3 * LOCK_DURATION).await?;
    stage.processors[0].resume()?;
    cluster.remember("stalled-probe", &gold()).await?;
    for node in &nodes {
        cluster.wait_settled(node).await?;
    }
    let expected = labels(&[("team/tier", "gold"), ("rack", "edited-since")]);
    ensure!(cluster.labels(&victim).await? == expected, "the stalled replica wrote late");
    let others: Vec<String> = nodes.into_iter().filter(|node| *node != victim).collect();
    stage.restored_once(&others).await?;
    stage.run(1, 1).await
}

/// Stops the only processor while it holds the lock of a node that it has not restored yet. Returns
/// that node, and all that were returning with it.
async fn stall(stage: &mut Stage) -> Result<(String, Vec<String>)> {
    stage.run(CROWD, 1).await?;
    let cluster = stage.cluster();
    let holder = identity(&mut stage.processors[0])?.context("a ready processor has a name")?;
    for round in 0..ROUNDS_MAX {
        let nodes = names(&format!("stalled{round}"), NODES);
        add_each(&cluster, &nodes, |_| gold()).await?;
        for_each(&nodes, async |node| cluster.remove(node).await).await?;
        for node in &nodes {
            cluster.wait_stored(node, &gold()).await?;
            cluster.wait_settled(node).await?;
        }
        let enter = add_each(&cluster, &nodes, |_| BTreeMap::new());
        let pause = async {
            wait_for("a lock", WRITE_WAIT, async || {
                let held = cluster.locked_by(&holder).await?;
                let status = || Level::Below("none is held".to_owned());
                Ok(if held.is_empty() { status() } else { Level::Reached(()) })
            })
            .await?;
            stage.processors[0].pause().await
        };
        let (entered, paused) = tokio::join!(enter, pause);
        entered?;
        paused?;
        for node in cluster.locked_by(&holder).await? {
            if cluster.marker(&node).await?.is_none() {
                return Ok((node, nodes));
            }
        }
        stage.processors[0].resume()?;
    }
    anyhow::bail!("in {ROUNDS_MAX} rounds it was never stopped between a lock and its restore")
}
