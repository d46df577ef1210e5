//! The cluster as it was looked at, and what differs from one look to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use registry::GroupId;
use serde::{Deserialize, Serialize};

use crate::cluster::{Controller, Snapshot};
use crate::core::{GroupSettings, KeptPod, PodKey, World};
use crate::world::world;

/// What was looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) snapshot: Snapshot,
    pub(crate) groups: BTreeMap<GroupId, GroupSettings>,
}

/// What differs from the look before. Small lists that differ are written as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    nodes: Objects<Node>,
    pods: Objects<KeptPod>,
    budgets: Objects<PodDisruptionBudget>,
    namespaces: Objects<Namespace>,
    volumes: Objects<PersistentVolume>,
    claims: Objects<PersistentVolumeClaim>,
    daemon_sets: Objects<DaemonSet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limited_drivers: Option<BTreeSet<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    controllers: Option<Vec<Controller>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<BTreeMap<GroupId, Settings>>,
    priorities: Option<String>,
}

/// Objects of one kind that are new or other than before, and the names of those that are gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Objects<K> {
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    set: Vec<K>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
}

/// What has a name, within its namespace if it lies in one.
trait Named {
    fn key(&self) -> String;
}

/// What a provider says of a group.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Settings {
    template: Option<Node>,
    utilization_threshold: Option<f64>,
    ignores_daemon_sets: Option<bool>,
    is_zero_or_max: bool,
}

// === impl Seen ===

impl Seen {
    pub(crate) fn apply(&mut self, change: Change) {
        let Change { nodes, pods, budgets, namespaces, volumes, claims, daemon_sets, .. } = change;
        let snapshot = &mut self.snapshot;
        nodes.apply(&mut snapshot.nodes);
        pods.apply(&mut snapshot.pods);
        budgets.apply(&mut snapshot.budgets);
        namespaces.apply(&mut snapshot.namespaces);
        volumes.apply(&mut snapshot.volumes);
        claims.apply(&mut snapshot.claims);
        daemon_sets.apply(&mut snapshot.daemon_sets);
        snapshot.priorities = change.priorities.map(Arc::from);
        if let Some(drivers) = change.limited_drivers {
            snapshot.limited_drivers = drivers;
        }
        if let Some(controllers) = change.controllers {
            snapshot.controllers = controllers;
        }
        if let Some(groups) = change.groups {
            self.groups = groups.into_iter().map(|(id, it)| (id, it.into())).collect();
        }
    }

    pub(crate) fn world(&self) -> World {
        world(&self.snapshot, self.groups.clone())
    }
}

// === impl Change ===

impl Change {
    pub(crate) fn between(before: &Seen, after: &Seen) -> Self {
        let (known, now) = (&before.snapshot, &after.snapshot);
        let settings = |(id, it): (&GroupId, &GroupSettings)| (id.clone(), Settings::from(it));
        Self {
            nodes: Objects::between(&known.nodes, &now.nodes),
            pods: Objects::between(&known.pods, &now.pods),
            budgets: Objects::between(&known.budgets, &now.budgets),
            namespaces: Objects::between(&known.namespaces, &now.namespaces),
            volumes: Objects::between(&known.volumes, &now.volumes),
            claims: Objects::between(&known.claims, &now.claims),
            daemon_sets: Objects::between(&known.daemon_sets, &now.daemon_sets),
            limited_drivers: (known.limited_drivers != now.limited_drivers)
                .then(|| now.limited_drivers.clone()),
            controllers: (known.controllers != now.controllers).then(|| now.controllers.clone()),
            groups: (before.groups != after.groups)
                .then(|| after.groups.iter().map(settings).collect()),
            priorities: now.priorities.as_deref().map(str::to_owned),
        }
    }
}

// === impl Objects ===

impl<K: Named + Clone + PartialEq> Objects<K> {
    fn between(before: &[Arc<K>], after: &[Arc<K>]) -> Self {
        let known: BTreeMap<String, &Arc<K>> = before.iter().map(|it| (it.key(), it)).collect();
        let keys: BTreeSet<String> = after.iter().map(|it| it.key()).collect();
        let is_same = |it: &Arc<K>| {
            // Who has not changed is most often the very same object.
            known.get(&it.key()).is_some_and(|before| Arc::ptr_eq(before, it) || *before == it)
        };
        let set = after.iter().filter(|it| !is_same(it)).map(|it| (**it).clone()).collect();
        let gone = known.into_keys().filter(|key| !keys.contains(key)).collect();
        Self { set, gone }
    }

    fn apply(self, known: &mut Vec<Arc<K>>) {
        let Self { set, gone } = self;
        let mut replaced: BTreeSet<String> = gone.into_iter().collect();
        replaced.extend(set.iter().map(Named::key));
        known.retain(|it| !replaced.contains(&it.key()));
        known.extend(set.into_iter().map(Arc::new));
    }
}

// === impl Named ===

impl<K: Metadata<Ty = ObjectMeta>> Named for K {
    fn key(&self) -> String {
        let metadata = self.metadata();
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
    }
}

impl Named for KeptPod {
    fn key(&self) -> String {
        PodKey::of(self).to_string()
    }
}

// === impl Settings ===

impl From<&GroupSettings> for Settings {
    fn from(settings: &GroupSettings) -> Self {
        Self {
            template: settings.template.as_deref().cloned(),
            utilization_threshold: settings.utilization_threshold,
            ignores_daemon_sets: settings.ignores_daemon_sets,
            is_zero_or_max: settings.is_zero_or_max,
        }
    }
}

impl From<Settings> for GroupSettings {
    fn from(settings: Settings) -> Self {
        Self {
            template: settings.template.map(Arc::new),
            utilization_threshold: settings.utilization_threshold,
            ignores_daemon_sets: settings.ignores_daemon_sets,
            is_zero_or_max: settings.is_zero_or_max,
        }
    }
}
