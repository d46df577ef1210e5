//! What the core asks the shell to do, and which row of the tables asked for it.

use std::{collections::BTreeMap, fmt};

use serde_json::{Value, json};

use super::{
    names::TransactionName,
    object::{Document, Uid},
    rv::ResourceVersion,
};

/// What to do about a node, and why.
///
/// Commands are carried out in order until one fails; then everything is read and decided anew.
/// A decision writes the record at most once, so its guard stays true until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub row: Row,
    /// The row of *settle* that an `added` led to.
    pub then: Option<Row>,
    pub commands: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Creates the record, or replaces it under the guard of the uid and version in it.
    StoreRecord(Document),
    PatchNode(NodePatch),
    /// Replaces the record as above; only its bookkeeping differs.
    MarkRestored(Document),
    /// Always the last of its decision's writes. A batch's last one waits for the final settle.
    DeleteTransaction(TransactionName),
    /// Labels the transaction so that nobody takes it up again.
    Quarantine {
        transaction: TransactionName,
        reason: QuarantineReason,
    },
    Event(Event),
}

/// One merge patch of a node's labels and of the marker, valid for one version of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePatch {
    pub node: String,
    pub uid: Uid,
    pub rv: ResourceVersion,
    /// Set where there is a value, removed where there is none.
    pub labels: BTreeMap<String, Option<String>>,
    pub annotations: BTreeMap<String, Option<String>>,
}

/// Something a person may want to know, told on the Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub reason: EventReason,
    pub note: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventReason {
    LabelsStored,
    LabelsRestored,
    LabelsAmended,
    RestoreSkipped,
    RestoreConflict,
    LateDelete,
    DeleteContradicted,
    ResourceVersionWentBack,
    Quarantined,
    NameClash,
    SnapshotTooLarge,
}

/// Why a transaction is kept but not worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuarantineReason {
    BadType,
    BadJson,
    BadTime,
    UnknownVersion,
    NoLabels,
    NoNode,
    WrongHash,
    /// The node's record cannot be read; its labels must survive in the queue.
    RecordUnreadable,
    /// A ConfigMap of somebody else has the node's name.
    NameClash,
    /// The API server will never accept what the transaction asks for.
    Refused,
}

/// A row of the tables, and the cases before them. The name is shown to people and in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    D0,
    D1,
    D2,
    D3,
    D4,
    D5,
    A1,
    A2,
    A3,
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    /// A record that did not come from a deletion, beside a node that was there before it.
    Adoption,
    /// The transaction says nothing.
    Poison,
    /// The record says nothing, or is none.
    Unreadable,
}

// === impl Decision ===

impl Decision {
    pub(super) fn new(row: Row, commands: Vec<Command>) -> Self {
        Self { row, then: None, commands }
    }

    /// Whether anything is to be written, beyond taking the transaction out of the queue.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.commands.iter().any(|command| {
            matches!(
                command,
                Command::StoreRecord(_) | Command::PatchNode(_) | Command::MarkRestored(_)
            )
        })
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.row.fmt(f)?;
        self.then.map_or(Ok(()), |then| write!(f, ", {then}"))
    }
}

// === impl NodePatch ===

impl NodePatch {
    /// The body of a JSON merge patch. The API server refuses it if uid or version differ.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut metadata = json!({"uid": self.uid, "resourceVersion": self.rv});
        for (field, changes) in [("annotations", &self.annotations), ("labels", &self.labels)] {
            if !changes.is_empty() {
                metadata[field] = json!(changes);
            }
        }
        json!({ "metadata": metadata })
    }
}

// === impl Event ===

impl Event {
    #[must_use]
    pub fn new(reason: EventReason, note: impl Into<String>) -> Self {
        Self { reason, note: note.into() }
    }
}

// === impl EventReason ===

impl EventReason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LabelsStored => "LabelsStored",
            Self::LabelsRestored => "LabelsRestored",
            Self::LabelsAmended => "LabelsAmended",
            Self::RestoreSkipped => "RestoreSkipped",
            Self::RestoreConflict => "RestoreConflict",
            Self::LateDelete => "LateDelete",
            Self::DeleteContradicted => "DeleteContradicted",
            Self::ResourceVersionWentBack => "ResourceVersionWentBack",
            Self::Quarantined => "Quarantined",
            Self::NameClash => "NameClash",
            Self::SnapshotTooLarge => "SnapshotTooLarge",
        }
    }

    #[must_use]
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::LabelsStored | Self::LabelsRestored | Self::LabelsAmended)
    }
}

// === impl QuarantineReason ===

impl QuarantineReason {
    /// A label's value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadType => "bad-type",
            Self::BadJson => "bad-json",
            Self::BadTime => "bad-time",
            Self::UnknownVersion => "unknown-version",
            Self::NoLabels => "no-labels",
            Self::NoNode => "no-node",
            Self::WrongHash => "wrong-hash",
            Self::RecordUnreadable => "record-unreadable",
            Self::NameClash => "name-clash",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for QuarantineReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Row ===

impl Row {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::D0 => "D0",
            Self::D1 => "D1",
            Self::D2 => "D2",
            Self::D3 => "D3",
            Self::D4 => "D4",
            Self::D5 => "D5",
            Self::A1 => "A1",
            Self::A2 => "A2",
            Self::A3 => "A3",
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
            Self::S6 => "S6",
            Self::Adoption => "adoption",
            Self::Poison => "poison",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
