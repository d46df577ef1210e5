//! Which kinds are watched, and all of them together as one snapshot.

use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, ReplicationController,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver};
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource};
use kubekit::follow::follow;
use kubekit::health::Check;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::cache::Cache;
use super::feed::{Alarm, Feed};
use crate::cluster::{Controller, Error, Snapshot};
use crate::core::{KeptPod, Kinds};
use crate::pending;

/// Where upstream's priority expander is told its priorities.
const PRIORITIES_FIELD: &str = "metadata.name=cluster-autoscaler-priority-expander";
const PRIORITIES_KEY: &str = "priorities";

pub(crate) struct Caches {
    client: Client,
    namespace: String,
    ready: Check,
    wakes: Arc<Notify>,
    nodes: Cache<Node>,
    pods: Cache<KeptPod>,
    budgets: Cache<PodDisruptionBudget>,
    namespaces: Cache<Namespace>,
    volumes: Cache<PersistentVolume>,
    claims: Cache<PersistentVolumeClaim>,
    /// By node: the drivers of which it takes only so many volumes.
    limited_drivers: Cache<Vec<String>>,
    daemon_sets: Cache<DaemonSet>,
    replica_sets: Cache<Controller>,
    replication_controllers: Cache<Controller>,
    stateful_sets: Cache<Controller>,
    jobs: Cache<Controller>,
    priorities: Cache<Option<Arc<str>>>,
}

/// A watch that is to run until it is told to end.
pub(crate) type Watch = (&'static str, BoxFuture<'static, ()>);

// === impl Caches ===

impl Caches {
    pub(super) fn new(client: &Client, namespace: &str, ready: Check) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            ready,
            wakes: Arc::default(),
            nodes: Cache::new(),
            pods: Cache::new(),
            budgets: Cache::new(),
            namespaces: Cache::new(),
            volumes: Cache::new(),
            claims: Cache::new(),
            limited_drivers: Cache::new(),
            daemon_sets: Cache::new(),
            replica_sets: Cache::new(),
            replication_controllers: Cache::new(),
            stateful_sets: Cache::new(),
            jobs: Cache::new(),
            priorities: Cache::new(),
        }
    }

    pub(super) fn wakes(&self) -> Arc<Notify> {
        self.wakes.clone()
    }

    /// Every watch that fills a cache, by name.
    pub(crate) fn watches(&self, stop: &CancellationToken) -> Vec<Watch> {
        let pods_alarm = Alarm { is_due: is_newly_unschedulable, wakes: self.wakes.clone() };
        let mut kinds = Kinds::default();
        let kept = move |pod| kinds.keep(pod);
        let pods = Feed { alarm: Some(pods_alarm), ..self.feed("pods", kept, &self.pods) };
        let priorities = Feed {
            api: Api::namespaced(self.client.clone(), &self.namespace),
            fields: PRIORITIES_FIELD,
            ..self.feed("priorities", priorities, &self.priorities)
        };
        vec![
            ("nodes", Box::pin(follow(self.feed("nodes", lean, &self.nodes), stop.clone()))),
            ("pods", Box::pin(follow(pods, stop.clone()))),
            ("budgets", Box::pin(follow(self.feed("budgets", lean, &self.budgets), stop.clone()))),
            (
                "namespaces",
                Box::pin(follow(self.feed("namespaces", lean, &self.namespaces), stop.clone())),
            ),
            ("volumes", Box::pin(follow(self.feed("volumes", lean, &self.volumes), stop.clone()))),
            ("claims", Box::pin(follow(self.feed("claims", lean, &self.claims), stop.clone()))),
            (
                "csi-nodes",
                Box::pin(follow(
                    self.feed("CSI nodes", limited_drivers, &self.limited_drivers),
                    stop.clone(),
                )),
            ),
            (
                "daemon-sets",
                Box::pin(follow(self.feed("daemon sets", lean, &self.daemon_sets), stop.clone())),
            ),
            (
                "replica-sets",
                Box::pin(follow(
                    self.feed("replica sets", replica_set, &self.replica_sets),
                    stop.clone(),
                )),
            ),
            (
                "replication-controllers",
                Box::pin(follow(
                    self.feed(
                        "replication controllers",
                        replication_controller,
                        &self.replication_controllers,
                    ),
                    stop.clone(),
                )),
            ),
            (
                "stateful-sets",
                Box::pin(follow(
                    self.feed("stateful sets", stateful_set, &self.stateful_sets),
                    stop.clone(),
                )),
            ),
            ("jobs", Box::pin(follow(self.feed("jobs", job, &self.jobs), stop.clone()))),
            ("priorities", Box::pin(follow(priorities, stop.clone()))),
        ]
    }

    fn feed<K, T>(
        &self,
        name: &'static str,
        take: impl FnMut(K) -> T + Send + Sync + 'static,
        cache: &Cache<T>,
    ) -> Feed<K, T>
    where
        K: Resource,
        K::DynamicType: Default,
    {
        Feed {
            name,
            api: Api::all(self.client.clone()),
            fields: "",
            take: Box::new(take),
            cache: cache.clone(),
            position: None,
            alarm: None,
        }
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot, Error> {
        let snapshot = self.gathered();
        match &snapshot {
            Some(_) => self.ready.pass(),
            None => self.ready.fail(format!("not up to date: {}", self.behind().join(", "))),
        }
        snapshot.ok_or_else(|| Error::NotListed { kinds: self.behind() })
    }

    fn gathered(&self) -> Option<Snapshot> {
        let controllers =
            [&self.replica_sets, &self.replication_controllers, &self.stateful_sets, &self.jobs];
        let mut all = Vec::new();
        for cache in controllers {
            all.extend(cache.objects()?.iter().map(|it| Controller::clone(it)));
        }
        let daemon_sets = self.daemon_sets.objects()?;
        all.extend(daemon_sets.iter().map(|set| controller(&set.metadata, "DaemonSet", None)));
        let limited = self.limited_drivers.objects()?;
        Some(Snapshot {
            nodes: self.nodes.objects()?,
            pods: self.pods.objects()?,
            budgets: self.budgets.objects()?,
            namespaces: self.namespaces.objects()?,
            volumes: self.volumes.objects()?,
            claims: self.claims.objects()?,
            limited_drivers: limited.iter().flat_map(|it| it.iter().cloned()).collect(),
            controllers: all,
            daemon_sets,
            priorities: self.priorities.objects()?.into_iter().find_map(|it| Option::clone(&it)),
        })
    }

    /// The watches that are not up to date.
    fn behind(&self) -> Vec<String> {
        let all = [
            ("nodes", self.nodes.is_current()),
            ("pods", self.pods.is_current()),
            ("budgets", self.budgets.is_current()),
            ("namespaces", self.namespaces.is_current()),
            ("volumes", self.volumes.is_current()),
            ("claims", self.claims.is_current()),
            ("CSI nodes", self.limited_drivers.is_current()),
            ("daemon sets", self.daemon_sets.is_current()),
            ("replica sets", self.replica_sets.is_current()),
            ("replication controllers", self.replication_controllers.is_current()),
            ("stateful sets", self.stateful_sets.is_current()),
            ("jobs", self.jobs.is_current()),
            ("priorities", self.priorities.is_current()),
        ];
        let behind = all.into_iter().filter(|(_, is_current)| !is_current);
        behind.map(|(name, _)| name.to_owned()).collect()
    }
}

