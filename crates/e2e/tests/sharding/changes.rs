//! Rings, objects and labels that change under the sharder's hands, with instances that the test
//! plays.

use anyhow::{Context, Result, ensure};
use e2e::sharding::arena::{LEASE, SETTLE_WAIT};
use e2e::sharding::{Arena, Persona, Puppet, Role};
use e2e::wait::{Level, wait_for};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sharding::kubernetes::Ring;
use tokio::time::Instant;

use crate::stage::{Stage, cases};

cases! {
    beside: [
        a_kind_that_leaves_is_stripped,
        objects_being_deleted_are_moved_like_others,
        rings_that_share_a_kind_both_label_it,
        without_a_fence_a_stolen_label_is_mended_and_told,
    ],
    alone: [],
}

const OBJECTS: usize = 12;

async fn join(stage: &Stage, arena: &Arena, id: &str) -> Result<Puppet> {
    Puppet::join(&stage.world, arena, id).await
}

async fn finish(stage: &Stage, arena: &Arena) -> Result<()> {
    arena.judge(&stage.world).await?;
    arena.close().await
}

async fn a_kind_that_leaves_is_stripped(stage: &Stage) -> Result<()> {
    let both = json!({"resources": [{"resource": "secrets"}, {"resource": "configmaps"}]});
    let arena = stage.arena("kinds", &both).await?;
    arena.populate("site", OBJECTS).await?;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "stays"}}))?;
    arena.config_maps().create(&PostParams::default(), &map).await?;
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    wait_shard_of_map(&arena, "stays", Some("a-0")).await?;
    let rings: Api<DynamicObject> =
        Api::all_with(arena.client.clone(), &ApiResource::erase::<Ring>(&()));
    let fewer = Patch::Merge(json!({"spec": {"resources": [{"resource": "configmaps"}]}}));
    rings.patch(&arena.name, &PatchParams::default(), &fewer).await?;
    wait_for("the Secrets to have no labels", SETTLE_WAIT, async || {
        let standings = arena.standings().await?;
        let labelled = standings.values().filter(|it| it.shard.is_some() || it.is_draining).count();
        Ok(if labelled == 0 { Level::Reached(()) } else { Level::Below(format!("{labelled}")) })
    })
    .await?;
    wait_shard_of_map(&arena, "stays", Some("a-0")).await?;
    finish(stage, &arena).await
}

async fn wait_shard_of_map(arena: &Arena, name: &str, wanted: Option<&str>) -> Result<()> {
    let label = arena.names.shard_label();
    wait_for(&format!("{name} to be {wanted:?}'s"), SETTLE_WAIT, async || {
        let map = arena.config_maps().get_metadata(name).await?;
        let shard = map.labels().get(&label).map(String::as_str);
        Ok(if shard == wanted { Level::Reached(()) } else { Level::Below(format!("{shard:?}")) })
    })
    .await
}

