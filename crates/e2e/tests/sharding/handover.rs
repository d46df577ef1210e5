//! Instances that come, go and are rolled over, as real processes: what moves, what stays, and that
//! no two ever worked on one object.

use anyhow::{Result, ensure};
use e2e::sharding::arena::SETTLE_WAIT;
use e2e::sharding::{InstanceOptions, Puppet};
use e2e::wait::{Level, wait_for};
use kube::api::DeleteParams;
use serde_json::json;

use crate::crew::{Crew, OBJECTS, only_moves};
use crate::stage::{Stage, cases};

cases! {
    beside: [
        who_joins_takes_and_who_leaves_gives_and_nothing_else_moves,
        from_one_to_five,
        a_rolling_restart_with_hold_moves_nothing,
        a_name_used_again_returns_to_its_instance,
    ],
    alone: [
        without_a_sharder_objects_are_worked_on,
    ],
    with_python: [
        an_instance_in_python_joins_works_and_leaves,
    ],
}

const PAIR: [&str; 2] = ["a-0", "b-0"];

async fn who_joins_takes_and_who_leaves_gives_and_nothing_else_moves(stage: &Stage) -> Result<()> {
    let (mut crew, of_two) = Crew::assemble(stage, "join-leave", &json!({}), &PAIR).await?;
    crew.join(stage, "c-0").await?;
    let of_three = crew.settle().await?;
    let count = only_moves(&of_two, &of_three, |_, to| to == "c-0")?;
    ensure!(count <= OBJECTS / 2, "{count} moved");
    crew.leave("a-0").await?;
    let rest = crew.settle().await?;
    only_moves(&of_three, &rest, |from, _| from == "a-0")?;
    crew.finish(stage).await?;
    Ok(())
}

async fn from_one_to_five(stage: &Stage) -> Result<()> {
    let (mut crew, _) = Crew::assemble(stage, "one-to-five", &json!({}), &["a-0"]).await?;
    for id in ["a-1", "a-2", "a-3", "a-4"] {
        crew.join(stage, id).await?;
    }
    crew.settle().await?;
    crew.finish(stage).await?;
    Ok(())
}

async fn a_rolling_restart_with_hold_moves_nothing(stage: &Stage) -> Result<()> {
    // At its end the ring waits for as long: an instance that holds its place may come back.
    let flags = vec!["--hold=20".to_owned()];
    let options = InstanceOptions { flags, ..InstanceOptions::default() };
    let pair = PAIR.map(|id| (id, options.clone()));
    let (mut crew, before) = Crew::assemble_with(stage, "rolling", &json!({}), &pair).await?;
    let moves = crew.arena.judge(&stage.world).await?.moves();
    for id in PAIR {
        crew.leave(id).await?;
        crew.arena.wait_state(id, "restarting", SETTLE_WAIT).await?;
        crew.join_as(stage, id, &options).await?;
        crew.arena.wait_state(id, "ready", SETTLE_WAIT).await?;
    }
    let after = crew.settle().await?;
    ensure!(before == after, "objects moved");
    let history = crew.finish(stage).await?;
    ensure!(history.moves() == moves, "objects moved and came back");
    Ok(())
}

/// P6: what is assigned is worked on, also by an instance that was restarted meanwhile.
async fn without_a_sharder_objects_are_worked_on(stage: &mut Stage) -> Result<()> {
    let (mut crew, before) = Crew::assemble(stage, "headless", &json!({}), &PAIR).await?;
    stage.run(0).await?;
    crew.kill("a-0")?;
    crew.join(stage, "a-0").await?;
    for name in before.keys() {
        let child = e2e::sharding::child_of(name);
        crew.arena.config_maps().delete(&child, &DeleteParams::default()).await?;
    }
    crew.arena.wait_worked().await?;
    stage.run(1).await?;
    crew.finish(stage).await?;
    Ok(())
}

/// No uid goes into the key.
async fn a_name_used_again_returns_to_its_instance(stage: &Stage) -> Result<()> {
    let (mut crew, before) = Crew::assemble(stage, "reused", &json!({}), &PAIR).await?;
    for name in before.keys() {
        crew.arena.secrets().delete(name, &DeleteParams::default()).await?;
    }
    // There is no garbage collector in this cluster.
    for name in before.keys() {
        let child = e2e::sharding::child_of(name);
        crew.arena.config_maps().delete(&child, &DeleteParams::default()).await?;
    }
    crew.arena.populate("site", OBJECTS).await?;
    let after = crew.settle().await?;
    ensure!(before == after, "went elsewhere: {before:?} {after:?}");
    crew.finish(stage).await?;
    Ok(())
}

async fn an_instance_in_python_joins_works_and_leaves(stage: &Stage) -> Result<()> {
    let arena = stage.arena("python", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = Puppet::join(&stage.world, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    let python = stage.world.python_instance(&arena, "p-0").await?;
    let owners = arena.wait_spread(&["a-0", "p-0"]).await?;
    let own = owners.iter().filter(|(_, owner)| *owner == "p-0").map(|(name, _)| name);
    let own: Vec<&String> = own.collect();
    wait_for("it to have worked on what it has", SETTLE_WAIT, async || {
        let log = python.log()?;
        let lacking = own.iter().filter(|name| !log.contains(&format!("\"worked\": \"{name}\"")));
        let count = lacking.count();
        Ok(if count == 0 { Level::Reached(()) } else { Level::Below(format!("{count} lack it")) })
    })
    .await?;
    let status = python.stop().await?;
    ensure!(status.success(), "it ended with {status}");
    arena.wait_spread(&["a-0"]).await?;
    arena.judge(&stage.world).await?;
    arena.close().await
}
