//! What is read of an object: so much of its metadata as a ring looks at. The rest, of which managed
//! fields are most, is passed over as it is read, and never built up in memory.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta, OwnerReference};
use serde::Deserialize;

/// An object as the server sends it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stored {
    pub(super) metadata: Metadata,
}

/// A page of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredPage {
    pub(super) metadata: ListMeta,
    pub(super) items: Option<Vec<Stored>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

/// So much of an object's metadata as a ring looks at, whoever has read it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) uid: Option<&'a str>,
    pub(super) version: Option<&'a str>,
    pub(super) labels: Option<&'a BTreeMap<String, String>>,
    pub(super) owners: &'a [OwnerReference],
}

// === impl Metadata ===

impl Metadata {
    /// The moment to which what was read leads.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.resource_version.clone()
    }
}

// === impl Known ===

impl<'a> From<&'a Metadata> for Known<'a> {
    fn from(metadata: &'a Metadata) -> Self {
        Self {
            name: metadata.name.as_deref(),
            namespace: metadata.namespace.as_deref(),
            uid: metadata.uid.as_deref(),
            version: metadata.resource_version.as_deref(),
            labels: metadata.labels.as_ref(),
            owners: metadata.owner_references.as_deref().unwrap_or_default(),
        }
    }
}

impl<'a> From<&'a ObjectMeta> for Known<'a> {
    fn from(metadata: &'a ObjectMeta) -> Self {
        Self {
            name: metadata.name.as_deref(),
            namespace: metadata.namespace.as_deref(),
            uid: metadata.uid.as_deref(),
            version: metadata.resource_version.as_deref(),
            labels: metadata.labels.as_ref(),
            owners: metadata.owner_references.as_deref().unwrap_or_default(),
        }
    }
}
