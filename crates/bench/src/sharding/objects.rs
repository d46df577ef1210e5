//! The objects that are spread: small Secrets whose work is to be marked as done.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// What an object asks for; done is what [`DONE`] says it is.
pub(super) const WANTED: &str = "bench.windlass.dev/wanted";
pub(super) const DONE: &str = "bench.windlass.dev/done";

/// Requests under way while many objects are made.
const WIDTH: usize = 32;
const PAGE: u32 = 500;
const LOOK_EVERY: Duration = Duration::from_millis(500);
const ASSIGN_MAX: Duration = Duration::from_mins(30);
const DONE_MAX: Duration = Duration::from_mins(3);

pub(super) async fn create(secrets: &Api<Secret>, name: &str) -> Result<()> {
    let secret = json!({"metadata": {"name": name}, "stringData": {"key": name}});
    let secret = serde_json::from_value(secret).context("a Secret is written like that")?;
    let created = secrets.create(&PostParams::default(), &secret).await;
    created.map(drop).with_context(|| format!("create {name}"))
}

/// Creates those from one number up to another.
pub(super) async fn create_many(secrets: &Api<Secret>, from: usize, to: usize) -> Result<()> {
    let creations = stream::iter(from..to)
        .map(async |number: usize| create(secrets, &format!("object-{number:06}")).await);
    creations.buffer_unordered(WIDTH).try_collect().await
}

/// Asks for more work.
pub(super) async fn want(secrets: &Api<Secret>, name: &str, what: &str) -> Result<()> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {WANTED: what}}}));
    let wanted = secrets.patch_metadata(name, &PatchParams::default(), &patch).await;
    wanted.map(drop).with_context(|| format!("change {name}"))
}

pub(super) async fn remove(secrets: &Api<Secret>, name: &str) -> Result<()> {
    let removed = secrets.delete(name, &DeleteParams::default()).await;
    removed.map(drop).with_context(|| format!("delete {name}"))
}

/// A page at a time: to delete a hundred thousand with one request takes longer than requests may.
pub(super) async fn remove_all(secrets: &Api<Secret>) -> Result<()> {
    let page = ListParams::default().limit(PAGE);
    loop {
        let names = secrets.list_metadata(&page).await?.items;
        if names.is_empty() {
            return Ok(());
        }
        let names = names.iter().map(ResourceExt::name_any);
        let removals = stream::iter(names).map(async |name: String| remove(secrets, &name).await);
        removals.buffer_unordered(WIDTH).try_collect::<()>().await?;
    }
}

/// Waits until somebody has worked on it.
pub(super) async fn wait_done(secrets: &Api<Secret>, name: &str) -> Result<()> {
    let until = Instant::now() + DONE_MAX;
    while !secrets.get_metadata(name).await?.annotations().contains_key(DONE) {
        ensure!(Instant::now() < until, "nobody has worked on {name} after {DONE_MAX:?}");
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Waits until none has no owner. Asks for one object, whatever their number.
pub(super) async fn wait_assigned(secrets: &Api<Secret>, shard_label: &str) -> Result<()> {
    let until = Instant::now() + ASSIGN_MAX;
    let nobodys = ListParams::default().labels(&format!("!{shard_label}")).limit(1);
    while !secrets.list_metadata(&nobodys).await?.items.is_empty() {
        ensure!(Instant::now() < until, "objects have no owner after {ASSIGN_MAX:?}");
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}
