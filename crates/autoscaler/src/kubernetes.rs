//! A real API server as the [`Cluster`] of the loop: caches that watches keep up to date, and writes
//! that are bounded in time and sent once.
//!
//! | module | owns |
//! |---|---|
//! | `cache` | the objects of one kind, as last seen |
//! | `feed` | the watch that fills a cache |
//! | `caches` | which kinds there are |
//! | `marks` | taints and the cordon, as a patch of a Node |

mod cache;
mod caches;
mod feed;
mod marks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node, ObjectReference, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use kubekit::events::{self, Severity};
use kubekit::failure::Failure;
use kubekit::health::Check;
use registry::NodeName;
use tokio::sync::Notify;

use crate::cluster::{About, Cluster, Error, Event, Mark, Saved, Snapshot, State};
use crate::core::{Evicted, PodKey};
use crate::options::Options;

pub(crate) use caches::Caches;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A Node that others write all the time is given up for this iteration.
const MARK_ATTEMPTS: usize = 3;

const REGISTRY_KEY: &str = "state";
const PLANS_KEY: &str = "plans";
const STATUS_KEY: &str = "status";
const LAST_UPDATED: &str = "cluster-autoscaler.kubernetes.io/last-updated";

/// What an Event says was done; upstream names no action.
const ACTION: &str = "Autoscale";

pub(crate) struct Kubernetes {
    caches: Caches,
    config_maps: Api<ConfigMap>,
    nodes: Api<Node>,
    client: Client,
    events: events::Handle,
    namespace: String,
    status: String,
    state: String,
}

// === impl Kubernetes ===

impl Kubernetes {
    pub(crate) fn new(
        client: Client,
        options: &Options,
        events: events::Handle,
        ready: Check,
    ) -> Self {
        Self {
            caches: Caches::new(&client, &options.namespace, ready),
            config_maps: Api::namespaced(client.clone(), &options.namespace),
            nodes: Api::all(client.clone()),
            client,
            events,
            namespace: options.namespace.clone(),
            status: options.status_name(),
            state: options.state_name(),
        }
    }

    /// The watches that have to run for there to be snapshots.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Told when a pod is new that fits nowhere.
    pub(crate) fn wakes(&self) -> Arc<Notify> {
        self.caches.wakes()
    }

    fn config_map(&self, name: &str, data: &[(&str, &str)], version: Option<&str>) -> ConfigMap {
        let entry = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                resource_version: version.map(str::to_owned),
                ..ObjectMeta::default()
            },
            data: Some(data.iter().map(entry).collect()),
            ..ConfigMap::default()
        }
    }

    fn reference(&self, about: About) -> ObjectReference {
        let (kind, namespace, name, uid) = match about {
            About::Status => ("ConfigMap", Some(self.namespace.clone()), self.status.clone(), None),
            About::Node { name, uid } => ("Node", None, name.0, uid),
            About::Pod { key, uid } => ("Pod", Some(key.namespace), key.name, uid),
        };
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(kind.to_owned()),
            namespace,
            name: Some(name),
            uid,
            ..ObjectReference::default()
        }
    }
}

impl Cluster for Kubernetes {
    fn snapshot(&self) -> Result<Snapshot, Error> {
        self.caches.snapshot()
    }

    async fn read_state(&self) -> Result<Option<Saved>, Error> {
        let what = || format!("read the ConfigMap {}", self.state);
        let found = answered(what, self.config_maps.get_opt(&self.state)).await?;
        Ok(found.map(|stored| {
            let mut data = stored.data.unwrap_or_default();
            let mut part = |key| data.remove(key).unwrap_or_default();
            let state = State { registry: part(REGISTRY_KEY), plans: part(PLANS_KEY) };
            Saved { state, version: stored.metadata.resource_version.unwrap_or_default() }
        }))
    }

    async fn write_state(&self, state: &State, version: Option<&str>) -> Result<String, Error> {
        let data = [(REGISTRY_KEY, state.registry.as_str()), (PLANS_KEY, state.plans.as_str())];
        let wanted = self.config_map(&self.state, &data, version);
        let params = PostParams::default();
        let what = || format!("write the ConfigMap {}", self.state);
        let written = match version {
            None => answered(what, self.config_maps.create(&params, &wanted)).await,
            Some(_) => {
                answered(what, self.config_maps.replace(&self.state, &params, &wanted)).await
            }
        };
        match written {
            Ok(stored) => Ok(stored.metadata.resource_version.unwrap_or_default()),
            // Deleted meanwhile is written meanwhile too.
            Err(error) if matches!(code(&error), Some(409 | 404)) => Err(Error::Conflict),
            Err(error) => Err(error),
        }
    }

