//! What cases put into the cluster.

use anyhow::Result;
use serde_json::{Value, json};

use super::Stage;

// === impl Stage ===

impl Stage {
    /// Nodes that nobody's kubelet reports for, in no group.
    pub(crate) async fn silent_nodes(&self, count: usize) -> Result<()> {
        let node = |number: usize| {
            let metadata = json!({"name": format!("silent-{number}")});
            json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        };
        let nodes: Vec<Value> = (0..count).map(node).collect();
        self.server.kubectl().create(&nodes).await?;
        Ok(())
    }

    /// Pods that nobody controls, each with this CPU.
    pub(crate) async fn pods(&self, names: &[&str], cpu: &str, more: &Value) -> Result<()> {
        let pod = |name: &&str| {
            let mut spec = json!({
                "containers": [{
                    "name": "main",
                    "image": "none",
                    "resources": {"requests": {"cpu": cpu}},
                }],
                "terminationGracePeriodSeconds": 0,
            });
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            let metadata = json!({"name": name, "namespace": "default"});
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        };
        let pods: Vec<Value> = names.iter().map(pod).collect();
        self.server.kubectl().create(&pods).await?;
        Ok(())
    }

    /// A claim to devices, of a class that nobody has.
    pub(crate) async fn claim(&self, name: &str) -> Result<()> {
        let request = json!({"name": "device", "exactly": {"deviceClassName": "none"}});
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        });
        self.server.kubectl().create(&[claim]).await?;
        Ok(())
    }

    /// Pods of one app, kept at a number by its controller, each with this CPU. They leave an
    /// unreachable node soon.
    pub(crate) async fn replicas(&self, app: &str, count: u32, cpu: &str) -> Result<()> {
        let leaves_soon = json!({
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 1,
        });
        let spec = json!({
            "containers": [{
                "name": "main",
                "image": "none",
                "resources": {"requests": {"cpu": cpu}},
            }],
            "terminationGracePeriodSeconds": 1,
            "tolerations": [leaves_soon],
        });
        let labels = json!({"app": app});
        let set = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {
                "replicas": count,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        });
        self.server.kubectl().create(&[set]).await?;
        Ok(())
    }

    /// A disruption budget for an app.
    pub(crate) async fn budget(&self, app: &str, min_available: u32) -> Result<()> {
        let budget = json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
        });
        self.server.kubectl().create(&[budget]).await?;
        Ok(())
    }
}
