//! Kubernetes' objects as the core sees them: plain data, made and sent by the shell.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    keys::{DATA_BYTES, MARKER, MARKER_ANNOTATION},
    rv::ResourceVersion,
};

/// What a ConfigMap takes besides its texts, about.
const OVERHEAD_BYTES: usize = 512;

/// Label keys and their values, without the marker.
pub type Labels = BTreeMap<String, String>;

/// The identity of an object; of a node, its incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub String);

/// What a node's `labels_restored` says. Anyone can write it, so it may say anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Marker(pub String);

/// A ConfigMap. To be created without `uid` and `rv`; with them, replaced only if they still hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    pub name: String,
    pub uid: Option<Uid>,
    /// Opaque: compared by the API server alone.
    pub rv: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub data: BTreeMap<String, String>,
    pub is_immutable: bool,
}

/// A node as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveNode {
    pub name: String,
    pub uid: Uid,
    pub rv: ResourceVersion,
    pub created: Timestamp,
    pub labels: Labels,
    pub marker: Option<Marker>,
    pub is_terminating: bool,
}

// === impl Uid ===

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Document ===

impl Document {
    /// What it takes, about. Of a header, whose data nobody has read, it is what was noted when they
    /// were written; what somebody else wrote has no such note.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let data = match self.data.is_empty() {
            true => self.annotations.get(DATA_BYTES).map_or(0, |noted| noted.parse().unwrap_or(0)),
            false => self.data_bytes(),
        };
        bytes_of(&self.labels) + bytes_of(&self.annotations) + data + OVERHEAD_BYTES
    }

    /// What its data take.
    #[must_use]
    pub fn data_bytes(&self) -> usize {
        bytes_of(&self.data)
    }
}

fn bytes_of(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(key, value)| key.len() + value.len()).sum()
}

// === impl Marker ===

impl Marker {
    /// Takes the marker out of a node's labels; where there is none, the annotation counts.
    pub fn take(labels: &mut Labels, annotations: &BTreeMap<String, String>) -> Option<Self> {
        labels.remove(MARKER).or_else(|| annotations.get(MARKER_ANNOTATION).cloned()).map(Self)
    }

    #[must_use]
    pub fn names(&self, rv: &ResourceVersion) -> bool {
        self.0 == rv.as_str()
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(label: Option<&str>, annotation: Option<&str>) -> Option<Marker> {
        let owned = |key: &str, value: Option<&str>| {
            value.map(|value| (key.to_owned(), value.to_owned())).into_iter().collect()
        };
        let mut labels: Labels = owned(MARKER, label);
        let taken = Marker::take(&mut labels, &owned(MARKER_ANNOTATION, annotation));
        assert_eq!(labels, Labels::new(), "the marker is no label");
        taken
    }

    #[test]
    fn a_header_is_as_large_as_it_was_noted() {
        let pair = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
        let whole = Document {
            annotations: pair(DATA_BYTES, "7"),
            data: pair("key", "text"),
            ..Document::default()
        };
        let texts = DATA_BYTES.len() + "7keytext".len();
        assert_eq!((whole.data_bytes(), whole.bytes()), (7, texts + OVERHEAD_BYTES));
        let header = Document { data: [].into(), ..whole.clone() };
        assert_eq!(header.bytes(), whole.bytes());
        for foreign in [pair("other", "7"), pair(DATA_BYTES, "many")] {
            let bytes = bytes_of(&foreign) + OVERHEAD_BYTES;
            assert_eq!(Document { annotations: foreign, ..header.clone() }.bytes(), bytes);
        }
    }

    #[test]
    fn the_marker_is_the_label_else_the_annotation() {
        let marker = |text: &str| Some(Marker(text.to_owned()));
        assert_eq!(taken(Some("7"), Some("8")), marker("7"));
        assert_eq!(taken(None, Some("8")), marker("8"));
        assert_eq!(taken(Some("mine"), None), marker("mine"));
        assert_eq!(taken(None, None), None);
    }
}