    async fn write_status(&self, text: &str, at: Timestamp) -> Result<(), Error> {
        let mut wanted = self.config_map(&self.status, &[(STATUS_KEY, text)], None);
        let at = at.strftime("%F %T%.f +0000 UTC").to_string();
        wanted.metadata.annotations = Some(BTreeMap::from([(LAST_UPDATED.to_owned(), at)]));
        let what = || format!("write the ConfigMap {}", self.status);
        let (patch, params) = (Patch::Merge(&wanted), PatchParams::default());
        let patched = answered(what, self.config_maps.patch(&self.status, &params, &patch)).await;
        match patched {
            Err(error) if code(&error) == Some(404) => {
                let params = PostParams::default();
                answered(what, self.config_maps.create(&params, &wanted)).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    async fn mark(&self, node: &NodeName, mark: &Mark) -> Result<bool, Error> {
        let what = || format!("mark the Node {node}");
        let mut attempts = 0;
        loop {
            let Some(read) = answered(what, self.nodes.get_opt(&node.0)).await? else {
                return Ok(false);
            };
            let Some(patch) = marks::patch(&read, mark) else { return Ok(false) };
            attempts += 1;
            let (patch, params) = (Patch::Merge(&patch), PatchParams::default());
            match answered(what, self.nodes.patch(&node.0, &params, &patch)).await {
                Ok(_) => return Ok(true),
                Err(error) if code(&error) == Some(404) => return Ok(false),
                Err(error) if code(&error) == Some(409) && attempts < MARK_ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn evict(
        &self,
        pod: &PodKey,
        uid: Option<&str>,
        grace_secs: i64,
    ) -> Result<Evicted, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let what = || format!("evict the pod {pod}");
        let (params, wanted) = (PostParams::default(), eviction(pod, uid, grace_secs));
        let asked = pods.create_subresource("eviction", &pod.name, &params, &wanted);
        match answered(what, asked).await {
            Ok(Status { .. }) => Ok(Evicted::Accepted),
            Err(error) => match code(&error) {
                Some(404) => Ok(Evicted::Gone),
                Some(429) => Ok(Evicted::Refused),
                _ => Err(error),
            },
        }
    }

    fn tell(&self, event: Event) {
        let Event { about, reason, is_warning, note } = event;
        let severity = if is_warning { Severity::Warning } else { Severity::Normal };
        let regarding = self.reference(about);
        self.events.publish(events::Event { regarding, severity, reason, action: ACTION, note });
    }
}

/// Written here, since `Api::evict` calls the options by a name that no API server knows, and so asks for
/// every pod's own grace.
fn eviction(pod: &PodKey, uid: Option<&str>, grace_secs: i64) -> Eviction {
    let preconditions =
        uid.map(|uid| Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() });
    Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name.clone()),
            namespace: Some(pod.namespace.clone()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            grace_period_seconds: Some(grace_secs),
            preconditions,
            ..DeleteOptions::default()
        }),
    }
}

/// Waits for an answer, not for ever.
async fn answered<T>(
    what: impl Fn() -> String,
    sent: impl Future<Output = kube::Result<T>>,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST_TIMEOUT, sent).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Error::Failed { what: what(), source: Failure::from(error) }),
        Err(_elapsed) => Err(Error::TimedOut { what: what() }),
    }
}

fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Failed { source, .. } => source.refusal().map(|status| status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_eviction_is_of_one_pod_and_has_its_grace() {
        let pod = PodKey { namespace: "default".to_owned(), name: "web-0".to_owned() };
        let written = |uid| serde_json::to_string(&eviction(&pod, uid, 30)).unwrap();
        expect![[r#"{"apiVersion":"policy/v1","kind":"Eviction","deleteOptions":{"gracePeriodSeconds":30,"preconditions":{"uid":"u"}},"metadata":{"name":"web-0","namespace":"default"}}"#]]
            .assert_eq(&written(Some("u")));
        expect![[r#"{"apiVersion":"policy/v1","kind":"Eviction","deleteOptions":{"gracePeriodSeconds":30},"metadata":{"name":"web-0","namespace":"default"}}"#]]
            .assert_eq(&written(None));
    }
}