/// An object without the record of who has set which field, which is half of many a pod and nothing that
/// anybody here goes by.
fn lean<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

fn is_newly_unschedulable(pod: &KeptPod, before: Option<&KeptPod>) -> bool {
    pending::is_unschedulable(pod) && !before.is_some_and(pending::is_unschedulable)
}

fn controller(metadata: &ObjectMeta, kind: &'static str, replicas: Option<i32>) -> Controller {
    Controller {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        kind: kind.into(),
        name: metadata.name.clone().unwrap_or_default(),
        replicas,
    }
}

fn replica_set(set: ReplicaSet) -> Controller {
    controller(&set.metadata, "ReplicaSet", set.spec.and_then(|spec| spec.replicas))
}

fn replication_controller(set: ReplicationController) -> Controller {
    controller(&set.metadata, "ReplicationController", set.spec.and_then(|spec| spec.replicas))
}

fn stateful_set(set: StatefulSet) -> Controller {
    controller(&set.metadata, "StatefulSet", set.spec.and_then(|spec| spec.replicas))
}

/// A Job runs as many as are left to do, which no number tells.
fn job(job: Job) -> Controller {
    controller(&job.metadata, "Job", None)
}

fn priorities(map: ConfigMap) -> Option<Arc<str>> {
    map.data.and_then(|mut data| data.remove(PRIORITIES_KEY)).map(Arc::from)
}

/// The drivers of which a node takes only so many volumes.
fn limited_drivers(node: CSINode) -> Vec<String> {
    let is_limited = |driver: &CSINodeDriver| {
        driver.allocatable.as_ref().is_some_and(|allocatable| allocatable.count.is_some())
    };
    node.spec.drivers.into_iter().filter(is_limited).map(|driver| driver.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_set_which_field_is_not_kept() {
        let pod: k8s_openapi::api::core::v1::Pod = serde_saphyr::from_str(
            "{metadata: {name: p, labels: {k: v}, managedFields: [{manager: kubelet}]}}",
        )
        .unwrap();
        let kept = lean(pod).metadata;
        assert_eq!((kept.managed_fields, kept.labels.map(|labels| labels.len())), (None, Some(1)));
    }

    #[test]
    fn drivers_with_a_limit_are_told_apart() {
        let node = serde_saphyr::from_str(
            "{metadata: {name: n}, spec: {drivers: [{name: few, nodeID: n, allocatable: {count: 3}},
              {name: many, nodeID: n, allocatable: {}}, {name: any, nodeID: n}]}}",
        );
        assert_eq!(limited_drivers(node.unwrap()), ["few"]);
    }
}
