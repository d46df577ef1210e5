//! The Kubernetes objects of sharding: the definition of Rings, and what the sharder, a ring and its
//! instances need in a cluster. Only makes data; never talks to a cluster.

mod access;
mod crd;
mod ring;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Value, json};

pub use crd::definition;
pub use ring::objects as ring_objects;

/// Where the sharder runs unless told otherwise, and where its own Lease is.
pub const HOME: &str = "windlass-system";

/// The sharder's account, its Deployment, and the roles that are its own.
pub const NAME: &str = "windlass-sharder";

/// What a DNS label may have.
const NAMESPACE_CHARACTERS_MAX: usize = 63;

/// What a cluster may have otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The image whose entry point is `windlass`.
    pub image: String,
    pub replicas: u32,
    /// Where the pods run and the account lives.
    pub home: String,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("--image is empty")]
    NoImage,
    #[error("--sharder-namespace: `{0}` is no RFC 1123 label")]
    Namespace(String),
}

/// All that the sharder needs, in an order in which it can be created.
#[must_use]
pub fn objects(options: &Options) -> Vec<Value> {
    let mut objects = vec![definition(), namespace(options), service_account(options)];
    objects.extend(access::objects(options));
    objects.extend(workload::objects(options));
    objects
}

/// As whom the API server knows the sharder that lives there.
#[must_use]
pub fn user(home: &str) -> String {
    format!("system:serviceaccount:{home}:{NAME}")
}

// === impl Options ===

impl Options {
    pub fn validate(&self) -> Result<(), Error> {
        if self.image.is_empty() {
            return Err(Error::NoImage);
        }
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let home = &self.home;
        let is_label = (1..=NAMESPACE_CHARACTERS_MAX).contains(&home.len())
            && home.chars().all(is_legal)
            && !home.starts_with('-')
            && !home.ends_with('-');
        if is_label { Ok(()) } else { Err(Error::Namespace(home.clone())) }
    }
}

fn namespace(options: &Options) -> Value {
    let mut labels = selector();
    labels["pod-security.kubernetes.io/enforce"] = json!("restricted");
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.home, "labels": labels},
    })
}

fn service_account(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(NAME, Some(&options.home)),
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
