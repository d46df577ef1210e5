//! What is to be seen in the cluster, and waiting for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::wait::{Level, Patience, wait_for};
use serde_json::Value;

use super::{PATIENCE, Stage};

/// What the autoscaler puts on a node that it removes.
pub(crate) const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// Longer than all that is waited for meanwhile.
const WATCHED_MAX: Duration = Duration::from_mins(10);

// === impl Stage ===

impl Stage {
    /// Which pod is on which node; those that wait are not told.
    pub(crate) async fn bound(&self) -> Result<Vec<(String, String)>> {
        let pods = self.json(&["get", "pods", "-n", "default"]).await?;
        let items = pods["items"].as_array().cloned().unwrap_or_default();
        let bound = items.iter().filter_map(|pod| {
            let node = pod["spec"]["nodeName"].as_str()?;
            Some((pod["metadata"]["name"].as_str()?.to_owned(), node.to_owned()))
        });
        Ok(bound.collect())
    }

    pub(crate) async fn wait_bound(&self, count: usize) -> Result<Vec<(String, String)>> {
        wait_for(&format!("{count} pods to be bound"), PATIENCE, async || {
            let bound = self.bound().await?;
            Ok(match bound.len() == count {
                true => Level::Reached(bound),
                false => Level::Below(format!("{bound:?}")),
            })
        })
        .await
    }

    pub(crate) async fn wait_nodes(&self, count: usize) -> Result<()> {
        wait_for(&format!("{count} nodes"), PATIENCE, async || {
            let nodes = self.json(&["get", "nodes"]).await?;
            let names: Vec<&Value> = nodes["items"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| &it["metadata"]["name"])
                .collect();
            Ok(match names.len() == count {
                true => Level::Reached(()),
                false => Level::Below(format!("{names:?}")),
            })
        })
        .await
    }

    /// Waits for an Event, by its reason, and returns its note.
    pub(crate) async fn wait_event(&self, reason: &str) -> Result<String> {
        wait_for(&format!("the event {reason}"), PATIENCE, async || {
            let events = self.json(&["get", "events.events.k8s.io", "-A"]).await?;
            let items = events["items"].as_array().cloned().unwrap_or_default();
            let found = items.iter().find(|event| event["reason"] == reason);
            Ok(match found {
                Some(event) => {
                    Level::Reached(event["note"].as_str().unwrap_or_default().to_owned())
                }
                None => {
                    let reasons: Vec<&Value> = items.iter().map(|event| &event["reason"]).collect();
                    Level::Below(format!("{reasons:?}"))
                }
            })
        })
        .await
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Value>> {
        let nodes = self.json(&["get", "nodes"]).await?;
        Ok(nodes["items"].as_array().cloned().unwrap_or_default())
    }

    /// Nodes that bear the taint of a removal.
    pub(crate) async fn tainted(&self) -> Result<Vec<String>> {
        let nodes = self.nodes().await?;
        let tainted = nodes.iter().filter(|node| has_taint(node, TO_BE_DELETED));
        Ok(tainted.map(name).collect())
    }

    /// Waits for a node that bears the taint of a removal, and says which.
    pub(crate) async fn wait_tainted(&self) -> Result<String> {
        wait_for("a node to be tainted", PATIENCE, async || {
            Ok(match self.tainted().await?.pop() {
                Some(node) => Level::Reached(node),
                None => Level::Below("no node is tainted".to_owned()),
            })
        })
        .await
    }

    /// Waits for nodes whose condition Ready is not True, and says which.
    pub(crate) async fn wait_unready(&self, count: usize) -> Result<Vec<String>> {
        wait_for(&format!("{count} unready nodes"), PATIENCE, async || {
            let nodes = self.nodes().await?;
            let unready: Vec<String> =
                nodes.iter().filter(|node| !is_ready(node)).map(name).collect();
            Ok(match unready.len() == count {
                true => Level::Reached(unready),
                false => Level::Below(format!("{unready:?}")),
            })
        })
        .await
    }

    /// Waits until so many pods of an app are Ready on Ready nodes, and none of them is on its way out.
    pub(crate) async fn wait_available(&self, app: &str, count: usize) -> Result<()> {
        wait_for(&format!("{count} available pods of {app}"), PATIENCE, async || {
            let available = self.available(app).await?;
            Ok(match available >= count {
                true => Level::Reached(()),
                false => Level::Below(format!("{available}")),
            })
        })
        .await
    }

    /// Ends, with an error, as soon as fewer pods of an app are available.
    pub(crate) async fn watch_available(&self, app: &str, count: usize) -> Result<()> {
        let mut patience = Patience::new(&format!("{app} to be watched"), WATCHED_MAX);
        loop {
            let available = self.available(app).await?;
            ensure!(available >= count, "only {available} pods of {app} are left of {count}");
            patience.wait(&available.to_string()).await?;
        }
    }

    pub(crate) async fn available(&self, app: &str) -> Result<usize> {
        let pods =
            self.json(&["get", "pods", "-n", "default", "-l", &format!("app={app}")]).await?;
        let is_live =
            |pod: &&Value| is_ready(pod) && pod["metadata"]["deletionTimestamp"].is_null();
        Ok(pods["items"].as_array().into_iter().flatten().filter(is_live).count())
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn has_taint(node: &Value, key: &str) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().any(|taint| taint["key"] == key)
}

/// By its condition, of a node or of a pod.
fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut ready = conditions.into_iter().flatten().filter(|each| each["type"] == "Ready");
    ready.any(|each| each["status"] == "True")
}
