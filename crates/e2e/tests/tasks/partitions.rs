//! Nodes that lose the others: one side stops before the other begins.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::scene::{Scene, bound};
use e2e::tasks::cluster::{Cluster, ClusterOptions, TTL};
use e2e::tasks::ledger::Work;
use e2e::tasks::link::Link;
use e2e::wait::pass;
use tasks::client;
use tasks::service::refusal::Kind;

use crate::stage::cases;

/// Longer than a partition, in half seconds.
const LONG: u32 = 120;

/// Times that a link fails and heals, by default and at length.
const FLAPS: (usize, usize) = (4, 40);

/// Times that every connection is broken.
const BREAKS: (usize, usize) = (15, 200);

/// A network across a continent.
const DELAY: Duration = Duration::from_millis(30);

cases! {
    partition_of_an_owner,
    one_way_partition,
    flapping_each_half_ttl,
    slow_and_breaking_links,
}

async fn partition_of_an_owner(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(18, Work::of(LONG).then(4)).await?;
    cluster.wait_began(&ids).await?;
    let mine = cluster.on_node(0, &ids).await?;
    ensure!(!mine.is_empty(), "the first node runs nothing");
    let client = cluster.nodes[0].client().await?;
    let task = mine[0].parse().context("an id")?;
    cluster.isolate(0);
    // Ask the other side from here on.
    cluster.nodes.rotate_left(1);
    cluster.wait_attempts(&mine, 2).await?;
    let alone = client.cancel(task).await;
    let is_refused = matches!(&alone, Err(client::Error::Refused(refusal))
        if matches!(refusal.kind, Kind::Unavailable | Kind::DeadlineExceeded));
    ensure!(is_refused, "a node that is cut off answers: {alone:?}");
    cluster.rejoin(0);
    cluster.stop_long_ones(&ids).await?;
    cluster.judge(scene).await?;
    Ok(())
}

/// Its keep-alives arrive and their answers do not: the lease lives on, and the node must not.
async fn one_way_partition(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(18, Work::of(LONG).then(4)).await?;
    cluster.wait_began(&ids).await?;
    let mine = cluster.on_node(0, &ids).await?;
    cluster.store_links[0].cut_back();
    pass(2 * TTL).await?;
    let before = first_signs(&cluster, &mine);
    pass(TTL / 2).await?;
    ensure!(first_signs(&cluster, &mine) == before, "commands of a node without answers live on");
    cluster.store_links[0].heal();
    cluster.wait_attempts(&mine, 2).await?;
    cluster.stop_long_ones(&ids).await?;
    cluster.judge(scene).await?;
    Ok(())
}

/// What the first attempts of these have said of themselves so far; later ones run elsewhere.
fn first_signs(cluster: &Cluster, ids: &[String]) -> usize {
    let signs = cluster.ledger.signs();
    signs.iter().filter(|sign| sign.attempt == 1 && ids.contains(&sign.task)).count()
}

async fn flapping_each_half_ttl(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    let ids = cluster.submit(18, Work::of(12)).await?;
    cluster.wait_began(&ids).await?;
    for _ in 0..bound(FLAPS.0, FLAPS.1) {
        cluster.isolate(0);
        pass(TTL / 2).await?;
        cluster.rejoin(0);
        pass(TTL / 2).await?;
    }
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == 18, "{tally:?}");
    Ok(())
}

async fn slow_and_breaking_links(scene: &Scene) -> Result<()> {
    let mut cluster = Cluster::start(scene, &ClusterOptions::default()).await?;
    cluster.store_links.iter().for_each(|link| link.slow(DELAY));
    for round in 0..bound(BREAKS.0, BREAKS.1) {
        if round % 5 == 0 {
            cluster.submit(6, Work::of(1)).await?;
        }
        pass(Duration::from_millis(400)).await?;
        cluster.store_links.iter().for_each(Link::break_connections);
    }
    cluster.store_links.iter().for_each(Link::heal);
    let tally = cluster.judge(scene).await?;
    ensure!(tally.complete == tally.tasks, "{tally:?}");
    Ok(())
}
