//! Nodes and stores that die: nothing is lost, nothing runs twice at once, nothing stays behind.

use anyhow::{Result, ensure};
use e2e::scene::{Scene, bound};
use e2e::store::Lane;
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL};
use e2e::tasks::ledger::Work;
use e2e::wait::pass;

use crate::stage::cases;

/// Kills of a node with all its tasks, by default and at length.
const ROUNDS: (usize, usize) = (3, 20);

/// Half of the tasks of the node that is killed: as many may be run again, as many may not.
const HALF: usize = 25;

/// Longer than anybody waits for a node that is gone, in half seconds.
const LONG: u32 = 120;

cases! {
    kill_of_a_node_with_50_tasks,
    kill_and_restart_at_once,
    kill_of_a_node_and_its_shims,
    kill_of_the_store,
    store_away_for_longer_than_the_lease,
}

/// The node is killed while it runs 50 tasks and two others have just come.
async fn kill_of_a_node_with_50_tasks(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::prepare(scene, &ClusterOptions::default()).await?;
    let rounds = bound(ROUNDS.0, ROUNDS.1);
    for round in 0..rounds {
        let victim = round % cluster.nodes.len();
        cluster.nodes[victim].start().await?;
        let flagged = cluster.submit(HALF, Work::of(LONG).then(1)).await?;
        let unflagged = cluster.submit(HALF, Work::of(LONG).once()).await?;
        cluster.wait_began(&[flagged.clone(), unflagged].concat()).await?;
        for number in (0..cluster.nodes.len()).filter(|number| *number != victim) {
            cluster.nodes[number].start().await?;
        }
        cluster.nodes[victim].kill()?;
        cluster.wait_attempts(&flagged, 2).await?;
        cluster.wait_finished().await?;
        for number in (0..cluster.nodes.len()).filter(|number| *number != victim) {
            cluster.nodes[number].stop().await?;
        }
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == rounds * HALF && tally.given_up == rounds * HALF, "{tally:?}");
    Ok(())
}

async fn kill_and_restart_at_once(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(30, Work::of(LONG).then(6)).await?;
    cluster.wait_began(&ids).await?;
    for number in 0..cluster.nodes.len() {
        let mine = cluster.on_node(number, &ids).await?;
        cluster.nodes[number].kill()?;
        cluster.nodes[number].start().await?;
        cluster.wait_attempts(&mine, 2).await?;
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 30, "{tally:?}");
    Ok(())
}

/// Nobody is left who knows of the containers.
async fn kill_of_a_node_and_its_shims(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(30, Work::of(LONG).then(2)).await?;
    cluster.wait_began(&ids).await?;
    let mine = kill_with_shims(&mut cluster, 0, &ids).await?;
    cluster.wait_attempts(&mine, 2).await?;
    cluster.nodes[0].start().await?;
    let theirs = kill_with_shims(&mut cluster, 1, &ids).await?;
    cluster.nodes[1].start().await?;
    cluster.wait_attempts(&theirs, 2).await?;
    let rest = kill_with_shims(&mut cluster, 2, &ids).await?;
    cluster.wait_attempts(&rest, 2).await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 30, "{tally:?}");
    Ok(())
}

/// Those of the tasks that ran there for the first time, each with a shim that is dead by now.
async fn kill_with_shims(
    cluster: &mut Cluster,
    number: usize,
    ids: &[String],
) -> Result<Vec<String>> {
    let signs = cluster.ledger.signs();
    let mut firsts = cluster.on_node(number, ids).await?;
    firsts.retain(|id| !signs.iter().any(|sign| sign.task == *id && sign.attempt > 1));
    ensure!(!firsts.is_empty(), "node {number} runs nothing");
    let killed = cluster.nodes[number].kill_with_shims()?;
    ensure!(killed >= firsts.len(), "{killed} shims of {} tasks", firsts.len());
    Ok(firsts)
}

/// A store that is back before the deadline costs nothing.
async fn kill_of_the_store(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(20, Work::of(12)).await?;
    cluster.wait_began(&ids).await?;
    for _ in 0..2 {
        cluster.store.kill()?;
        cluster.store.restart().await?;
        pass(TTL / 5).await?;
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 20 && tally.attempts == 20, "tasks were disturbed: {tally:?}");
    Ok(())
}

/// The price of never running twice: everything stops, and begins again when the store is back.
async fn store_away_for_longer_than_the_lease(scene: &Scene) -> Result<()> {
    let options = ClusterOptions { lane: Lane::Windlass, ..Default::default() };
    let mut cluster = Cluster::start(scene, &options).await?;
    let ids = cluster.submit(20, Work::of(LONG).then(1)).await?;
    cluster.wait_began(&ids).await?;
    cluster.store.kill()?;
    pass(2 * TTL).await?;
    let silent_since = cluster.ledger.signs().len();
    pass(TTL / 2).await?;
    ensure!(cluster.ledger.signs().len() == silent_since, "tasks run without a lease");
    cluster.store.restart().await?;
    cluster.wait_attempts(&ids, 2).await?;
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 20, "{tally:?}");
    Ok(())
}
