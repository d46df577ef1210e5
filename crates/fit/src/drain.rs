//! May a pod be moved away from its node? The first rule that decides, decides.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::budget::Budgets;

const MIRROR: &str = "kubernetes.io/config.mirror";
const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
const SAFE_LOCAL_VOLUMES: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
const DAEMONSET_POD: &str = "cluster-autoscaler.kubernetes.io/daemonset-pod";

/// Controllers whose pods come back elsewhere.
const REPLICATING: [&str; 5] =
    ["ReplicationController", "ReplicaSet", "Job", "StatefulSet", "DaemonSet"];

/// How long a pod may take beyond its grace before it is taken for stuck.
const TERMINATION_ALLOWANCE: SignedDuration = SignedDuration::from_secs(30);

const GRACE_DEFAULT_SECS: i64 = 30;

/// What is done with a pod when its node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes with the node.
    Ignored,
    /// It runs elsewhere, if there is room and budget.
    Moves,
    /// It keeps the node.
    Blocks(BlockReason),
}

/// By upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockReason {
    ControllerNotFound,
    MinReplicasReached,
    NotReplicated,
    LocalStorageRequested,
    NotSafeToEvictAnnotation,
    UnmovableKubeSystemPod,
    NotEnoughPdb,
}

/// The flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub skips_system_pods: bool,
    pub skips_local_storage: bool,
    pub skips_custom_controllers: bool,
    /// Controllers with fewer replicas than this keep their nodes.
    pub replicas_min: i32,
}

/// What is known beside the pod itself.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub now: Timestamp,
    pub options: &'a Options,
    pub controllers: &'a Controllers,
    pub budgets: &'a Budgets,
}

/// Controllers that are there, with the replicas they are to have.
#[derive(Clone, Debug, Default)]
pub struct Controllers(BTreeMap<(String, String, String), Option<i32>>);

// === impl Controllers ===

impl Controllers {
    /// Replicas are absent where a controller does not count them.
    pub fn add(&mut self, namespace: &str, kind: &str, name: &str, replicas: Option<i32>) {
        let key = (namespace.to_owned(), kind.to_owned(), name.to_owned());
        self.0.insert(key, replicas);
    }

    /// None if it is not there.
    fn replicas(&self, namespace: &str, owner: &OwnerReference) -> Option<Option<i32>> {
        let key = (namespace.to_owned(), owner.kind.clone(), owner.name.clone());
        self.0.get(&key).copied()
    }
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            skips_system_pods: true,
            skips_local_storage: true,
            skips_custom_controllers: true,
            replicas_min: 0,
        }
    }
}

// === impl BlockReason ===

impl fmt::Display for BlockReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What becomes of a pod when its node is drained. A pod that moves needs budget too: that is
/// [`Budgets::reserve`]'s to say.
#[must_use]
pub fn judge(pod: &Pod, surroundings: Surroundings<'_>) -> Verdict {
    let options = surroundings.options;
    let safe_to_evict = annotation(pod, SAFE_TO_EVICT);
    if annotation(pod, MIRROR).is_some() || is_stuck(pod, surroundings.now) {
        return Verdict::Ignored;
    }
    if is_below_min_replicas(pod, surroundings) {
        return Verdict::Blocks(BlockReason::MinReplicasReached);
    }
    if is_daemon(pod) {
        return Verdict::Ignored;
    }
    if safe_to_evict == Some("true") || is_finished(pod) {
        return Verdict::Moves;
    }
    if safe_to_evict == Some("on-completion") {
        return Verdict::Blocks(BlockReason::NotSafeToEvictAnnotation);
    }
    if let Some(reason) = missing_controller(pod, surroundings) {
        return Verdict::Blocks(reason);
    }
    let is_system = pod.metadata.namespace.as_deref() == Some("kube-system");
    if options.skips_system_pods && is_system && !surroundings.budgets.cover(pod) {
        return Verdict::Blocks(BlockReason::UnmovableKubeSystemPod);
    }
    if safe_to_evict == Some("false") {
        return Verdict::Blocks(BlockReason::NotSafeToEvictAnnotation);
    }
    if options.skips_local_storage && has_local_storage(pod) {
        return Verdict::Blocks(BlockReason::LocalStorageRequested);
    }
    Verdict::Moves
}

/// A pod that will never run again: it takes no room.
#[must_use]
pub fn is_finished(pod: &Pod) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Failed") => true,
        Some("Succeeded") => policy.is_some_and(|policy| policy != "Always"),
        _ => false,
    }
}

fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true))
}

fn is_daemon(pod: &Pod) -> bool {
    annotation(pod, DAEMONSET_POD) == Some("true")
        || controller(pod).is_some_and(|owner| owner.kind == "DaemonSet")
}

fn is_stuck(pod: &Pod, now: Timestamp) -> bool {
    let Some(deleted) = &pod.metadata.deletion_timestamp else { return false };
    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let grace = SignedDuration::from_secs(grace.unwrap_or(GRACE_DEFAULT_SECS).max(0));
    let waited = now.duration_since(deleted.0);
    waited > grace.saturating_add(TERMINATION_ALLOWANCE)
}

fn is_below_min_replicas(pod: &Pod, surroundings: Surroundings<'_>) -> bool {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let owner = controller(pod).filter(|owner| !is_job_or_daemon(owner));
    let replicas = owner.and_then(|owner| surroundings.controllers.replicas(namespace, owner));
    replicas.flatten().is_some_and(|replicas| replicas < surroundings.options.replicas_min)
}

/// These have as many pods as there is work or as there are nodes.
fn is_job_or_daemon(owner: &OwnerReference) -> bool {
    matches!(owner.kind.as_str(), "Job" | "DaemonSet")
}

fn missing_controller(pod: &Pod, surroundings: Surroundings<'_>) -> Option<BlockReason> {
    let Some(owner) = controller(pod) else { return Some(BlockReason::NotReplicated) };
    if !REPLICATING.contains(&owner.kind.as_str()) {
        let is_custom_kept = surroundings.options.skips_custom_controllers;
        return is_custom_kept.then_some(BlockReason::NotReplicated);
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let is_there = surroundings.controllers.replicas(namespace, owner).is_some();
    (!is_there).then_some(BlockReason::ControllerNotFound)
}

fn has_local_storage(pod: &Pod) -> bool {
    let safe: BTreeSet<_> = annotation(pod, SAFE_LOCAL_VOLUMES)
        .map(|names| names.split(',').map(str::trim).collect())
        .unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let mut volumes = volumes.into_iter().flatten();
    volumes.any(|volume| is_local(volume) && !safe.contains(volume.name.as_str()))
}

/// What is kept in memory is lost with the pod anyway.
fn is_local(volume: &Volume) -> bool {
    let is_in_memory = |medium: Option<&String>| medium.is_some_and(|medium| medium == "Memory");
    volume.host_path.is_some()
        || volume.empty_dir.as_ref().is_some_and(|each| !is_in_memory(each.medium.as_ref()))
}
