//! All records out of a cluster, and into one: a backup, or a move.
//!
//! The text is a Kubernetes List of ConfigMaps, so what `kubectl get configmaps -o yaml` prints of
//! the namespace can be imported too.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Admin, Error, Mode};
use crate::core::{
    names::is_node_name,
    object::{Document, LiveNode},
    record::{Record, Stored, Unreadable},
};

/// How the annotations begin that are ours.
const ANNOTATION_PREFIX: &str = "labels.windlass.dev/";

/// Records as text has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Records {
    pub api_version: String,
    pub kind: String,
    pub items: Vec<Item>,
}

/// A ConfigMap without what only its own cluster knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    pub api_version: String,
    pub kind: String,
    pub metadata: ItemMetadata,
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemMetadata {
    pub name: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// What was exported, and what was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub records: Records,
    /// Nodes whose records cannot be read, and why.
    pub unreadable: Vec<(String, String)>,
}

/// What became of one record of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    pub node: String,
    pub outcome: Outcome,
    /// Whether a node of that name lives. It is left as it is, and its record says so.
    pub is_live: bool,
    pub problem: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Created,
    /// There was a record with the same content.
    Unchanged,
    Replaced,
    /// There is another record, and it stays.
    Kept,
    /// It cannot be read, or is no record.
    Refused,
}

// === impl Admin ===

impl Admin {
    pub async fn export(&self) -> Result<Export, Error> {
        Ok(Export::of(&self.records().await?))
    }

    /// Stores records, one after the other. Live nodes are not touched, now or later: their
    /// records count as given to them.
    pub async fn import(
        &self,
        records: Records,
        replace: bool,
        mode: Mode,
    ) -> Result<Vec<Import>, Error> {
        let mut imports = Vec::with_capacity(records.items.len());
        for item in records.items {
            imports.push(self.import_one(&item.into(), replace, mode).await?);
        }
        Ok(imports)
    }

    async fn import_one(
        &self,
        document: &Document,
        replace: bool,
        mode: Mode,
    ) -> Result<Import, Error> {
        let node = &document.name;
        if !is_node_name(node) {
            return Ok(Import::of_no_node(node));
        }
        let live = self.objects.nodes.get(node).await?;
        let present = self.objects.records.get(node).await?;
        let arrival =
            Arrival { document, live: live.as_ref(), present: present.as_ref(), now: self.now() };
        let plan = arrival.plan(replace);
        if let (Some(wanted), Mode::Write) = (plan.wanted, mode) {
            match wanted.uid {
                None => self.objects.records.create(&wanted).await?,
                Some(_) => self.objects.records.replace(&wanted).await?,
            };
        }
        Ok(Import {
            node: node.clone(),
            outcome: plan.outcome,
            is_live: live.is_some(),
            problem: plan.problem,
        })
    }
}

/// A record of the text, and what it meets.
pub(super) struct Arrival<'a> {
    pub(super) document: &'a Document,
    pub(super) live: Option<&'a LiveNode>,
    /// What has its name already.
    pub(super) present: Option<&'a Document>,
    pub(super) now: Timestamp,
}

pub(super) struct Plan {
    pub(super) outcome: Outcome,
    /// What to create, or with uid and version to replace.
    pub(super) wanted: Option<Document>,
    pub(super) problem: Option<String>,
}

// === impl Arrival ===

impl Arrival<'_> {
    pub(super) fn plan(&self, replace: bool) -> Plan {
        let record = match Record::decode(self.document) {
            Ok(record) => record,
            Err(error) => return Plan::without_write(Outcome::Refused, Some(error.to_string())),
        };
        let record =
            self.live.map_or_else(|| record.clone(), |live| record.given_to(live, self.now));
        let (mut wanted, drift) = (record.encode_ledger(), record.drift_note());
        match (self.present, Stored::read(self.present)) {
            (None, _) => Plan::write(Outcome::Created, wanted, drift),
            (_, Stored::Unreadable(foreign @ Unreadable::Foreign)) => {
                Plan::without_write(Outcome::Refused, Some(foreign.to_string()))
            }
            (Some(present), _) if present.data == wanted.data => {
                Plan::without_write(Outcome::Unchanged, None)
            }
            (Some(present), _) if replace => {
                (wanted.uid, wanted.rv) = (present.uid.clone(), present.rv.clone());
                Plan::write(Outcome::Replaced, wanted, drift)
            }
            (Some(_), _) => Plan::without_write(Outcome::Kept, None),
        }
    }
}

// === impl Plan ===

impl Plan {
    fn write(outcome: Outcome, wanted: Document, problem: Option<String>) -> Self {
        Self { outcome, wanted: Some(wanted), problem }
    }

    fn without_write(outcome: Outcome, problem: Option<String>) -> Self {
        Self { outcome, wanted: None, problem }
    }
}

// === impl Import ===

impl Import {
    fn of_no_node(name: &str) -> Self {
        Self {
            node: name.to_owned(),
            outcome: Outcome::Refused,
            is_live: false,
            problem: Some("no Node can be called so".to_owned()),
        }
    }
}

// === impl Export ===

impl Export {
    pub(super) fn of(documents: &[Document]) -> Self {
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        for document in documents {
            match Record::decode(document) {
                Ok(_) => items.push(Item::from(document)),
                Err(Unreadable::Foreign) => {}
                Err(error) => unreadable.push((document.name.clone(), error.to_string())),
            }
        }
        let records = Records { api_version: "v1".to_owned(), kind: "List".to_owned(), items };
        Self { records, unreadable }
    }
}

// === impl Item ===

impl From<&Document> for Item {
    fn from(document: &Document) -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            metadata: ItemMetadata {
                name: document.name.clone(),
                labels: document.labels.clone(),
                annotations: bookkeeping(document),
            },
            data: document.data.clone(),
        }
    }
}

/// What other tools noted on the ConfigMap is true in its own cluster only.
fn bookkeeping(document: &Document) -> BTreeMap<String, String> {
    let ours = document.annotations.iter().filter(|(key, _)| key.starts_with(ANNOTATION_PREFIX));
    ours.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl From<Item> for Document {
    fn from(item: Item) -> Self {
        Self {
            name: item.metadata.name,
            labels: item.metadata.labels,
            annotations: item.metadata.annotations,
            data: item.data,
            ..Self::default()
        }
    }
}

// === impl Outcome ===

impl Outcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Unchanged => "unchanged",
            Self::Replaced => "replaced",
            Self::Kept => "kept",
            Self::Refused => "refused",
        }
    }
}
