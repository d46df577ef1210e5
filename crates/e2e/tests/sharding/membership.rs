//! Who is there, by real Leases that the test itself keeps: states and their times, release, hold,
//! loss, conflict, and what the sharder does about each.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::sharding::arena::{LEASE, LEASE_PATIENT, LEASE_STEADY, SETTLE_WAIT};
use e2e::sharding::{Arena, Puppet, Role};
use e2e::wait::{Level, pass, wait_for};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::{Stage, cases};

cases! {
    beside: [
        a_renewal_in_time_moves_nothing,
        a_deleted_lease_is_made_anew_and_its_objects_moved,
        an_id_in_two_namespaces_is_the_elders,
        a_bad_weight_counts_as_the_usual_one_and_none_empties,
        forgotten_leases_are_removed,
        an_id_that_another_process_has_is_refused,
        a_lease_of_another_ring_is_refused,
    ],
    alone: [
        silence_makes_unknown_then_dead_in_time_and_the_dead_come_back,
        who_releases_its_lease_loses_its_objects_at_once,
        who_will_be_back_keeps_its_objects_until_its_time_is_over,
    ],
}

/// How exactly states are told.
const TOLERANCE: Duration = Duration::from_millis(500);

/// Enough that two instances have some each.
const OBJECTS: usize = 12;

