//! What a restore would change on a live node, key by key, and who decides for each.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Admin, Error, snapshot};
use crate::core::{
    change::{self, LabelChange},
    object::{Labels, LiveNode},
    policy::Policy,
    rv::ResourceVersion,
    snapshot::Snapshot,
};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    pub node: String,
    /// The snapshot that is compared with.
    pub rv: ResourceVersion,
    /// Keys on which node and snapshot differ.
    pub keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    pub key: String,
    pub action: Action,
    /// Who wins: `stored`, `prefer-live` or `live`.
    pub class: &'static str,
    pub live: Option<String>,
    pub stored: Option<String>,
}

/// What a restore does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Add,
    Change,
    Remove,
    /// The node stays as it is, by the key's class.
    Keep,
    /// The API server takes no such label.
    Illegal,
}

// === impl Admin ===

impl Admin {
    pub async fn diff(&self, node: &str, from: Option<&ResourceVersion>) -> Result<Diff, Error> {
        let record = self.record(node).await?;
        let live = self.live(node).await?;
        Ok(Diff::of(&live, snapshot(&record, from)?, &self.policy))
    }
}

// === impl Diff ===

impl Diff {
    /// Whether a restore would change anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.iter().all(|key| matches!(key.action, Action::Keep | Action::Illegal))
    }

    pub(super) fn of(live: &LiveNode, snapshot: &Snapshot, policy: &Policy) -> Self {
        let (live, stored) = (&live.labels, &snapshot.labels);
        let change = change::restore(stored, live, policy);
        let keys: BTreeSet<&String> = live.keys().chain(stored.keys()).collect();
        let differing = keys.into_iter().filter(|key| live.get(*key) != stored.get(*key));
        let compared = differing.map(|key| Key {
            key: key.clone(),
            action: Action::of(key, live, &change),
            class: policy.class_of(key).as_str(),
            live: live.get(key).cloned(),
            stored: stored.get(key).cloned(),
        });
        Self { node: snapshot.node.clone(), rv: snapshot.rv.clone(), keys: compared.collect() }
    }
}

// === impl Action ===

impl Action {
    fn of(key: &str, live: &Labels, change: &LabelChange) -> Self {
        if change.left_out.contains(key) {
            Self::Illegal
        } else if change.remove.contains(key) {
            Self::Remove
        } else if !change.set.contains_key(key) {
            Self::Keep
        } else if live.contains_key(key) {
            Self::Change
        } else {
            Self::Add
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Change => "change",
            Self::Remove => "remove",
            Self::Keep => "keep",
            Self::Illegal => "illegal",
        }
    }
}
