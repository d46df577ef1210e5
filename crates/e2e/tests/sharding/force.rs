//! Instances that do not give up what they are asked for: what is taken from them, when, and what is
//! not.

use anyhow::{Result, ensure};
use e2e::sharding::arena::SETTLE_WAIT;
use e2e::sharding::{Arena, Manner, Puppet, Role};
use e2e::wait::{Level, pass, wait_for};
use serde_json::{Value, json};

use crate::stage::{Stage, cases};

cases! {
    beside: [
        what_an_instance_has_seen_and_keeps_is_taken_after_its_deadline,
        what_nobody_is_known_to_have_seen_stays_and_is_told,
        behind_a_fence_what_is_kept_is_taken_after_its_deadline,
    ],
    alone: [
        a_fence_that_cannot_be_installed_is_told,
    ],
}

const OBJECTS: usize = 12;

/// One instance that has everything and keeps it, and one that is to get some.
async fn stubborn(
    stage: &Stage,
    name: &str,
    changes: &Value,
    manner: Manner,
) -> Result<(Arena, [Puppet; 2])> {
    let arena = stage.arena(name, changes).await?;
    arena.populate("site", OBJECTS).await?;
    let role = Role { manner, ..Role::default() };
    let a = Puppet::join_as(&stage.world, &arena, "a-0", &role).await?;
    arena.wait_spread(&["a-0"]).await?;
    if changes["fence"] != "Off" && manner == Manner::Ignores {
        arena.wait_reason("Fenced", "Active").await?;
    }
    let b = Puppet::join(&stage.world, &arena, "b-0").await?;
    Ok((arena, [a, b]))
}

fn quick_drain(fence: &str) -> Value {
    json!({"fence": fence, "handover": {"drainTimeoutSeconds": 2, "graceSeconds": 1}})
}

async fn what_an_instance_has_seen_and_keeps_is_taken_after_its_deadline(
    stage: &Stage,
) -> Result<()> {
    let manner = Manner::SeesAndKeeps;
    let (arena, [_a, _b]) = stubborn(stage, "seen", &quick_drain("Off"), manner).await?;
    let owners = arena.wait_spread(&["a-0", "b-0"]).await?;
    let taken: Vec<&str> =
        owners.iter().filter(|(_, owner)| *owner == "b-0").map(|(name, _)| name.as_str()).collect();
    // Where much is told at once, some of it is not.
    stage.wait_event(&taken, "did not give it up in time").await?;
    arena.judge(&stage.world).await?;
    arena.close().await
}

/// Nobody knows whether its owner has stopped, and nothing would refuse it: it stays.
async fn what_nobody_is_known_to_have_seen_stays_and_is_told(stage: &Stage) -> Result<()> {
    let (arena, [a, _b]) = stubborn(stage, "unseen", &quick_drain("Off"), Manner::Ignores).await?;
    let message = arena.wait_reason("Degraded", "DrainOverdue").await?;
    ensure!(message.contains("site-"), "{message}");
    // Longer than it would take if the instance had seen it.
    pass(std::time::Duration::from_secs(7)).await?;
    let standings = arena.standings().await?;
    let taken = standings.values().filter(|it| it.shard.as_deref() != Some("a-0")).count();
    ensure!(taken == 0, "{standings:?}");
    a.fall_silent();
    let _a = Puppet::rejoin(&stage.world, &arena, "a-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    arena.wait_reason("Degraded", "AsExpected").await?;
    arena.judge(&stage.world).await?;
    arena.close().await
}

/// A sharder without rights to admission policies says so, and takes by force only what its owner is
/// known to have seen.
async fn a_fence_that_cannot_be_installed_is_told(stage: &mut Stage) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    let role = "windlass-sharder-fence";
    let rules = kubectl.json(&["get", "clusterrole", role]).await?["rules"].clone();
    let patch = |rules: &Value| format!("--patch={}", json!({"rules": rules}));
    let none = patch(&json!([]));
    kubectl.run(&["patch", "clusterrole", role, "--type=merge", &none]).await?;
    let manner = Manner::SeesAndKeeps;
    let (arena, [_a, _b]) = stubborn(stage, "fenceless", &quick_drain("Managed"), manner).await?;
    let message = arena.wait_reason("Fenced", "NotInstalled").await?;
    ensure!(message.contains("forbidden") || message.contains("not allowed"), "{message}");
    arena.wait_spread(&["a-0", "b-0"]).await?;
    arena.judge(&stage.world).await?;
    let kubectl = stage.world.server.kubectl();
    kubectl.run(&["patch", "clusterrole", role, "--type=merge", &patch(&rules)]).await?;
    arena.close().await
}

/// A fence is trusted half a minute after it was installed.
async fn behind_a_fence_what_is_kept_is_taken_after_its_deadline(stage: &Stage) -> Result<()> {
    let (arena, [_a, _b]) =
        stubborn(stage, "fenced-off", &quick_drain("Managed"), Manner::Ignores).await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    wait_for("nothing to be overdue", SETTLE_WAIT, async || {
        let moving = arena.ring().await?.status.unwrap_or_default().moving;
        Ok(if moving == 0 { Level::Reached(()) } else { Level::Below(moving.to_string()) })
    })
    .await?;
    arena.judge(&stage.world).await?;
    arena.close().await
}