/// Two instances with objects each. The first has a Lease of this duration.
async fn pair(stage: &Stage, name: &str, lease: Duration) -> Result<(Arena, [Puppet; 2])> {
    let arena = stage.arena(name, &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let role = Role { lease, ..Role::default() };
    let a = Puppet::join_as(&stage.world, &arena, "a-0", &role).await?;
    let b = Puppet::join(&stage.world, &arena, "b-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    Ok((arena, [a, b]))
}

async fn finish(stage: &Stage, arena: &Arena) -> Result<()> {
    arena.judge(&stage.world).await?;
    arena.close().await
}

async fn silence_makes_unknown_then_dead_in_time_and_the_dead_come_back(
    stage: &Stage,
) -> Result<()> {
    let (arena, [a, _b]) = pair(stage, "silence", LEASE).await?;
    a.fall_silent();
    let renewed = renewed(&arena, "a-0").await?;
    let wait = LEASE * 2 + SETTLE_WAIT;
    arena.wait_state("a-0", "unknown", wait).await?;
    within(renewed, LEASE)?;
    arena.wait_state("a-0", "dead", wait).await?;
    within(renewed, LEASE * 2)?;
    arena.wait_spread(&["b-0"]).await?;
    stage.wait_event(&[&arena.name], "instance a-0 is dead").await?;
    wait_free(&arena, "a-0").await?;
    let _a = Puppet::rejoin(&stage.world, &arena, "a-0").await?;
    arena.wait_state("a-0", "ready", SETTLE_WAIT).await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    finish(stage, &arena).await
}

/// When the Lease was last renewed, by its own word.
async fn renewed(arena: &Arena, id: &str) -> Result<jiff::Timestamp> {
    let lease = arena.leases().get(id).await?;
    let renewed = lease.spec.and_then(|spec| spec.renew_time).context("it was renewed")?;
    Ok(renewed.0)
}

fn within(renewed: jiff::Timestamp, expected: Duration) -> Result<()> {
    let since = jiff::Timestamp::now().duration_since(renewed);
    let since = Duration::try_from(since).context("time goes on")?;
    let is_exact = (expected..expected + TOLERANCE).contains(&since);
    ensure!(is_exact, "{since:?} after its last renewal, not {expected:?}");
    Ok(())
}

async fn a_renewal_in_time_moves_nothing(stage: &Stage) -> Result<()> {
    let (arena, [a, _b]) = pair(stage, "late", LEASE_PATIENT).await?;
    let before = arena.standings().await?;
    let moves = arena.judge(&stage.world).await?.moves();
    a.fall_silent();
    arena.wait_state("a-0", "unknown", SETTLE_WAIT).await?;
    let _a = Puppet::rejoin(&stage.world, &arena, "a-0").await?;
    arena.wait_state("a-0", "ready", SETTLE_WAIT).await?;
    pass(LEASE_PATIENT).await?;
    ensure!(arena.standings().await? == before, "objects moved");
    let moved = arena.judge(&stage.world).await?.moves() - moves;
    ensure!(moved == 0, "{moved} objects moved and came back");
    arena.close().await
}

async fn who_releases_its_lease_loses_its_objects_at_once(stage: &Stage) -> Result<()> {
    let (arena, [a, _b]) = pair(stage, "released", LEASE_STEADY).await?;
    a.fall_silent();
    let began = Instant::now();
    patch_lease(&arena, "a-0", &json!({"spec": {"holderIdentity": null}})).await?;
    arena.wait_spread(&["b-0"]).await?;
    ensure!(began.elapsed() < LEASE_STEADY, "took {:?}", began.elapsed());
    finish(stage, &arena).await
}

async fn who_will_be_back_keeps_its_objects_until_its_time_is_over(stage: &Stage) -> Result<()> {
    let (arena, [a, _b]) = pair(stage, "hold", LEASE).await?;
    let before = arena.standings().await?;
    a.fall_silent();
    let hold = LEASE * 4;
    let mark = json!({"windlass.dev/hold-seconds": hold.as_secs().to_string()});
    let renewed = format!("{:.6}", jiff::Timestamp::now());
    let change = json!({"metadata": {"annotations": mark}, "spec": {"renewTime": renewed}});
    let began = Instant::now();
    patch_lease(&arena, "a-0", &change).await?;
    arena.wait_state("a-0", "restarting", SETTLE_WAIT).await?;
    wait_for("something to move", SETTLE_WAIT, async || {
        let has_moved = arena.standings().await? != before;
        Ok(if has_moved { Level::Reached(()) } else { Level::Below("nothing".to_owned()) })
    })
    .await?;
    ensure!(began.elapsed() >= hold, "moved after {:?}", began.elapsed());
    arena.wait_spread(&["b-0"]).await?;
    finish(stage, &arena).await
}

async fn a_deleted_lease_is_made_anew_and_its_objects_moved(stage: &Stage) -> Result<()> {
    let (arena, [a, _b]) = pair(stage, "deleted", LEASE).await?;
    let began = Instant::now();
    arena.leases().delete("a-0", &DeleteParams::default()).await?;
    a.wait_lost().await?;
    arena.wait_spread(&["b-0"]).await?;
    ensure!(began.elapsed() >= LEASE, "moved after {:?}", began.elapsed());
    let lease = arena.leases().get("a-0").await.context("it was made anew")?;
    ensure!(lease.labels().get(&arena.names.ring_label()) == Some(&arena.name));
    finish(stage, &arena).await
}

async fn an_id_in_two_namespaces_is_the_elders(stage: &Stage) -> Result<()> {
    let (arena, [_a, _b]) = pair(stage, "elder", LEASE_STEADY).await?;
    let before = arena.standings().await?;
    stage.world.namespace("younger").await?;
    let mut younger = arena.leases().get("a-0").await?;
    younger.metadata = serde_json::from_value(json!({
        "name": "a-0", "namespace": "younger",
        "labels": {arena.names.ring_label(): arena.name},
    }))?;
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
        Api::namespaced(arena.client.clone(), "younger");
    leases.create(&PostParams::default(), &younger).await?;
    wait_for("the younger Lease to be in conflict", SETTLE_WAIT, async || {
        let lease = leases.get("a-0").await?;
        let state = lease.labels().get(&arena.names.state_label()).cloned();
        Ok(if state.as_deref() == Some("conflict") {
            Level::Reached(())
        } else {
            Level::Below(format!("{state:?}"))
        })
    })
    .await?;
    stage.wait_event(&[&arena.name], "younger").await?;
    ensure!(arena.standings().await? == before, "objects moved");
    finish(stage, &arena).await
}

async fn a_bad_weight_counts_as_the_usual_one_and_none_empties(stage: &Stage) -> Result<()> {
    let arena = stage.arena("weights", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let weight = arena.names.weight_label().context("the dialect has weights")?;
    let bad = Role { labels: json!({weight.as_str(): "plenty"}), ..Role::default() };
    let _a = Puppet::join_as(&stage.world, &arena, "a-0", &bad).await?;
    let _b = Puppet::join(&stage.world, &arena, "b-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    stage.wait_event(&[&arena.name], "virtual-nodes label of a-0").await?;
    let none = json!({"metadata": {"labels": {weight: "0"}}});
    patch_lease(&arena, "b-0", &none).await?;
    arena.wait_spread(&["a-0"]).await?;
    finish(stage, &arena).await
}

async fn forgotten_leases_are_removed(stage: &Stage) -> Result<()> {
    let arena = stage.arena("forgotten", &json!({})).await?;
    let lease = json!({
        "metadata": {"name": "z-0", "labels": {arena.names.ring_label(): arena.name}},
        "spec": {"leaseDurationSeconds": 2, "renewTime": "2020-01-01T00:00:00.000000Z"},
    });
    let lease = serde_json::from_value(lease)?;
    arena.leases().create(&PostParams::default(), &lease).await?;
    wait_for("the Lease to be gone", SETTLE_WAIT, async || {
        Ok(match arena.leases().get_opt("z-0").await? {
            None => Level::Reached(()),
            Some(lease) => Level::Below(format!("{:?}", lease.labels())),
        })
    })
    .await?;
    finish(stage, &arena).await
}

/// Another process renews the Lease that this one asks for.
async fn an_id_that_another_process_has_is_refused(stage: &Stage) -> Result<()> {
    let mut arena = stage.arena("in-use", &json!({})).await?;
    let _a = Puppet::join(&stage.world, &arena, "a-0").await?;
    let mut second = stage.world.instance(&mut arena, "a-0").await?;
    ensure!(!second.wait_end(SETTLE_WAIT).await?.success(), "it has ended well");
    let log = second.log()?;
    ensure!(log.contains("another process with the same id is alive"), "{log}");
    finish(stage, &arena).await
}

async fn a_lease_of_another_ring_is_refused(stage: &Stage) -> Result<()> {
    let mut arena = stage.arena("this-ring", &json!({})).await?;
    let lease = json!({
        "metadata": {"name": "a-0", "labels": {arena.names.ring_label(): "another-ring"}},
        "spec": {"holderIdentity": "a-0", "leaseDurationSeconds": 2},
    });
    let lease = serde_json::from_value(lease)?;
    arena.leases().create(&PostParams::default(), &lease).await?;
    let mut instance = stage.world.instance(&mut arena, "a-0").await?;
    ensure!(!instance.wait_end(SETTLE_WAIT).await?.success(), "it has ended well");
    let log = instance.log()?;
    ensure!(log.contains("another-ring"), "{log}");
    finish(stage, &arena).await
}

/// Waits until an instance may take its Lease again.
async fn wait_free(arena: &Arena, id: &str) -> Result<()> {
    wait_for(&format!("the Lease of {id} to be free"), SETTLE_WAIT, async || {
        let holder = arena.leases().get(id).await?.spec.and_then(|spec| spec.holder_identity);
        Ok(match holder.as_deref() {
            None | Some("") => Level::Reached(()),
            Some(holder) => Level::Below(holder.to_owned()),
        })
    })
    .await
}

async fn patch_lease(arena: &Arena, id: &str, change: &Value) -> Result<()> {
    let params = PatchParams::default();
    arena.leases().patch(id, &params, &Patch::Merge(change)).await.context("patch a Lease")?;
    Ok(())
}
