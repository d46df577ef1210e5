//! Everything that can happen to instances, sharders and the API server between them: objects end up
//! with somebody who works on them, and the history shows that no two ever did.

use anyhow::{Result, ensure};
use e2e::sharding::InstanceOptions;
use e2e::sharding::arena::{LEASE, LEASE_PATIENT, SETTLE_WAIT};
use e2e::tasks::link::{Link, Target};
use e2e::wait::{Level, pass, wait_for};
use kube::api::DeleteParams;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::crew::{Crew, only_moves, patient, slow};
use crate::stage::{Stage, cases};

cases! {
    beside: [
        an_instance_is_killed,
        an_instance_is_killed_and_back_in_time,
        an_instance_is_paused_and_wakes_as_a_former_owner,
        an_instance_dies_while_it_drains,
        a_watch_hangs_while_renewals_pass,
        members_flap,
        a_lease_is_deleted_under_its_instance,
    ],
    alone: [
        the_store_is_slow,
        the_api_server_restarts,
        the_leader_is_killed_in_the_middle_of_a_move,
        the_leader_is_paused_in_the_middle_of_a_move,
    ],
}

const PAIR: [&str; 2] = ["a-0", "b-0"];

/// Longer than the sharder's own Lease (15 s).
const LEADER_PAUSE: std::time::Duration = std::time::Duration::from_secs(18);

async fn an_instance_is_killed(stage: &Stage) -> Result<()> {
    let (mut crew, before) = Crew::assemble_with(stage, "killed", &json!({}), &victim()).await?;
    crew.keep_busy("a-0").await?;
    crew.kill("a-0")?;
    let after = crew.settle().await?;
    only_moves(&before, &after, |from, _| from == "a-0")?;
    crew.finish(stage).await?;
    Ok(())
}

/// P5, without a word: the same pod takes its Lease up at once.
async fn an_instance_is_killed_and_back_in_time(stage: &Stage) -> Result<()> {
    let pair = PAIR.map(|id| (id, patient()));
    let (mut crew, before) = Crew::assemble_with(stage, "back", &json!({}), &pair).await?;
    crew.kill("a-0")?;
    crew.join_as(stage, "a-0", &patient()).await?;
    crew.arena.wait_state("a-0", "ready", SETTLE_WAIT).await?;
    pass(LEASE_PATIENT * 2).await?;
    let after = crew.settle().await?;
    ensure!(before == after, "objects moved");
    crew.finish(stage).await?;
    Ok(())
}

/// SIGSTOP for 3 D. Awake again it takes no further step and ends; what it has sent is refused.
async fn an_instance_is_paused_and_wakes_as_a_former_owner(stage: &Stage) -> Result<()> {
    let (mut crew, before) = Crew::assemble_with(stage, "paused", &json!({}), &victim()).await?;
    crew.keep_busy("a-0").await?;
    crew.pause("a-0").await?;
    pass(LEASE_PATIENT * 3).await?;
    let after = crew.arena.wait_spread(&["b-0"]).await?;
    only_moves(&before, &after, |from, _| from == "a-0")?;
    crew.member("a-0")?.resume()?;
    crew.wait_end("a-0").await?;
    crew.finish(stage).await?;
    Ok(())
}

async fn an_instance_dies_while_it_drains(stage: &Stage) -> Result<()> {
    let alone = [("a-0", slow(patient()))];
    let (mut crew, _) = Crew::assemble_with(stage, "mid-drain", &patience(), &alone).await?;
    crew.keep_busy("a-0").await?;
    crew.join(stage, "b-0").await?;
    wait_draining(&crew).await?;
    crew.kill("a-0")?;
    crew.settle().await?;
    crew.finish(stage).await?;
    Ok(())
}

/// The instance learns of its drains by its Lease, and gives up what its watch never showed: nobody else
/// would take it.
async fn a_watch_hangs_while_renewals_pass(stage: &Stage) -> Result<()> {
    let server = std::net::SocketAddr::from(([127, 0, 0, 1], stage.world.server.port()));
    let (link, port) = Link::near(Target::Outside(server))?;
    let options = InstanceOptions { port: Some(port), ..patient() };
    let alone = [("a-0", options)];
    let unforced = json!({"handover": {"force": "Never"}});
    let (mut crew, before) = Crew::assemble_with(stage, "hung", &unforced, &alone).await?;
    link.hang_connections();
    crew.join(stage, "b-0").await?;
    let after = crew.settle().await?;
    only_moves(&before, &after, |_, to| to == "b-0")?;
    crew.finish(stage).await?;
    Ok(())
}

async fn members_flap(stage: &Stage) -> Result<()> {
    let (mut crew, _) = Crew::assemble(stage, "flapping", &json!({}), &PAIR).await?;
    for round in 0..4 {
        let id = PAIR[round % PAIR.len()];
        if round < PAIR.len() {
            crew.kill(id)?;
        } else {
            crew.leave(id).await?;
        }
        crew.join_as(stage, "c-0", &patient()).await?;
        crew.join(stage, id).await?;
        pass(LEASE).await?;
        crew.kill("c-0")?;
    }
    crew.finish(stage).await?;
    Ok(())
}

