//! What a Ring asks for, as users write it, and what is wrong with it.

mod check;
mod rivals;
mod selector;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::KeyMode;
use super::names::{Dialect, Names, PREFIX_DEFAULT, RingName};
use super::partition::slots::SLOTS_DEFAULT;

pub use check::{Problem, check, check_change};
pub use rivals::{Rival, Terrain, rivals};
pub use selector::{Namespace, Operator, Requirement, Selector};

/// More kinds than this belong in more rings.
pub const RESOURCES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    pub resources: Vec<Resource>,
    /// None: all namespaces but `kube-system` and the sharder's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<Selector>,
    #[serde(default)]
    pub instances: Instances,
    #[serde(default)]
    pub partitioning: Partitioning,
    #[serde(default)]
    pub assignment: Assignment,
    #[serde(default)]
    pub handover: Handover,
    #[serde(default)]
    pub restart: Restart,
    #[serde(default)]
    pub fence: Fence,
    #[serde(default)]
    pub names: NamesSpec,
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// `apps`, `deployments`: the words of URLs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupResource {
    #[serde(default)]
    pub group: String,
    pub resource: String,
}

/// A kind of main objects, and the kinds they own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resource {
    #[serde(default)]
    pub group: String,
    pub resource: String,
    #[serde(default)]
    pub key: KeyMode,
    /// Another ring may shard it too, if it says the same.
    #[serde(default)]
    pub shared: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controlled: Vec<Controlled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Controlled {
    #[serde(default)]
    pub group: String,
    pub resource: String,
    /// Narrows what is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
}

/// Whom the fence treats as an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Instances {
    /// `namespace/name` each.
    pub service_accounts: Vec<String>,
    pub identity: Identity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_prefix: Option<String>,
}

/// How the fence learns an instance's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Identity {
    /// From the pod name that is bound into its token.
    #[default]
    PodName,
    /// Its user name is the prefix and the id.
    Username,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Partitioning {
    pub algorithm: Algorithm,
    pub slots: usize,
    pub max_imbalance_percent: u32,
    pub max_move_percent: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    #[default]
    Slots,
    Ring,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assignment {
    #[default]
    Watch,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Handover {
    pub drain_timeout_seconds: u64,
    pub grace_seconds: u64,
    pub force: Force,
    pub concurrent_moves: usize,
}

/// What becomes of an object that its instance does not give up in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Force {
    /// Moved if the fence refuses the former owner, or it is known to have stopped.
    #[default]
    WhenSafe,
    Always,
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Restart {
    pub max_hold_seconds: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fence {
    #[default]
    Managed,
    /// An administrator applies it.
    External,
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NamesSpec {
    pub prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preset {
    Timebertt,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    #[default]
    StripLabels,
    KeepLabels,
}

// === impl Spec ===

impl Spec {
    #[must_use]
    pub fn names(&self, ring: RingName) -> Names {
        let dialect = match self.names.preset {
            Some(Preset::Timebertt) => Dialect::Timebertt,
            None => Dialect::Own { prefix: self.names.prefix.clone() },
        };
        Names::new(ring, dialect)
    }
}

// === impl Resource ===

impl Resource {
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

// === impl Controlled ===

impl Controlled {
    #[must_use]
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

// === impl Handover ===

impl Handover {
    #[must_use]
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout_seconds)
    }

    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            drain_timeout_seconds: 30,
            grace_seconds: 10,
            force: Force::default(),
            concurrent_moves: 100,
        }
    }
}

// === impl Partitioning ===

impl Default for Partitioning {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            slots: SLOTS_DEFAULT,
            max_imbalance_percent: 5,
            max_move_percent: 2,
        }
    }
}

// === impl Restart ===

impl Restart {
    #[must_use]
    pub fn hold_max(&self) -> Duration {
        Duration::from_secs(self.max_hold_seconds)
    }
}

impl Default for Restart {
    fn default() -> Self {
        Self { max_hold_seconds: 120 }
    }
}

// === impl NamesSpec ===

impl Default for NamesSpec {
    fn default() -> Self {
        Self { prefix: PREFIX_DEFAULT.to_owned(), preset: None }
    }
}
