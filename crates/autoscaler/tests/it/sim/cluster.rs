//! The simulated cluster as the loop sees it: what watches would have brought, and writes that take
//! effect at once, or never if the process dies first.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use autoscaler::cluster::{About, Cluster, Controller, Error, Event, Mark, Saved, Snapshot, State};
use autoscaler::core::{Evicted, PodKey, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use registry::NodeName;
use tokio_util::sync::CancellationToken;

use super::Noted;
use super::driver::Kept;
use super::kubernetes::Kubernetes;
use super::objects;

/// What a process and the world have in common while it acts.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) at: Duration,
    pub(crate) now: Timestamp,
    pub(crate) kube: Kubernetes,
    pub(crate) saved: Option<Kept>,
    pub(crate) calls: Vec<Noted>,
    pub(crate) events: Vec<Noted>,
    /// How many writes and calls there were.
    pub(crate) points: usize,
    /// At which of them the process dies.
    pub(crate) dies_at: Option<usize>,
    /// Which of them are followed by a call, without another question before it.
    pub(crate) calling: BTreeSet<usize>,
    pub(crate) is_fenced: bool,
    /// How many targets were read.
    pub(crate) reads: usize,
    pub(crate) interruption: Option<Interruption>,
    /// Of the process.
    pub(crate) stop: CancellationToken,
    pub(crate) leads: Arc<AtomicBool>,
}

/// What comes in between, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The process is told to stop as it begins this write or call.
    StopAtPoint(usize),
    /// The process is told to stop as it reads this target.
    StopAtRead(usize),
    /// Somebody else leads as the process begins this write or call.
    LostAtPoint(usize),
}

/// What is noted when the process is interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// See the module.
pub(crate) struct SharedCluster(pub(crate) Arc<Mutex<Shared>>);

// === impl Shared ===

impl Shared {
    pub(crate) fn note(&mut self, what: String) {
        self.calls.push(Noted { at: self.at, what });
    }

    /// One more target is read.
    pub(crate) fn read(&mut self) {
        self.reads += 1;
        if self.interruption == Some(Interruption::StopAtRead(self.reads)) {
            self.stop();
        }
    }

    fn begin(&mut self) {
        self.points += 1;
        if self.interruption == Some(Interruption::StopAtPoint(self.points)) {
            self.stop();
        }
        if self.interruption == Some(Interruption::LostAtPoint(self.points)) {
            self.note(INTERRUPTED.to_owned());
            self.leads.store(false, Ordering::Relaxed);
        }
    }

    fn stop(&mut self) {
        self.note(INTERRUPTED.to_owned());
        self.stop.cancel();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dies_at == Some(self.points)
    }
}

/// Where the process may die, or sleep until it is woken: it does not get beyond.
pub(crate) async fn point(shared: &Mutex<Shared>) {
    shared.lock().begin();
    let awake = |_: &mut Context<'_>| match shared.lock().is_dead() {
        true => Poll::Pending,
        false => Poll::Ready(()),
    };
    std::future::poll_fn(awake).await;
}

impl Cluster for SharedCluster {
    fn snapshot(&self) -> Result<Snapshot, Error> {
        let shared = self.0.lock();
        let kube = &shared.kube;
        let controllers = kube.deployments.iter().map(|deployment| Controller {
            namespace: "default".to_owned(),
            kind: "ReplicaSet".into(),
            name: deployment.name.clone(),
            replicas: i32::try_from(deployment.replicas).ok(),
        });
        let metadata = ObjectMeta { name: Some("default".to_owned()), ..ObjectMeta::default() };
        Ok(Snapshot {
            nodes: kube.nodes.values().cloned().map(Arc::new).collect(),
            pods: kube.pods.values().cloned().map(|pod| Arc::new(pod.into())).collect(),
            budgets: kube.budgets().into_iter().map(Arc::new).collect(),
            namespaces: vec![Arc::new(Namespace { metadata, ..Namespace::default() })],
            controllers: controllers.collect(),
            daemon_sets: kube.daemon_sets.iter().cloned().map(Arc::new).collect(),
            ..Snapshot::default()
        })
    }

    async fn read_state(&self) -> Result<Option<Saved>, Error> {
        let saved = self.0.lock().saved.clone();
        Ok(saved.map(|Kept { state, version }| Saved { state, version: version.to_string() }))
    }

    async fn write_state(&self, state: &State, version: Option<&str>) -> Result<String, Error> {
        point(&self.0).await;
        let mut shared = self.0.lock();
        let known = shared.saved.as_ref().map(|kept| kept.version);
        if shared.is_fenced || known.map(|known| known.to_string()).as_deref() != version {
            return Err(Error::Conflict);
        }
        let version = known.unwrap_or(0) + 1;
        shared.saved = Some(Kept { state: state.clone(), version });
        Ok(version.to_string())
    }

    /// Nobody goes by it, so it does not matter whether the process dies before or after.
    async fn write_status(&self, _text: &str, _at: Timestamp) -> Result<(), Error> {
        Ok(())
    }

    async fn mark(&self, name: &NodeName, mark: &Mark) -> Result<bool, Error> {
        point(&self.0).await;
        let mut shared = self.0.lock();
        match mark {
            Mark::ToBeDeleted { .. } => shared.note(format!("taint {name}")),
            Mark::Stays => shared.note(format!("lift {name}")),
            Mark::Candidate { .. } | Mark::Needed => {}
        }
        let Some(node) = shared.kube.nodes.get_mut(name) else { return Ok(false) };
        write_mark(node, mark);
        Ok(true)
    }

    async fn evict(
        &self,
        pod: &PodKey,
        _uid: Option<&str>,
        _grace_secs: i64,
    ) -> Result<Evicted, Error> {
        point(&self.0).await;
        let mut shared = self.0.lock();
        let now = shared.now;
        if !shared.kube.evict(pod, now) {
            return Ok(Evicted::Refused);
        }
        shared.note(format!("evict {pod}"));
        Ok(Evicted::Accepted)
    }

    fn tell(&self, event: Event) {
        let Event { about, reason, note, .. } = event;
        let what = match about {
            About::Status => format!("{reason} {note}"),
            About::Node { name, .. } => format!("{reason} {name}: {note}"),
            About::Pod { key, .. } => format!("{reason} {key}: {note}"),
        };
        let mut shared = self.0.lock();
        let at = shared.at;
        shared.events.push(Noted { at, what });
    }
}

fn write_mark(node: &mut Node, mark: &Mark) {
    let key = match mark {
        Mark::ToBeDeleted { .. } | Mark::Stays => names::TO_BE_DELETED,
        Mark::Candidate { .. } | Mark::Needed => names::DELETION_CANDIDATE,
    };
    objects::taints(node).retain(|taint| taint.key != key);
    match mark {
        Mark::ToBeDeleted { since, cordons } => {
            objects::taints(node).push(objects::taint(key, &since.to_string(), "NoSchedule"));
            if *cordons {
                node.spec.get_or_insert_default().unschedulable = Some(true);
                let annotations = node.metadata.annotations.get_or_insert_default();
                annotations.insert(names::CORDONED.to_owned(), "true".to_owned());
            }
        }
        Mark::Stays => {
            let annotations = node.metadata.annotations.get_or_insert_default();
            if annotations.remove(names::CORDONED).is_some() {
                node.spec.get_or_insert_default().unschedulable = None;
            }
        }
        Mark::Candidate { since } => {
            let taint = objects::taint(key, &since.to_string(), "PreferNoSchedule");
            objects::taints(node).push(taint);
        }
        Mark::Needed => {}
    }
}
