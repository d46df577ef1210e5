//! Which pods wait for a node, and which of those that wait do not count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fit::{ClassId, CompileError, Volumes};
use jiff::{SignedDuration, Timestamp};

use super::config::Config;
use super::kept::KeptPod;
use super::names;
use super::scale_up::PodVerdict;
use super::snapshot::Snapshot;
use super::world::{PodKey, World};
use super::world::{annotation, created, is_expendable, is_unschedulable, nominated, sorted};

/// A pod that may bring a node.
#[derive(Clone, Debug)]
pub(super) struct Waiting<'a> {
    pub(super) key: PodKey,
    pub(super) pod: &'a Arc<KeptPod>,
    pub(super) class: ClassId,
}

/// Pods that wait, and those that do not count, with the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending<'a> {
    pub(super) waiting: Vec<Waiting<'a>>,
    pub(super) skipped: BTreeMap<PodKey, PodVerdict>,
}

/// By name. Pods that wait for others to make room on a node take it in the snapshot.
pub(super) fn sift<'a>(
    world: &'a World,
    snapshot: &mut Snapshot<'a>,
    now: Timestamp,
    config: &Config,
) -> Pending<'a> {
    let mut pending = Pending::default();
    for pod in sorted(world.pods.iter().filter(|pod| is_unschedulable(pod))) {
        let key = PodKey::of(pod);
        match judge(pod, &world.volumes, snapshot, (now, config)) {
            Ok(class) => pending.waiting.push(Waiting { key, pod, class }),
            Err(verdict) => _ = pending.skipped.insert(key, verdict),
        }
    }
    pending
}

fn judge(
    pod: &KeptPod,
    volumes: &Volumes,
    snapshot: &mut Snapshot<'_>,
    (now, config): (Timestamp, &Config),
) -> Result<ClassId, PodVerdict> {
    if is_expendable(pod, config.expendable_priority_cutoff) {
        return Err(PodVerdict::Expendable);
    }
    if let Some(until) = created(pod).and_then(|at| at.checked_add(delay(pod, config)).ok())
        && now < until
    {
        return Err(PodVerdict::TooYoung { until });
    }
    let class = snapshot.cluster.compile(&pod.kind, volumes).map_err(|error| match &error {
        CompileError::Unsupported(_) => PodVerdict::Unsupported(error.to_string()),
        CompileError::Request(source) => PodVerdict::Unsupported(format!("{error}: {source}")),
    })?;
    if let Some(node) = nominated(pod) {
        if let Some(host) = snapshot.hosts.get(node) {
            snapshot.cluster.place(class, *host);
        }
        return Err(PodVerdict::Nominated { node: node.into() });
    }
    Ok(class)
}

/// How old a pod must be: as its annotation says, if that is later.
fn delay(pod: &KeptPod, config: &Config) -> Duration {
    let own = annotation(pod, names::POD_DELAY).and_then(|text| text.parse().ok());
    let own = own.and_then(|own: SignedDuration| Duration::try_from(own).ok());
    config.scale_up.new_pod_delay.max(own.unwrap_or(Duration::ZERO))
}
