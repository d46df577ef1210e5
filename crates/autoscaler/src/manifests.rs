//! The Kubernetes objects of the autoscaler: its account, what it may do, and its pods. Only makes data;
//! never talks to a cluster.

mod access;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Value, json};

use crate::options::HOME;

/// The account, the Deployment and the roles.
pub const NAME: &str = "windlass-autoscaler";

/// The ConfigMap in which the provider's file is, and its key.
pub const CLOUD_CONFIG: &str = "windlass-autoscaler-cloud-config";

/// What a cluster may have otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The image whose entry point is `windlass`.
    pub image: String,
    pub replicas: u32,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("--image is empty")]
    NoImage,
}

// === impl Options ===

impl Options {
    pub fn validate(&self) -> Result<(), Error> {
        if self.image.is_empty() { Err(Error::NoImage) } else { Ok(()) }
    }
}

/// All that the autoscaler needs, in an order in which it can be created.
#[must_use]
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects = vec![service_account()];
    objects.extend(access::objects());
    objects.extend(workload::objects(options));
    objects
}

fn service_account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(NAME, Some(HOME)),
        // A pod of ours asks for its token; one that merely names the account gets none.
        "automountServiceAccountToken": false,
    })
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": selector()});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

/// What every object of ours carries and the Deployment selects.
fn selector() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}
