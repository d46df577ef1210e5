//! Pods as they are kept. A pod takes several kilobytes, and most of it says the same of all pods that
//! one controller makes: that is kept once, and without what nobody here goes by.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use serde::{Deserialize, Serialize};

use super::names;

/// Conditions that say whether a pod waits for a node, and what it is granted.
const CONDITIONS: [&str; 2] = ["PodScheduled", "PodResizePending"];

/// Kinds are looked through for those that no pod has any more whenever there are twice as many as were
/// left by the last look, but not below this.
const KINDS_SWEPT_AT: usize = 1_000;

/// A pod: what is its own, and what others of its kind have too. Written down as a Pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Pod", from = "Pod")]
pub struct KeptPod {
    pub name: Box<str>,
    pub uid: Option<Box<str>>,
    /// Where it is bound to.
    pub node: Option<Box<str>>,
    pub created: Option<Timestamp>,
    /// As if it were to be placed, and without a name.
    pub kind: Arc<Pod>,
}

/// The kinds of all pods, by a hash of what they are.
#[derive(Debug)]
pub struct Kinds {
    known: HashMap<u64, Weak<Pod>, BuildHasherDefault<DefaultHasher>>,
    swept_at: usize,
}

// === impl KeptPod ===

impl KeptPod {
    /// The whole object, without what was not kept.
    #[must_use]
    pub fn to_pod(&self) -> Pod {
        let mut pod = Pod::clone(&self.kind);
        pod.metadata.name = Some(self.name.to_string());
        pod.metadata.uid = self.uid.as_deref().map(ToOwned::to_owned);
        pod.metadata.creation_timestamp = self.created.map(Time);
        if let Some(node) = &self.node {
            pod.spec.get_or_insert_default().node_name = Some(node.to_string());
        }
        pod
    }

    fn new(mut pod: Pod, share: impl FnOnce(Pod) -> Arc<Pod>) -> Self {
        let metadata = &mut pod.metadata;
        let node = pod.spec.as_mut().and_then(|spec| spec.node_name.take());
        Self {
            name: metadata.name.clone().unwrap_or_default().into(),
            uid: metadata.uid.take().map(Into::into),
            node: node.filter(|node| !node.is_empty()).map(Into::into),
            created: metadata.creation_timestamp.take().map(|time| time.0),
            kind: share(kind(pod)),
        }
    }
}

impl From<Pod> for KeptPod {
    /// One whose kind is shared with nobody.
    fn from(pod: Pod) -> Self {
        Self::new(pod, Arc::new)
    }
}

impl From<KeptPod> for Pod {
    fn from(pod: KeptPod) -> Self {
        pod.to_pod()
    }
}

// === impl Kinds ===

impl Default for Kinds {
    fn default() -> Self {
        Self { known: HashMap::default(), swept_at: KINDS_SWEPT_AT }
    }
}

impl Kinds {
    pub fn keep(&mut self, pod: Pod) -> KeptPod {
        KeptPod::new(pod, |kind| self.share(kind))
    }

    /// Two kinds with one hash are as rare as can be; the later one then is shared with nobody.
    fn share(&mut self, kind: Pod) -> Arc<Pod> {
        let written = serde_json::to_vec(&kind).expect("what was read can be written");
        let mut hasher = DefaultHasher::default();
        hasher.write(&written);
        let hash = hasher.finish();
        match self.known.get(&hash).and_then(Weak::upgrade) {
            Some(known) if *known == kind => known,
            Some(_) => Arc::new(kind),
            None => {
                let kind = Arc::new(kind);
                self.known.insert(hash, Arc::downgrade(&kind));
                self.sweep();
                kind
            }
        }
    }

    fn sweep(&mut self) {
        if self.known.len() >= self.swept_at {
            self.known.retain(|_, kind| kind.strong_count() > 0);
            self.swept_at = (2 * self.known.len()).max(KINDS_SWEPT_AT);
        }
    }
}

/// What decides: where a pod may run, what it takes, and whether it may go. Not its name, but where
/// volumes are called by it.
fn kind(pod: Pod) -> Pod {
    let Pod { metadata, spec, status } = pod;
    let volumes = spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let is_named_after = volumes.into_iter().any(|volume| volume.ephemeral.is_some());
    let annotations = metadata.annotations.map(|mut annotations| {
        annotations.retain(|key, _| names::is_on_pods(key));
        annotations
    });
    Pod {
        metadata: ObjectMeta {
            namespace: metadata.namespace,
            name: metadata.name.filter(|_| is_named_after),
            labels: metadata.labels,
            annotations: annotations.filter(|annotations| !annotations.is_empty()),
            owner_references: metadata.owner_references,
            deletion_timestamp: metadata.deletion_timestamp,
            ..ObjectMeta::default()
        },
        spec: spec.map(kind_of_spec),
        status: status.map(kind_of_status),
    }
}

fn kind_of_spec(mut spec: PodSpec) -> PodSpec {
    spec.containers = containers(spec.containers);
    spec.init_containers = spec.init_containers.map(containers);
    spec.volumes = spec.volumes.map(|volumes| volumes.into_iter().filter(matters).collect());
    PodSpec { ephemeral_containers: None, hostname: None, ..spec }
}

fn containers(all: Vec<Container>) -> Vec<Container> {
    all.into_iter().map(container).collect()
}

/// What it takes of a node.
fn container(container: Container) -> Container {
    Container {
        name: container.name,
        ports: container.ports,
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    }
}

