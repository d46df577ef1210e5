//! The administrator's hands: Nodes that come and go, and the objects the service keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{CHECKPOINTS, RECORDS, TRANSACTIONS};
use crate::wait::{Level, wait_for};

/// How long the service may take over one node; it needs less than a second when idle.
const SETTLE_WAIT: Duration = Duration::from_secs(60);

/// What the service sets on a node it restored.
pub const MARKER: &str = "labels_restored";

/// An administrator's connection.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
}

/// Labels as tests write them.
#[must_use]
pub fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

// === impl Cluster ===

impl Cluster {
    pub(super) async fn connect(kubeconfig: &Path) -> Result<Self> {
        let config = Kubeconfig::read_from(kubeconfig).context("read the kubeconfig")?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Ok(Self { client: Client::try_from(config)? })
    }

    #[must_use]
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    #[must_use]
    pub fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    #[must_use]
    pub fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// A Node enters.
    pub async fn add(&self, name: &str, labels: &BTreeMap<String, String>) -> Result<Node> {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        });
        let node = serde_json::from_value(node).context("write down a Node")?;
        let created = self.nodes().create(&PostParams::default(), &node).await;
        created.with_context(|| format!("create node {name}"))
    }

    /// It leaves.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let deleted = self.nodes().delete(name, &DeleteParams::default()).await;
        deleted.with_context(|| format!("delete node {name}"))?;
        Ok(())
    }

    /// Somebody edits its labels; `None` takes one away.
    pub async fn edit(&self, name: &str, edits: &[(&str, Option<&str>)]) -> Result<Node> {
        let edits: BTreeMap<_, _> = edits.iter().copied().collect();
        let patch = Patch::Merge(json!({"metadata": {"labels": edits}}));
        let patched = self.nodes().patch(name, &PatchParams::default(), &patch).await;
        patched.with_context(|| format!("edit node {name}"))
    }

    /// A node's labels without the marker.
    pub async fn labels(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let node = self.nodes().get(name).await.with_context(|| format!("get node {name}"))?;
        let labels = node.labels().clone().into_iter();
        Ok(labels.filter(|(key, _)| key != MARKER).collect())
    }

    pub async fn marker(&self, name: &str) -> Result<Option<String>> {
        Ok(self.nodes().get(name).await?.labels().get(MARKER).cloned())
    }

    pub async fn record(&self, node: &str) -> Result<Option<ConfigMap>> {
        self.config_maps(RECORDS).get_opt(node).await.context("get a record")
    }

    /// A node's queued transactions, in the order of their names' versions.
    pub async fn transactions(&self, node: &str) -> Result<Vec<ConfigMap>> {
        let hash = hash(node);
        let all = self.config_maps(TRANSACTIONS).list(&ListParams::default()).await?;
        let ours = all.items.into_iter().filter(|map| map.name_any().starts_with(&hash));
        let mut ours: Vec<_> = ours.collect();
        ours.sort_by_key(|map| (map.name_any().len(), map.name_any()));
        Ok(ours)
    }

    /// Waits until this many transactions of the node are queued.
    pub async fn wait_queued(&self, node: &str, count: usize) -> Result<Vec<ConfigMap>> {
        wait_for(&format!("{count} transactions of {node}"), SETTLE_WAIT, async || {
            let queued = self.transactions(node).await?;
            ensure!(queued.len() <= count, "{} transactions of {node}", queued.len());
            let names: Vec<_> = queued.iter().map(ResourceExt::name_any).collect();
            Ok(if names.len() == count {
                Level::Reached(queued)
            } else {
                Level::Below(format!("{names:?}"))
            })
        })
        .await
    }

    /// Waits until nothing of the node is queued or locked.
    pub async fn wait_settled(&self, node: &str) -> Result<()> {
        wait_for(&format!("{node} to be settled"), SETTLE_WAIT, async || {
            let queued = self.transactions(node).await?.len();
            let is_locked = self.leases(TRANSACTIONS).get_opt(node).await?.is_some();
            Ok(if queued == 0 && !is_locked {
                Level::Reached(())
            } else {
                Level::Below(format!("{queued} transactions, locked: {is_locked}"))
            })
        })
        .await
    }

    /// Waits until nothing of the node is queued or locked, and takes away the lock that one of the
    /// `killed` left if it could not give it back: nobody needs it then, and only in an hour is it
    /// collected. Locks of those who live are theirs to give back.
    pub async fn wait_worked_off(&self, node: &str, killed: &[String]) -> Result<()> {
        wait_for(&format!("{node} to be worked off"), SETTLE_WAIT, async || {
            let queued = self.transactions(node).await?.len();
            let lock = self.leases(TRANSACTIONS).get_opt(node).await?;
            let holder = lock.as_ref().and_then(|lock| lock.spec.as_ref()?.holder_identity.clone());
            if queued == 0 && holder.as_ref().is_some_and(|holder| killed.contains(holder)) {
                self.unlock(node, lock.and_then(|lock| lock.resource_version())).await?;
            }
            Ok(if queued == 0 && holder.is_none() {
                Level::Reached(())
            } else {
                Level::Below(format!("{queued} transactions, locked by {holder:?}"))
            })
        })
        .await
    }

    /// Removes a lock if it is still this one.
    async fn unlock(&self, node: &str, version: Option<String>) -> Result<()> {
        let guard = Preconditions { uid: None, resource_version: version };
        let params = DeleteParams::default().preconditions(guard);
        match self.leases(TRANSACTIONS).delete(node, &params).await {
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(()),
            removed => removed.map(drop).context("remove a lock"),
        }
    }

    /// The nodes that somebody has locked.
    pub async fn locked_by(&self, holder: &str) -> Result<Vec<String>> {
        let leases = self.leases(TRANSACTIONS).list(&ListParams::default()).await?;
        let theirs = leases.items.into_iter().filter(|lease| {
            let spec = lease.spec.as_ref();
            spec.is_some_and(|spec| spec.holder_identity.as_deref() == Some(holder))
        });
        Ok(theirs.map(|lease| lease.name_any()).collect())
    }

    /// Why people were told something about a node.
    pub async fn told_of(&self, node: &str) -> Result<Vec<String>> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = ListParams::default().fields(&format!("regarding.name={node}"));
        let events = events.list(&about).await.context("list Events")?;
        Ok(events.items.into_iter().filter_map(|event| event.reason).collect())
    }

    /// Waits until the record holds exactly these labels.
    pub async fn wait_stored(
        &self,
        node: &str,
        expected: &BTreeMap<String, String>,
    ) -> Result<ConfigMap> {
        wait_for(&format!("the labels of {node} to be stored"), SETTLE_WAIT, async || {
            let Some(record) = self.record(node).await? else {
                return Ok(Level::Below("no record".to_owned()));
            };
            let stored = stored_labels(&record)?;
            Ok(if stored == *expected {
                Level::Reached(record)
            } else {
                Level::Below(format!("{stored:?}"))
            })
        })
        .await
    }

    /// Waits until the node carries exactly these labels and the marker.
    pub async fn wait_restored(
        &self,
        node: &str,
        expected: &BTreeMap<String, String>,
    ) -> Result<()> {
        wait_for(&format!("the labels of {node} to be restored"), SETTLE_WAIT, async || {
            let seen = self.labels(node).await?;
            let marker = self.marker(node).await?;
            Ok(if seen == *expected && marker.is_some() {
                Level::Reached(())
            } else {
                Level::Below(format!("{seen:?}, marker {marker:?}"))
            })
        })
        .await
    }

    /// A node that lived with these labels and left; its labels are stored.
    pub async fn remember(
        &self,
        node: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<ConfigMap> {
        self.add(node, labels).await?;
        self.remove(node).await?;
        let record = self.wait_stored(node, labels).await?;
        self.wait_settled(node).await?;
        Ok(record)
    }

    /// Waits until live nodes' labels are checkpointed.
    pub async fn wait_checkpointed(
        &self,
        node: &str,
        expected: &BTreeMap<String, String>,
    ) -> Result<()> {
        let name = hash(node);
        wait_for(&format!("a checkpoint of {node}"), SETTLE_WAIT, async || {
            let Some(checkpoint) = self.config_maps(CHECKPOINTS).get_opt(&name).await? else {
                return Ok(Level::Below("none".to_owned()));
            };
            let seen = stored_labels(&checkpoint)?;
            Ok(if seen == *expected {
                Level::Reached(())
            } else {
                Level::Below(format!("{seen:?}"))
            })
        })
        .await
    }

    /// Puts an object there by hand.
    pub async fn post(&self, namespace: &str, map: &ConfigMap) -> Result<()> {
        let mut map = map.clone();
        map.metadata.resource_version = None;
        map.metadata.uid = None;
        let created = self.config_maps(namespace).create(&PostParams::default(), &map).await;
        created.with_context(|| format!("create {}", map.name_any()))?;
        Ok(())
    }

    /// Leases of nodes that somebody works on.
    pub async fn locks(&self) -> Result<Vec<String>> {
        let leases = self.leases(TRANSACTIONS).list(&ListParams::default()).await?;
        Ok(leases.items.iter().map(ResourceExt::name_any).collect())
    }
}

/// What a node's objects are called after.
#[must_use]
pub fn hash(node: &str) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for byte in Sha256::digest(node) {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

/// The labels in the snapshot of a record, a checkpoint or a `deleted` transaction.
pub fn stored_labels(map: &ConfigMap) -> Result<BTreeMap<String, String>> {
    let data = map.data.as_ref().context("the ConfigMap is empty")?;
    let snapshot = data.get("snapshot.json").context("it has no snapshot")?;
    let snapshot: Value = serde_json::from_str(snapshot).context("read the snapshot")?;
    serde_json::from_value(snapshot["labels"].clone()).context("read the snapshot's labels")
}
