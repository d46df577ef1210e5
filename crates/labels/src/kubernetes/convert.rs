//! Objects as `k8s-openapi` has them, and as the core has them.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::core::{
    keys::DATA_BYTES,
    object::{Document, LiveNode, Marker, Uid},
    rv::{ResourceVersion, RvError},
};

/// Why a node's metadata is not what the API server always sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the node has no {0}")]
    Missing(&'static str),
    #[error("the node's resource version cannot be compared")]
    ResourceVersion(#[source] RvError),
}

/// A ConfigMap without what this service never looks at.
pub(crate) fn document(object: ConfigMap) -> Document {
    Document {
        is_immutable: object.immutable.unwrap_or(false),
        data: object.data.unwrap_or_default(),
        ..header(object.metadata)
    }
}

/// A document of which only the metadata is known.
pub(crate) fn header(metadata: ObjectMeta) -> Document {
    Document {
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.map(Uid),
        rv: metadata.resource_version,
        labels: metadata.labels.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        ..Document::default()
    }
}

pub(super) fn config_map(document: &Document) -> ConfigMap {
    let mut annotations = document.annotations.clone();
    annotations.insert(DATA_BYTES.to_owned(), document.data_bytes().to_string());
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(document.name.clone()),
            uid: document.uid.as_ref().map(ToString::to_string),
            resource_version: document.rv.clone(),
            labels: Some(document.labels.clone()),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        data: Some(document.data.clone()),
        immutable: document.is_immutable.then_some(true),
        ..ConfigMap::default()
    }
}

/// A node, of which the metadata is enough.
pub(crate) fn live_node(metadata: ObjectMeta) -> Result<LiveNode, Unreadable> {
    let rv = metadata.resource_version.ok_or(Unreadable::Missing("resource version"))?;
    let created = metadata.creation_timestamp.ok_or(Unreadable::Missing("time of creation"))?;
    let mut labels = metadata.labels.unwrap_or_default();
    let annotations = metadata.annotations.unwrap_or_default();
    let marker = Marker::take(&mut labels, &annotations);
    Ok(LiveNode {
        name: metadata.name.ok_or(Unreadable::Missing("name"))?,
        uid: Uid(metadata.uid.ok_or(Unreadable::Missing("uid"))?),
        rv: ResourceVersion::try_from(rv).map_err(Unreadable::ResourceVersion)?,
        created: created.0,
        labels,
        marker,
        is_terminating: metadata.deletion_timestamp.is_some(),
    })
}
