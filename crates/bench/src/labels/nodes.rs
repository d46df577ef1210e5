//! The nodes that come and go, and when their labels are where they belong.

use std::{collections::BTreeMap, path::Path, pin::pin, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use kubekit::{client, metrics::Requests};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{RECORDS, TRANSACTIONS};

const MARKER: &str = "labels_restored";

/// Requests under way while a storm is made.
const WIDTH: usize = 16;

/// How often progress of a storm is looked at: seldom, since every look lists all nodes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A storm that takes longer has failed.
const STORM_MAX: Duration = Duration::from_secs(1800);

/// How long the server keeps a watch that sees nothing.
const WATCH_SECONDS_MAX: u32 = 60;

pub(super) struct Nodes {
    client: Client,
}

// === impl Nodes ===

impl Nodes {
    pub(super) async fn connect(kubeconfig: &Path) -> Result<Self> {
        let options = client::Options {
            kubeconfig: Some(kubeconfig.to_owned()),
            ..client::Options::default()
        };
        let cluster = client::Cluster::open(options, Requests::default()).await?;
        Ok(Self { client: cluster.client()? })
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(super) async fn add(&self, name: &str, is_labelled: bool) -> Result<Node> {
        let labels = if is_labelled { labels(name) } else { BTreeMap::new() };
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        let node = serde_json::from_value(node).context("a Node is written like that")?;
        let created = self.nodes().create(&PostParams::default(), &node).await;
        created.with_context(|| format!("cannot create node {name}"))
    }

    pub(super) async fn remove(&self, name: &str) -> Result<()> {
        let deleted = self.nodes().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("cannot delete node {name}"))?;
        Ok(())
    }

    pub(super) async fn add_all(&self, names: &[String], is_labelled: bool) -> Result<()> {
        let adds = stream::iter(names).map(|name| self.add(name, is_labelled));
        adds.buffer_unordered(WIDTH).try_for_each(async |_| Ok(())).await
    }

    pub(super) async fn remove_each(&self, names: &[String]) -> Result<()> {
        let removals = stream::iter(names).map(|name| self.remove(name));
        removals.buffer_unordered(WIDTH).try_collect().await
    }

    /// Removes whatever an earlier or the current run left.
    pub(super) async fn remove_all(&self) -> Result<()> {
        let live = self.nodes().list_metadata(&ListParams::default()).await?;
        let names: Vec<String> = live.iter().map(ResourceExt::name_any).collect();
        let ours: Vec<String> =
            names.into_iter().filter(|name| name.starts_with("bench-")).collect();
        self.remove_each(&ours).await
    }

    /// The time from sending the creation to seeing the restored node.
    pub(super) async fn add_and_wait_restored(&self, name: &str) -> Result<Duration> {
        let began = Instant::now();
        let created = self.add(name, false).await?;
        let version = created.resource_version().context("a created node has a version")?;
        let only_this = WatchParams::default()
            .fields(&format!("metadata.name={name}"))
            .timeout(WATCH_SECONDS_MAX);
        let mut events = pin!(self.nodes().watch(&only_this, &version).await?);
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Modified(node) = event
                && is_restored(&node)
            {
                return Ok(began.elapsed());
            }
        }
        bail!("{name} was not restored in {WATCH_SECONDS_MAX} s")
    }

    pub(super) async fn wait_stored(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + STORM_MAX;
        while self.config_maps(RECORDS).get_metadata_opt(name).await?.is_none() {
            ensure!(Instant::now() < deadline, "{name} was not stored");
            sleep(Duration::from_millis(10)).await;
        }
        self.wait_idle().await
    }

    /// Until nothing is queued.
    pub(super) async fn wait_idle(&self) -> Result<()> {
        let deadline = Instant::now() + STORM_MAX;
        let first = ListParams::default().limit(1);
        loop {
            let queued = self.config_maps(TRANSACTIONS).list_metadata(&first).await?;
            if queued.items.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the queue was not worked off");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Until all are restored, or nothing happens any more. Returns how many were.
    pub(super) async fn wait_restored(&self, names: &[String]) -> Result<usize> {
        let deadline = Instant::now() + STORM_MAX;
        let marked = ListParams::default().labels(MARKER);
        loop {
            let live = self.nodes().list_metadata(&marked).await?;
            let marked: BTreeMap<String, BTreeMap<String, String>> =
                live.into_iter().map(|node| (node.name_any(), node.labels().clone())).collect();
            let has_labels = |name: &&String| {
                marked.get(*name).is_some_and(|seen| {
                    labels(name).iter().all(|(key, value)| seen.get(key) == Some(value))
                })
            };
            let restored = names.iter().filter(has_labels).count();
            if restored == names.len() || Instant::now() >= deadline {
                return Ok(restored);
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

fn is_restored(node: &Node) -> bool {
    labels(&node.name_any()).iter().all(|(key, value)| node.labels().get(key) == Some(value))
}

/// About what a node of a cloud carries, some of it its own.
fn labels(name: &str) -> BTreeMap<String, String> {
    let pairs = [
        ("team.example.com/tier", "gold"),
        ("example.com/rack", name),
        ("node-role.kubernetes.io/worker", ""),
        ("example.com/pool", "general"),
        ("example.com/cost-centre", "4711"),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