/// Their finalizers need an owner.
async fn objects_being_deleted_are_moved_like_others(stage: &Stage) -> Result<()> {
    let arena = stage.arena("dying", &json!({})).await?;
    for number in 0..OBJECTS {
        let metadata =
            json!({"name": format!("site-{number}"), "finalizers": ["example.com/held"]});
        let secret: Secret = serde_json::from_value(json!({ "metadata": metadata }))?;
        arena.secrets().create(&PostParams::default(), &secret).await?;
    }
    let a = Puppet::join_as(&stage.world, &arena, "a-0", &Role::brief()).await?;
    arena.wait_spread(&["a-0"]).await?;
    for number in 0..OBJECTS {
        let name = format!("site-{number}");
        let kept = arena.secrets().delete(&name, &DeleteParams::default()).await?;
        ensure!(kept.left().is_some(), "{name} was not held");
    }
    // Given up by one that lives, and taken from one that is gone.
    let _b = join(stage, &arena, "b-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    a.fall_silent();
    arena.wait_spread(&["b-0"]).await?;
    arena.judge(&stage.world).await?;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for number in 0..OBJECTS {
        let name = format!("site-{number}");
        arena.secrets().patch(&name, &PatchParams::default(), &free).await?;
    }
    arena.close().await
}

async fn rings_that_share_a_kind_both_label_it(stage: &Stage) -> Result<()> {
    let resources = json!([{"resource": "secrets", "shared": true}]);
    let one = stage.arena("sharing", &json!({ "resources": resources })).await?;
    one.populate("site", OBJECTS).await?;
    let selector = json!({"matchLabels": {"arena": "sharing"}});
    let changes = json!({"resources": resources, "namespaceSelector": selector});
    let other = stage.arena("sharing-too", &changes).await?;
    let _a = join(stage, &one, "a-0").await?;
    let _b = join(stage, &other, "b-0").await?;
    one.wait_spread(&["a-0"]).await?;
    let label = other.names.shard_label();
    wait_for("the other ring to have labelled them too", SETTLE_WAIT, async || {
        let secrets = one.secrets().list_metadata(&ListParams::default()).await?;
        let owned =
            secrets.iter().filter(|it| it.labels().get(&label).is_some_and(|id| id == "b-0"));
        let count = owned.count();
        let is_all = count == OBJECTS;
        Ok(if is_all { Level::Reached(()) } else { Level::Below(format!("{count}")) })
    })
    .await?;
    other.close().await?;
    finish(stage, &one).await
}

/// P2 is lost for the object; the next time that everything is counted it goes back, and an Event
/// says why.
async fn without_a_fence_a_stolen_label_is_mended_and_told(stage: &Stage) -> Result<()> {
    let arena = stage.arena("stolen", &json!({"fence": "Off"})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    let _b = join(stage, &arena, "b-0").await?;
    let before = arena.wait_spread(&["a-0", "b-0"]).await?;
    wait_counted(stage, &arena).await?;
    let (name, _) = before.iter().find(|(_, owner)| *owner == "a-0").context("a-0 has some")?;
    steal(stage, &arena, name).await?;
    // Another namespace of the ring: all of it is counted anew.
    let more = namespace_of(&arena, "stolen-more");
    stage.world.server.kubectl().create(&[more]).await?;
    stage.wait_event(&[name], "somebody labelled it for b-0").await?;
    wait_for("it to be back", SETTLE_WAIT, async || {
        let standing = arena.standings().await?.remove(name).context("it is there")?;
        let is_back = standing.shard.as_deref() == Some("a-0") && !standing.is_draining;
        Ok(if is_back { Level::Reached(()) } else { Level::Below(format!("{standing:?}")) })
    })
    .await?;
    arena.close().await
}

/// Waits until the sharder has gone through everything that a join makes it go through: what is found
/// before could be the instance's from an earlier life.
async fn wait_counted(stage: &Stage, arena: &Arena) -> Result<()> {
    let sample = format!("windlass_sharding_pass_seconds_count{{ring=\"{}\"}}", arena.name);
    let (mut last, mut since) = (String::new(), Instant::now());
    wait_for("the passes to be over", SETTLE_WAIT, async || {
        let page = stage.sharders[0].metrics().await?;
        let passes = page.lines().find(|line| line.starts_with(&sample)).unwrap_or_default();
        if passes != last {
            (last, since) = (passes.to_owned(), Instant::now());
        }
        let is_over = !passes.is_empty() && since.elapsed() > LEASE;
        Ok(if is_over { Level::Reached(()) } else { Level::Below(passes.to_owned()) })
    })
    .await
}

async fn steal(stage: &Stage, arena: &Arena, name: &str) -> Result<()> {
    let user = stage.world.client_as(&Persona::user("somebody")).await?;
    let secrets: Api<Secret> = Api::namespaced(user, &arena.name);
    let theft = json!({"metadata": {"labels": {arena.names.shard_label(): "b-0"}}});
    secrets.patch(name, &PatchParams::default(), &Patch::Merge(theft)).await?;
    Ok(())
}

fn namespace_of(arena: &Arena, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"arena": arena.name}},
    })
}
