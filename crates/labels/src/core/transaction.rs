//! Transactions: what happened to a node, waiting in the queue.

use jiff::Timestamp;

use super::{
    command::QuarantineReason,
    flat,
    keys::{
        EARLIER_NODE, EARLIER_TYPE, MANAGED_BY, MANAGER, MARKER, NODE, NODE_CREATED, NODE_UID,
        SNAPSHOT, SOURCE, TYPE,
    },
    names::{NodeHash, TransactionName, is_node_name},
    object::{Document, Marker, Uid},
    rv::ResourceVersion,
    snapshot::{Snapshot, SnapshotError, TooLarge},
};

#[cfg(test)]
mod tests;

/// One queued event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub name: TransactionName,
    pub node: String,
    /// Unknown where an earlier implementation wrote it.
    pub uid: Option<Uid>,
    pub created: Option<Timestamp>,
    /// Only told, never decided on.
    pub source: Option<Source>,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    /// With the labels that the node had.
    Deleted(Snapshot),
}

/// How a watcher learned of the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It saw the event.
    Watch,
    /// It saw another incarnation without having seen the end of the one before.
    Gap,
    /// It found the difference in a list.
    List,
    /// It found a checkpoint of a node that is gone.
    Checkpoint,
}

/// Why a queued ConfigMap is no transaction. Repeating does not help; a person has to look.
#[derive(Debug, thiserror::Error)]
pub enum Poison {
    #[error("the type is neither `added` nor `deleted` but {0:?}")]
    Type(Option<String>),
    #[error("the snapshot cannot be read")]
    Snapshot(#[source] SnapshotError),
    #[error("a deletion comes without labels")]
    NoLabels,
    #[error("no node is named")]
    NoNode,
    #[error("the name is not made from the hash of {node:?}")]
    Hash { node: String },
    #[error("{text:?} is not the time of the node's creation")]
    Created {
        text: String,
        #[source]
        source: jiff::Error,
    },
}

// === impl Transaction ===

impl Transaction {
    /// The place in the node's order: the event's, not the ConfigMap's own.
    #[must_use]
    pub fn rv(&self) -> &ResourceVersion {
        self.name.rv()
    }

    pub fn encode(&self) -> Result<Document, TooLarge> {
        let mut document = Document {
            name: self.name.to_string(),
            labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
            annotations: [(NODE.to_owned(), self.node.clone())].into(),
            is_immutable: true,
            ..Document::default()
        };
        let uid = self.uid.as_ref().map(|uid| (NODE_UID.to_owned(), uid.0.clone()));
        let created = self.created.map(|created| (NODE_CREATED.to_owned(), created.to_string()));
        let source = self.source.map(|source| (SOURCE.to_owned(), source.as_str().to_owned()));
        document.annotations.extend(uid.into_iter().chain(created).chain(source));
        document.data.insert(TYPE.to_owned(), self.kind.as_str().to_owned());
        if let Kind::Deleted(snapshot) = &self.kind {
            document.data.insert(SNAPSHOT.to_owned(), snapshot.to_bounded_json()?);
        }
        Ok(document)
    }

    /// Reads a queued ConfigMap, of this implementation or of an earlier one.
    pub fn decode(name: &TransactionName, document: &Document) -> Result<Self, Poison> {
        let snapshot = document.data.get(SNAPSHOT).map(|json| Snapshot::from_json(json));
        let snapshot = snapshot.transpose().map_err(Poison::Snapshot)?;
        let node = node_of(document, snapshot.as_ref())?;
        let is_of_node = |node: &str| NodeHash::of(node) == *name.node();
        if !is_of_node(&node) || snapshot.as_ref().is_some_and(|snapshot| snapshot.node != node) {
            return Err(Poison::Hash { node });
        }
        let annotation = |key: &str| document.annotations.get(key);
        let told = annotation(NODE_UID).map(|uid| Uid(uid.clone()));
        let created = annotation(NODE_CREATED).map(|text| parse_created(text)).transpose()?;
        let source = annotation(SOURCE).and_then(|text| Source::from_name(text));
        let uid = snapshot.as_ref().and_then(|snapshot| snapshot.uid.clone()).or(told);
        let kind = Kind::decode(name, document, snapshot, &node)?;
        Ok(Self { name: name.clone(), node, uid, created, source, kind })
    }
}

fn node_of(document: &Document, snapshot: Option<&Snapshot>) -> Result<String, Poison> {
    let annotated = document.annotations.get(NODE);
    let in_snapshot = || snapshot.map(|snapshot| &snapshot.node);
    let node = annotated.or_else(in_snapshot).or_else(|| document.data.get(EARLIER_NODE));
    node.filter(|node| is_node_name(node)).cloned().ok_or(Poison::NoNode)
}

fn parse_created(text: &str) -> Result<Timestamp, Poison> {
    text.parse().map_err(|source| Poison::Created { text: text.to_owned(), source })
}

// === impl Kind ===

impl Kind {
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Deleted(_) => "deleted",
        }
    }

    fn decode(
        name: &TransactionName,
        document: &Document,
        snapshot: Option<Snapshot>,
        node: &str,
    ) -> Result<Self, Poison> {
        let kind = document.data.get(TYPE).or_else(|| document.data.get(EARLIER_TYPE));
        match kind.map(String::as_str) {
            Some("added") => Ok(Self::Added),
            Some("deleted") => {
                let snapshot = snapshot.map_or_else(|| flat_snapshot(document, node, name), Ok)?;
                Ok(Self::Deleted(Snapshot { rv: name.rv().clone(), ..snapshot }))
            }
            other => Err(Poison::Type(other.map(ToOwned::to_owned))),
        }
    }
}

/// The snapshot of an earlier implementation: the labels stand beside its control keys.
fn flat_snapshot(
    document: &Document,
    node: &str,
    name: &TransactionName,
) -> Result<Snapshot, Poison> {
    if !document.data.contains_key(EARLIER_TYPE) && !document.data.contains_key(EARLIER_NODE) {
        return Err(Poison::NoLabels);
    }
    Ok(Snapshot {
        node: node.to_owned(),
        uid: None,
        rv: name.rv().clone(),
        marker: document.data.get(MARKER).cloned().map(Marker),
        labels: flat::decode(&document.data),
    })
}

// === impl Source ===

impl Source {
    const ALL: [Self; 4] = [Self::Watch, Self::Gap, Self::List, Self::Checkpoint];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Gap => "gap",
            Self::List => "list",
            Self::Checkpoint => "checkpoint",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == name)
    }
}

// === impl Poison ===

impl Poison {
    #[must_use]
    pub fn reason(&self) -> QuarantineReason {
        match self {
            Self::Type(_) => QuarantineReason::BadType,
            Self::Snapshot(SnapshotError::Json(_)) => QuarantineReason::BadJson,
            Self::Snapshot(SnapshotError::Version(_)) => QuarantineReason::UnknownVersion,
            Self::NoLabels => QuarantineReason::NoLabels,
            Self::NoNode => QuarantineReason::NoNode,
            Self::Hash { .. } => QuarantineReason::WrongHash,
            Self::Created { .. } => QuarantineReason::BadTime,
        }
    }
}
