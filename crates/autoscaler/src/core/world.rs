//! What was read of Kubernetes, in its own types, and what the planners ask of a pod. Everything is as
//! it was read; the order in which it was listed does not matter.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use fit::Volumes;
use fit::drain::{Controllers, is_finished};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, PodCondition};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use registry::{GroupId, NodeName};
use serde::{Deserialize, Serialize};

use super::kept::KeptPod;
use super::names;

/// Kubernetes' own default.
const GRACE_DEFAULT_SECS: i64 = 30;

/// See the module. A pod on a node that is not listed is ignored.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub nodes: BTreeMap<NodeName, Arc<Node>>,
    pub pods: Vec<Arc<KeptPod>>,
    /// With their labels.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub budgets: Vec<PodDisruptionBudget>,
    pub daemon_sets: Vec<Arc<DaemonSet>>,
    pub controllers: Controllers,
    pub volumes: Volumes,
    /// What the provider says of its groups beside their sizes. A group that is not here has nothing
    /// of its own.
    pub groups: BTreeMap<GroupId, GroupSettings>,
}

/// What the provider says of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSettings {
    /// What a new node would be; [`node_of`](super::template::node_of) makes it.
    pub template: Option<Arc<Node>>,
    pub utilization_threshold: Option<f64>,
    pub ignores_daemon_sets: Option<bool>,
    pub is_zero_or_max: bool,
}

/// A pod's name; written down as `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct PodKey {
    pub namespace: String,
    pub name: String,
}

// === impl World ===

impl World {
    /// What the provider says of a group.
    pub(super) fn settings(&self, group: &GroupId) -> GroupSettings {
        self.groups.get(group).cloned().unwrap_or_default()
    }

    /// Whether a group is only ever empty or full, so that its size is nothing we change.
    pub(super) fn is_zero_or_max(&self, group: &GroupId) -> bool {
        self.groups.get(group).is_some_and(|settings| settings.is_zero_or_max)
    }
}

// === impl PodKey ===

impl PodKey {
    #[must_use]
    pub fn of(pod: &KeptPod) -> Self {
        let (namespace, name) = names_of(pod);
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl From<PodKey> for String {
    fn from(key: PodKey) -> Self {
        key.to_string()
    }
}

impl From<String> for PodKey {
    fn from(text: String) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", &text));
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Pods by their names, so that the order of listing does not matter.
pub(super) fn sorted<'a>(pods: impl Iterator<Item = &'a Arc<KeptPod>>) -> Vec<&'a Arc<KeptPod>> {
    let mut pods: Vec<&Arc<KeptPod>> = pods.collect();
    pods.sort_by(|one, other| names_of(one).cmp(&names_of(other)));
    pods
}

pub(super) fn names_of(pod: &KeptPod) -> (&str, &str) {
    (pod.kind.metadata.namespace.as_deref().unwrap_or_default(), &pod.name)
}

pub(super) fn annotation<'a>(pod: &'a KeptPod, key: &str) -> Option<&'a str> {
    pod.kind.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn node_annotation<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn node_taint<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let taint = taints.iter().find(|taint| taint.key == key)?;
    Some(taint.value.as_deref().unwrap_or_default())
}

pub(super) fn bound_to(pod: &KeptPod) -> Option<&str> {
    pod.node.as_deref()
}

pub(super) fn nominated(pod: &KeptPod) -> Option<&str> {
    pod.kind.status.as_ref()?.nominated_node_name.as_deref().filter(|node| !node.is_empty())
}

pub(super) fn is_terminating(pod: &KeptPod) -> bool {
    pod.kind.metadata.deletion_timestamp.is_some()
}

/// Whether the scheduler has said that it finds no node.
pub(super) fn is_unschedulable(pod: &KeptPod) -> bool {
    let conditions = pod.kind.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_refused = |each: &PodCondition| {
        let is_unschedulable = each.reason.as_deref() == Some("Unschedulable");
        each.type_ == "PodScheduled" && each.status == "False" && is_unschedulable
    };
    bound_to(pod).is_none()
        && !is_terminating(pod)
        && !is_finished(&pod.kind)
        && conditions.into_iter().flatten().any(is_refused)
}

pub(super) fn is_expendable(pod: &KeptPod, cutoff: i32) -> bool {
    pod.kind.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0) < cutoff
}

pub(super) fn is_mirror(pod: &KeptPod) -> bool {
    annotation(pod, names::MIRROR).is_some()
}

pub(super) fn controller(pod: &KeptPod) -> Option<&OwnerReference> {
    let mut owners = pod.kind.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

pub(super) fn is_daemon(pod: &KeptPod) -> bool {
    annotation(pod, names::DAEMON_POD) == Some("true")
        || controller(pod).is_some_and(|owner| owner.kind == "DaemonSet")
}

pub(super) fn grace(pod: &KeptPod) -> SignedDuration {
    let spec = pod.kind.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds);
    SignedDuration::from_secs(seconds.unwrap_or(GRACE_DEFAULT_SECS).max(0))
}

pub(super) fn created(pod: &KeptPod) -> Option<Timestamp> {
    pod.created
}
