//! Kubernetes, as far as the loop needs it: what watches have brought, and the few things that are
//! written. Decides nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kubekit::failure::Failure;
use registry::NodeName;
use serde::{Deserialize, Serialize};

use crate::core::{Evicted, KeptPod, PodKey};

/// The cluster whose nodes are looked after.
///
/// What every implementation owes its caller:
///
/// 1. A snapshot is of one moment per kind, never a partial list; there is none before every kind was
///    listed.
/// 2. [`write_state`](Self::write_state) replaces exactly the version that is named, or fails with
///    [`Error::Conflict`]; `None` names a state that does not exist.
/// 3. What is told may be dropped, and is never waited for.
/// 4. Every call ends within a bound.
pub trait Cluster: Send + Sync {
    fn snapshot(&self) -> Result<Snapshot, Error>;

    fn read_state(&self) -> impl Future<Output = Result<Option<Saved>, Error>> + Send;

    /// The new version.
    fn write_state(
        &self,
        state: &State,
        version: Option<&str>,
    ) -> impl Future<Output = Result<String, Error>> + Send;

    fn write_status(
        &self,
        text: &str,
        at: Timestamp,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Whether there was anything to change; a Node that is gone has nothing.
    fn mark(
        &self,
        node: &NodeName,
        mark: &Mark,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Not another pod that has its name by now.
    fn evict(
        &self,
        pod: &PodKey,
        uid: Option<&str>,
        grace_secs: i64,
    ) -> impl Future<Output = Result<Evicted, Error>> + Send;

    fn tell(&self, event: Event);
}

/// Everything that is watched, as it is known now.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub nodes: Vec<Arc<Node>>,
    pub pods: Vec<Arc<KeptPod>>,
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
    pub namespaces: Vec<Arc<Namespace>>,
    pub volumes: Vec<Arc<PersistentVolume>>,
    pub claims: Vec<Arc<PersistentVolumeClaim>>,
    /// CSI drivers of which some node takes only so many volumes.
    pub limited_drivers: BTreeSet<String>,
    pub controllers: Vec<Controller>,
    pub daemon_sets: Vec<Arc<k8s_openapi::api::apps::v1::DaemonSet>>,
    /// `priorities` of the priority expander's ConfigMap.
    pub priorities: Option<Arc<str>>,
}

/// Something that makes pods anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Controller {
    pub namespace: String,
    pub kind: Cow<'static, str>,
    pub name: String,
    pub replicas: Option<i32>,
}

/// What outlives a process: both parts, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Of the registry.
    pub registry: String,
    /// Of the planners.
    pub plans: String,
}

/// A state as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub state: State,
    pub version: String,
}

/// What a Node bears on our behalf. Values of taints are Unix times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is being removed: no new pods.
    ToBeDeleted {
        since: i64,
        cordons: bool,
    },
    /// It stays after all; what we cordoned is cordoned no more.
    Stays,
    /// It may be removed: pods go elsewhere if they can.
    Candidate {
        since: i64,
    },
    Needed,
}

/// Something worth telling about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub about: About,
    pub reason: &'static str,
    pub is_warning: bool,
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The status ConfigMap, which stands for the autoscaler.
    Status,
    Node {
        name: NodeName,
        uid: Option<String>,
    },
    Pod {
        key: PodKey,
        uid: Option<String>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not everything was listed yet: {}", kinds.join(", "))]
    NotListed { kinds: Vec<String> },
    #[error("somebody else has written the state")]
    Conflict,
    #[error("cannot {what}")]
    Failed {
        what: String,
        #[source]
        source: Failure,
    },
    #[error("cannot {what}: no answer in time")]
    TimedOut { what: String },
}

// === impl Snapshot ===

impl Snapshot {
    /// Labels by namespace.
    #[must_use]
    pub fn namespace_labels(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let named = |namespace: &Arc<Namespace>| {
            let metadata = &namespace.metadata;
            Some((metadata.name.clone()?, metadata.labels.clone().unwrap_or_default()))
        };
        self.namespaces.iter().filter_map(named).collect()
    }
}
