//! Checkpoints: the labels of a node that lives, kept for the case that nobody sees it go.

use std::fmt::Write;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{
    keys::{DIGEST, MANAGED_BY, MANAGER, NODE, NODE_CREATED, NODE_UID, RV, SNAPSHOT},
    names::NodeHash,
    object::{Document, LiveNode, Marker, Uid},
    rv::{ResourceVersion, RvError},
    snapshot::{Snapshot, SnapshotError, TooLarge},
};

#[cfg(test)]
mod tests;

/// A live node's labels where they were last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub snapshot: Snapshot,
    pub created: Timestamp,
}

/// What a checkpoint says without its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointMeta {
    pub node: String,
    pub uid: Uid,
    pub rv: ResourceVersion,
    pub digest: String,
    pub created: Option<Timestamp>,
}

/// Why a ConfigMap is no checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("the annotation {0} is missing")]
    Missing(&'static str),
    #[error("the annotation {RV} is no resource version")]
    Rv(#[source] RvError),
    #[error("the annotation {NODE_CREATED} is no time")]
    Created(#[source] jiff::Error),
    #[error("`{SNAPSHOT}` is missing")]
    NoSnapshot,
    #[error("`{SNAPSHOT}` cannot be read")]
    Snapshot(#[source] SnapshotError),
    #[error("the name is not the hash of {0:?}")]
    Hash(String),
    #[error("`{SNAPSHOT}` is of another incarnation than the annotations")]
    Torn,
}

// === impl Checkpoint ===

impl Checkpoint {
    #[must_use]
    pub fn of(live: &LiveNode) -> Self {
        let snapshot = Snapshot {
            node: live.name.clone(),
            uid: Some(live.uid.clone()),
            rv: live.rv.clone(),
            marker: live.marker.clone(),
            labels: live.labels.clone(),
        };
        Self { snapshot, created: live.created }
    }

    /// A ConfigMap to create; to replace one, add its uid and version.
    pub fn encode(&self) -> Result<Document, TooLarge> {
        let Snapshot { node, uid, rv, .. } = &self.snapshot;
        let annotations = [
            (NODE, node.clone()),
            (NODE_UID, uid.as_ref().map(ToString::to_string).unwrap_or_default()),
            (NODE_CREATED, self.created.to_string()),
            (RV, rv.to_string()),
            (DIGEST, digest(&self.snapshot)),
        ];
        Ok(Document {
            name: NodeHash::of(node).to_string(),
            labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
            annotations: annotations.map(|(key, value)| (key.to_owned(), value)).into(),
            data: [(SNAPSHOT.to_owned(), self.snapshot.to_bounded_json()?)].into(),
            ..Document::default()
        })
    }

    pub fn decode(document: &Document) -> Result<Self, CheckpointError> {
        let meta = CheckpointMeta::decode(document)?;
        let json = document.data.get(SNAPSHOT).ok_or(CheckpointError::NoSnapshot)?;
        let snapshot = Snapshot::from_json(json).map_err(CheckpointError::Snapshot)?;
        if snapshot.node != meta.node || snapshot.uid.as_ref() != Some(&meta.uid) {
            return Err(CheckpointError::Torn);
        }
        let created = meta.created.ok_or(CheckpointError::Missing(NODE_CREATED))?;
        Ok(Self { snapshot, created })
    }
}

// === impl CheckpointMeta ===

impl CheckpointMeta {
    /// Reads annotations alone; `data` may be missing.
    pub fn decode(document: &Document) -> Result<Self, CheckpointError> {
        let annotation = |key: &'static str| {
            document.annotations.get(key).cloned().ok_or(CheckpointError::Missing(key))
        };
        let node = annotation(NODE)?;
        if NodeHash::of(&node).to_string() != document.name {
            return Err(CheckpointError::Hash(node));
        }
        let created = document.annotations.get(NODE_CREATED).map(|text| text.parse());
        Ok(Self {
            node,
            uid: Uid(annotation(NODE_UID)?),
            rv: annotation(RV)?.parse().map_err(CheckpointError::Rv)?,
            digest: annotation(DIGEST)?,
            created: created.transpose().map_err(CheckpointError::Created)?,
        })
    }
}

/// What tells whether a checkpoint has a node's labels already. The marker counts: with it the
/// checkpoint shows that the labels are restored ones.
#[must_use]
pub fn digest(snapshot: &Snapshot) -> String {
    let mut hash = Sha256::new();
    let marker = snapshot.marker.as_ref().map(|Marker(text)| text.as_str());
    let words = snapshot.labels.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    for word in marker.into_iter().chain(words) {
        // Neither keys nor values contain a line's end.
        hash.update(word);
        hash.update("\n");
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a string takes every character");
        hex
    })
}