/// Whether a volume is more than files that come with the pod, which every pod has under another name.
fn matters(volume: &Volume) -> bool {
    let are_files = volume.projected.is_some()
        || volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some();
    !are_files
}

fn kind_of_status(status: PodStatus) -> PodStatus {
    let statuses = |all: Vec<ContainerStatus>| all.into_iter().map(container_status).collect();
    let conditions = status.conditions.into_iter().flatten();
    let conditions = conditions.filter(|it| CONDITIONS.contains(&it.type_.as_str()));
    let condition = |it: PodCondition| PodCondition {
        type_: it.type_,
        status: it.status,
        reason: it.reason,
        ..PodCondition::default()
    };
    PodStatus {
        phase: status.phase,
        nominated_node_name: status.nominated_node_name,
        conditions: Some(conditions.map(condition).collect()),
        container_statuses: status.container_statuses.map(statuses),
        init_container_statuses: status.init_container_statuses.map(statuses),
        ..PodStatus::default()
    }
}

/// What it is granted.
fn container_status(status: ContainerStatus) -> ContainerStatus {
    ContainerStatus {
        name: status.name,
        resources: status.resources,
        allocated_resources: status.allocated_resources,
        ..ContainerStatus::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(yaml: &str) -> Pod {
        serde_saphyr::from_str(yaml).unwrap()
    }

    /// One of a ReplicaSet, with all that its kubelet, its network and its controllers make its own.
    fn replica(name: &str, node: &str, cpu: &str) -> Pod {
        pod(&format!(
            "{{metadata: {{name: {name}, namespace: default, generateName: web-, uid: uid-{name}, resourceVersion: '{}', creationTimestamp: '2026-03-01T08:00:00Z', labels: {{app: web}},
               annotations: {{network/ips: {name}, cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'}},
               ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: u, controller: true}}]}},
              spec: {{nodeName: {node}, hostname: {name},
               containers: [{{name: main, image: web, env: [{{name: POD, value: {name}}}], resources: {{requests: {{cpu: {cpu}}}}}, volumeMounts: [{{name: token-{name}, mountPath: /run}}]}}],
               volumes: [{{name: token-{name}, projected: {{}}}}, {{name: scratch, emptyDir: {{}}}}]}},
              status: {{phase: Running, podIP: 10.0.0.{}, conditions: [{{type: PodScheduled, status: 'True', lastTransitionTime: '2026-03-01T08:00:0{}Z'}}, {{type: Ready, status: 'True'}}],
               containerStatuses: [{{name: main, image: web, imageID: web, containerID: {name}, ready: true, restartCount: {}, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}",
            name.len(),
            name.len(),
            name.len(),
            name.len(),
        ))
    }

    #[test]
    fn pods_of_one_controller_are_of_one_kind() {
        let mut kinds = Kinds::default();
        let one = kinds.keep(replica("web-1", "a", "1"));
        let other = kinds.keep(replica("web-22", "bb", "1"));
        let larger = kinds.keep(replica("web-3", "a", "2"));
        assert!(Arc::ptr_eq(&one.kind, &other.kind), "{:#?} and {:#?}", one.kind, other.kind);
        assert!(!Arc::ptr_eq(&one.kind, &larger.kind));
        assert_eq!((&*other.name, other.node.as_deref()), ("web-22", Some("bb")));
    }

    #[test]
    fn what_decides_is_kept() {
        let kept = KeptPod::from(replica("web-1", "a", "1"));
        let kind = &kept.kind;
        let spec = kind.spec.as_ref().unwrap();
        assert_eq!(
            spec.containers[0].resources.as_ref().unwrap().requests.as_ref().unwrap()["cpu"].0,
            "1"
        );
        let volumes: Vec<_> = spec.volumes.iter().flatten().map(|it| it.name.as_str()).collect();
        assert_eq!(volumes, ["scratch"]);
        let annotations: Vec<_> =
            kind.metadata.annotations.iter().flatten().map(|it| it.0.as_str()).collect();
        assert_eq!(annotations, ["cluster-autoscaler.kubernetes.io/safe-to-evict"]);
        assert!(kind.metadata.owner_references.is_some() && kind.metadata.labels.is_some());
        let status = kind.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert_eq!(status.container_statuses.as_ref().unwrap()[0].name, "main");
    }

    #[test]
    fn what_is_written_down_is_kept_alike() {
        let kept = KeptPod::from(replica("web-1", "a", "1"));
        assert_eq!(KeptPod::from(kept.to_pod()), kept);
        let bare = KeptPod::from(pod("{metadata: {name: p}}"));
        assert_eq!(KeptPod::from(bare.to_pod()), bare);
    }

    #[test]
    fn a_pod_whose_volumes_are_called_by_its_name_has_it() {
        let yaml = "{metadata: {name: p, namespace: default}, spec: {containers: [], volumes: [{name: v, ephemeral: {}}]}}";
        assert_eq!(KeptPod::from(pod(yaml)).kind.metadata.name.as_deref(), Some("p"));
    }

    #[test]
    fn kinds_that_no_pod_has_are_forgotten() {
        let mut kinds = Kinds::default();
        for number in 0..5 * KINDS_SWEPT_AT {
            kinds.keep(replica("web-1", "a", &number.to_string()));
        }
        assert!(kinds.known.len() < KINDS_SWEPT_AT);
    }
}
