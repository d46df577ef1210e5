//! What an object is spread by: its own name, its namespace, or the name of the object that controls
//! it. No uid, so that an object created again returns to its instance.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::object::{GroupKind, Object, ObjectName};

/// What partitions see of an object. Objects with equal keys belong to the same instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: GroupKind,
    /// `namespace/name`; the part that does not count is empty, its slash stays.
    pub path: String,
}

/// What of a main object counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyMode {
    #[default]
    #[serde(rename = "Self")]
    Own,
    /// Objects of a namespace stay together. Those of the cluster have none and count by name.
    Namespace,
}

/// A kind whose objects are spread for their own sake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainKind {
    pub key: KeyMode,
    pub is_namespaced: bool,
    /// The kinds that follow objects of this one.
    pub controlled: BTreeSet<GroupKind>,
}

/// The kinds of a ring, as the API server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    pub main: BTreeMap<GroupKind, MainKind>,
    /// Groups of main kinds that the ring has and that cannot be worked on at present. What a kind of
    /// such a group controls may be the ring's.
    pub out_of_reach: BTreeSet<String>,
}

/// Where an object stands in its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Main {
        key: Key,
    },
    /// Follows `parent`, wherever that goes.
    Child {
        key: Key,
        parent: ObjectName,
    },
    /// Not of this ring, and never labelled by it.
    Foreign,
}

// === impl Kinds ===

impl Kinds {
    #[must_use]
    pub fn role(&self, object: &Object) -> Role {
        if let Some(kind) = self.main.get(&object.name.kind) {
            return Role::Main { key: kind.key_of(&object.name) };
        }
        let followed = object.controller.as_ref().and_then(|owner| {
            let kind = self.main.get(&owner.kind)?;
            kind.controlled.contains(&object.name.kind).then_some((owner, kind))
        });
        let Some((owner, kind)) = followed else { return Role::Foreign };
        // An owner lives in the namespace of what it owns, or in none.
        let namespace = object.name.namespace.clone().filter(|_| kind.is_namespaced);
        let parent = ObjectName { kind: owner.kind.clone(), namespace, name: owner.name.clone() };
        Role::Child { key: kind.key_of(&parent), parent }
    }

    /// Whether the object is known to be nobody's child in the ring. If it has labels, they are left from
    /// an owner that let go of it.
    #[must_use]
    pub fn is_orphan(&self, object: &Object) -> bool {
        let owner = object.controller.as_ref();
        let may_be_ours = owner.is_some_and(|owner| self.out_of_reach.contains(&owner.kind.group));
        self.role(object) == Role::Foreign && !may_be_ours
    }

    /// Whether objects of the kind can have children in the ring.
    #[must_use]
    pub fn has_children(&self, kind: &GroupKind) -> bool {
        self.main.get(kind).is_some_and(|kind| !kind.controlled.is_empty())
    }
}

// === impl MainKind ===

impl MainKind {
    fn key_of(&self, name: &ObjectName) -> Key {
        let path = match (self.key, &name.namespace) {
            (KeyMode::Own, Some(namespace)) => format!("{namespace}/{}", name.name),
            (KeyMode::Namespace, Some(namespace)) => format!("{namespace}/"),
            (_, None) => format!("/{}", name.name),
        };
        Key { kind: name.kind.clone(), path }
    }
}

// === impl Role ===

impl Role {
    #[must_use]
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Main { key } | Self::Child { key, .. } => Some(key),
            Self::Foreign => None,
        }
    }
}