async fn a_lease_is_deleted_under_its_instance(stage: &Stage) -> Result<()> {
    let (mut crew, before) = Crew::assemble_with(stage, "robbed", &json!({}), &victim()).await?;
    crew.arena.leases().delete("a-0", &DeleteParams::default()).await?;
    crew.wait_end("a-0").await?;
    let after = crew.settle().await?;
    only_moves(&before, &after, |from, _| from == "a-0")?;
    crew.finish(stage).await?;
    Ok(())
}

/// Nobody is declared dead while nothing can be written; instances stop at their own deadline.
async fn the_store_is_slow(stage: &mut Stage) -> Result<()> {
    let pair = PAIR.map(|id| (id, patient()));
    let (mut crew, _) = Crew::assemble_with(stage, "slow", &json!({}), &pair).await?;
    stage.world.store.process()?.signal(Signal::STOP)?;
    let stopped = Instant::now();
    for id in PAIR {
        crew.wait_end(id).await?;
    }
    // Longer than anybody may be silent who is to keep its objects.
    pass((LEASE_PATIENT * 2 + LEASE).saturating_sub(stopped.elapsed())).await?;
    stage.world.store.process()?.signal(Signal::CONT)?;
    for id in PAIR {
        crew.join_as(stage, id, &patient()).await?;
    }
    revive(stage, &mut crew).await?;
    crew.finish(stage).await?;
    Ok(())
}

async fn the_api_server_restarts(stage: &mut Stage) -> Result<()> {
    let pair = PAIR.map(|id| (id, patient()));
    let (mut crew, _) = Crew::assemble_with(stage, "restarted", &json!({}), &pair).await?;
    stage.world.server.kill()?;
    stage.world.server.restart().await?;
    revive(stage, &mut crew).await?;
    crew.finish(stage).await?;
    Ok(())
}

async fn the_leader_is_killed_in_the_middle_of_a_move(stage: &mut Stage) -> Result<()> {
    let pair = PAIR.map(|id| (id, slow(InstanceOptions::default())));
    let (mut crew, before) = Crew::assemble_with(stage, "regicide", &patience(), &pair).await?;
    stage.run(2).await?;
    crew.keep_busy("a-0").await?;
    crew.join(stage, "c-0").await?;
    wait_draining(&crew).await?;
    stage.sharders.remove(0).kill()?;
    let after = crew.settle().await?;
    only_moves(&before, &after, |_, to| to == "c-0")?;
    crew.finish(stage).await?;
    Ok(())
}

/// It wakes as one of two, and what it still sends harms nobody.
async fn the_leader_is_paused_in_the_middle_of_a_move(stage: &mut Stage) -> Result<()> {
    let pair = PAIR.map(|id| (id, slow(InstanceOptions::default())));
    let (mut crew, before) = Crew::assemble_with(stage, "usurped", &patience(), &pair).await?;
    stage.run(2).await?;
    crew.keep_busy("a-0").await?;
    crew.join(stage, "c-0").await?;
    wait_draining(&crew).await?;
    stage.sharders[0].pause().await?;
    pass(LEADER_PAUSE).await?;
    let after = crew.settle().await?;
    only_moves(&before, &after, |_, to| to == "c-0")?;
    stage.sharders[0].resume()?;
    crew.leave("c-0").await?;
    crew.settle().await?;
    crew.finish(stage).await?;
    stage.sharders.remove(0).stop().await
}

/// Two at work. Something happens to the first.
fn victim() -> [(&'static str, InstanceOptions); 2] {
    [("a-0", slow(patient())), ("b-0", slow(InstanceOptions::default()))]
}

/// Time enough to finish what was begun, so that a move has a middle.
fn patience() -> Value {
    json!({"handover": {"drainTimeoutSeconds": 20, "graceSeconds": 10}})
}

/// Waits until something is to be given up.
async fn wait_draining(crew: &Crew) -> Result<()> {
    wait_for("objects to drain", SETTLE_WAIT, async || {
        let standings = crew.arena.standings().await?;
        let is_draining = standings.values().any(|standing| standing.is_draining);
        Ok(if is_draining { Level::Reached(()) } else { Level::Below("none".to_owned()) })
    })
    .await
}

/// Starts those who stopped themselves, until nobody has for a while.
async fn revive(stage: &Stage, crew: &mut Crew) -> Result<()> {
    wait_for("the instances to stay", SETTLE_WAIT, async || {
        let ended = crew.restart_ended(stage).await?;
        if !ended.is_empty() {
            return Ok(Level::Below(format!("{ended:?} ended")));
        }
        pass(LEASE * 2).await?;
        let ended = crew.restart_ended(stage).await?;
        let is_calm = ended.is_empty();
        Ok(if is_calm { Level::Reached(()) } else { Level::Below(format!("{ended:?} ended")) })
    })
    .await
}
