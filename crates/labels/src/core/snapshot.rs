//! A node's labels at one moment, and their JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    object::{Labels, Marker, Uid},
    rv::ResourceVersion,
};

/// Leaves room below the 1 MiB that a ConfigMap may have for what stands beside the snapshot.
pub const SNAPSHOT_BYTES_MAX: usize = 900 * 1024;

const VERSION: u32 = 1;

/// The labels of one incarnation of a node at one resource version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub node: String,
    /// Unknown where an earlier implementation or a person wrote it.
    pub uid: Option<Uid>,
    pub rv: ResourceVersion,
    pub marker: Option<Marker>,
    pub labels: Labels,
}

/// Why a text is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("the snapshot is not the JSON of one")]
    Json(#[source] serde_json::Error),
    #[error("the snapshot has version {0}, and only {VERSION} is known")]
    Version(u32),
}

/// The snapshot's JSON has more than 900 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot has {bytes} bytes, more than {SNAPSHOT_BYTES_MAX}")]
pub struct TooLarge {
    pub bytes: usize,
}

/// The JSON's fields, in its order.
#[derive(Serialize, Deserialize)]
pub(super) struct Wire<'a> {
    v: u32,
    node: Cow<'a, str>,
    uid: Option<Cow<'a, Uid>>,
    rv: Cow<'a, ResourceVersion>,
    marker: Option<Cow<'a, Marker>>,
    /// Left out in a history where they equal the successor's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) labels: Option<Cow<'a, Labels>>,
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

// === impl Snapshot ===

impl Snapshot {
    #[must_use]
    pub fn to_json(&self) -> String {
        let wire = Wire::new(self, Some(&self.labels));
        serde_json::to_string(&wire).expect("text keys and text values are always JSON")
    }

    /// The JSON, if a transaction or a checkpoint may carry it.
    pub fn to_bounded_json(&self) -> Result<String, TooLarge> {
        let json = self.to_json();
        let bytes = json.len();
        if bytes <= SNAPSHOT_BYTES_MAX { Ok(json) } else { Err(TooLarge { bytes }) }
    }

    pub fn from_json(json: &str) -> Result<Self, SnapshotError> {
        // The version first: fields of another one need not even parse.
        let Versioned { v } = serde_json::from_str(json).map_err(SnapshotError::Json)?;
        if v != VERSION {
            return Err(SnapshotError::Version(v));
        }
        let wire: Wire<'_> = serde_json::from_str(json).map_err(SnapshotError::Json)?;
        match wire.labels.clone() {
            Some(labels) => Ok(wire.into_snapshot(labels.into_owned())),
            None => Err(SnapshotError::Json(serde::de::Error::missing_field("labels"))),
        }
    }
}

// === impl Wire ===

impl<'a> Wire<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, labels: Option<&'a Labels>) -> Self {
        Self {
            v: VERSION,
            node: Cow::Borrowed(&snapshot.node),
            uid: snapshot.uid.as_ref().map(Cow::Borrowed),
            rv: Cow::Borrowed(&snapshot.rv),
            marker: snapshot.marker.as_ref().map(Cow::Borrowed),
            labels: labels.map(Cow::Borrowed),
        }
    }

    pub(super) fn check_version(&self) -> Result<(), SnapshotError> {
        if self.v == VERSION { Ok(()) } else { Err(SnapshotError::Version(self.v)) }
    }

    pub(super) fn into_snapshot(self, labels: Labels) -> Snapshot {
        Snapshot {
            node: self.node.into_owned(),
            uid: self.uid.map(Cow::into_owned),
            rv: self.rv.into_owned(),
            marker: self.marker.map(Cow::into_owned),
            labels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            node: "worker-7".to_owned(),
            uid: Some(Uid("6f1c".to_owned())),
            rv: "4122".parse().unwrap(),
            marker: Some(Marker("3071".to_owned())),
            labels: [("team/tier".to_owned(), "gold".to_owned())].into(),
        }
    }

    #[test]
    fn the_json_has_the_fields_in_their_order() {
        let json = r#"{"v":1,"node":"worker-7","uid":"6f1c","rv":"4122","marker":"3071","labels":{"team/tier":"gold"}}"#;
        assert_eq!(snapshot().to_json(), json);
        assert_eq!(Snapshot::from_json(json).unwrap(), snapshot());
    }

    #[test]
    fn what_is_unknown_is_null() {
        let bare = Snapshot { uid: None, marker: None, labels: Labels::new(), ..snapshot() };
        let json = r#"{"v":1,"node":"worker-7","uid":null,"rv":"4122","marker":null,"labels":{}}"#;
        assert_eq!(bare.to_json(), json);
        assert_eq!(Snapshot::from_json(json).unwrap(), bare);
    }

    #[test]
    fn other_versions_and_other_texts_are_refused() {
        let error = |json: &str| Snapshot::from_json(json).unwrap_err();
        assert!(matches!(error(r#"{"v":2,"other":true}"#), SnapshotError::Version(2)));
        assert!(matches!(error("{"), SnapshotError::Json(_)));
        assert!(matches!(error("[]"), SnapshotError::Json(_)));
        let without_labels = r#"{"v":1,"node":"a","uid":null,"rv":"1","marker":null}"#;
        assert!(matches!(error(without_labels), SnapshotError::Json(_)));
        let bad_rv = r#"{"v":1,"node":"a","uid":null,"rv":"01","marker":null,"labels":{}}"#;
        assert!(matches!(error(bad_rv), SnapshotError::Json(_)));
    }

    #[test]
    fn a_snapshot_of_more_than_900_kib_is_not_posted() {
        let mut large = snapshot();
        let frame = large.to_json().len() + r#","k":"""#.len();
        large.labels.insert("k".to_owned(), "x".repeat(SNAPSHOT_BYTES_MAX - frame));
        assert_eq!(large.to_bounded_json().unwrap().len(), SNAPSHOT_BYTES_MAX);
        large.labels.insert("k".to_owned(), "x".repeat(SNAPSHOT_BYTES_MAX - frame + 1));
        assert_eq!(large.to_bounded_json(), Err(TooLarge { bytes: SNAPSHOT_BYTES_MAX + 1 }));
    }
}
