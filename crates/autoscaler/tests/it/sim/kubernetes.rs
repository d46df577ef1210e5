//! What others do in a cluster: kubelets, the node lifecycle, controllers, budgets, the scheduler.

use std::collections::BTreeMap;
use std::time::Duration;

use autoscaler::core::PodKey;
use fit::{Cluster, Volumes};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, Time};
use registry::{ConditionStatus, NodeName};
use simcloud::core::Cloud;
use simcloud::core::kubelet::{Command, PodName, Seen, SeenNode, SeenPod};

use super::objects::{
    self, Deployment, NOT_READY, UNREACHABLE, bound_to, has_taint, is_terminating, scheduled, taint,
};

/// As the controller manager has it.
const EVICTION_AFTER: Duration = Duration::from_secs(300);

/// The objects of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kubernetes {
    pub(crate) nodes: BTreeMap<NodeName, Node>,
    pub(crate) pods: BTreeMap<PodKey, Pod>,
    pub(crate) deployments: Vec<Deployment>,
    pub(crate) daemon_sets: Vec<DaemonSet>,
    /// Disruptions that were allowed since budgets were last worked out.
    spent: BTreeMap<String, usize>,
}

// === impl Kubernetes ===

impl Kubernetes {
    /// Everybody does what is to be done now.
    pub(crate) fn tick(&mut self, cloud: &Cloud, now: Timestamp) {
        for command in cloud.plan(&self.seen(now)) {
            self.obey(command, cloud);
        }
        self.tend_nodes(now);
        self.replicate(now);
        self.spent.clear();
        self.schedule(now);
    }

    fn seen(&self, now: Timestamp) -> Seen {
        let node = |(name, node): (&NodeName, &Node)| {
            let seen = SeenNode {
                ready: Some(ready(node).0),
                has_not_ready_taint: has_taint(node, NOT_READY),
            };
            (name.clone(), seen)
        };
        let pod = |(key, pod): (&PodKey, &Pod)| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            Some(SeenPod {
                pod: PodName { namespace: key.namespace.clone(), name: key.name.clone() },
                node: bound_to(pod)?.into(),
                is_pending: phase == Some("Pending"),
                is_terminating: is_terminating(pod),
            })
        };
        Seen {
            nodes: self.nodes.iter().map(node).collect(),
            pods: self.pods.iter().filter_map(pod).collect(),
            renewals: self.nodes.keys().map(|name| (name.clone(), now)).collect(),
        }
    }

    fn obey(&mut self, command: Command, cloud: &Cloud) {
        let key = |pod: PodName| PodKey { namespace: pod.namespace, name: pod.name };
        match command {
            Command::Register(name) => {
                let found = cloud.nodes().find(|node| node.name == name).expect("it registers");
                let template = cloud.template_of(found).expect("it has a group");
                let mut node = objects::node(found, &template);
                if ready(&node).0 == ConditionStatus::True {
                    objects::taints(&mut node).retain(|taint| taint.key != NOT_READY);
                }
                self.nodes.insert(name, node);
            }
            Command::Report { node, ready, since } => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    let status = node.status.get_or_insert_default();
                    status.conditions = Some(vec![objects::ready(ready, since)]);
                }
            }
            Command::LiftTaint(node) => {
                if let Some(node) = self.nodes.get_mut(&node) {
                    objects::taints(node).retain(|taint| taint.key != NOT_READY);
                }
            }
            Command::Renew(_) => {}
            Command::Remove(node) => _ = self.nodes.remove(&node),
            Command::Run(pod) => {
                if let Some(pod) = self.pods.get_mut(&key(pod)) {
                    pod.status.get_or_insert_default().phase = Some("Running".to_owned());
                }
            }
            Command::End(pod) => _ = self.pods.remove(&key(pod)),
        }
    }

    /// Unready nodes are tainted, and their pods deleted after a while.
    fn tend_nodes(&mut self, now: Timestamp) {
        let mut doomed = Vec::new();
        for (name, node) in &mut self.nodes {
            let (status, since) = ready(node);
            objects::taints(node).retain(|taint| taint.effect != "NoExecute");
            let key = match status {
                ConditionStatus::True => continue,
                ConditionStatus::False => NOT_READY,
                ConditionStatus::Unknown => UNREACHABLE,
            };
            objects::taints(node).push(taint(key, "", "NoExecute"));
            if since + EVICTION_AFTER <= now {
                doomed.push(name.clone());
            }
        }
        for pod in self.pods.values_mut() {
            let is_doomed = bound_to(pod).is_some_and(|node| doomed.iter().any(|it| it.0 == node));
            if is_doomed && !is_terminating(pod) {
                pod.metadata.deletion_timestamp = Some(Time(now));
            }
        }
    }

    /// Deployments have as many pods as they should.
    fn replicate(&mut self, now: Timestamp) {
        let mut deployments = std::mem::take(&mut self.deployments);
        for deployment in &mut deployments {
            let live: Vec<PodKey> = self
                .of(&deployment.name)
                .filter(|(_, pod)| !is_terminating(pod))
                .map(|(key, _)| key.clone())
                .collect();
            for _ in live.len()..deployment.replicas {
                let pod = deployment.make(now);
                self.pods.insert(PodKey::of(&pod.clone().into()), pod);
            }
            for key in live.iter().skip(deployment.replicas) {
                let pod = self.pods.get_mut(key).expect("it was just listed");
                if bound_to(pod).is_some() {
                    pod.metadata.deletion_timestamp = Some(Time(now));
                } else {
                    self.pods.remove(key);
                }
            }
        }
        self.deployments = deployments;
    }

    pub(crate) fn of(&self, deployment: &str) -> impl Iterator<Item = (&PodKey, &Pod)> {
        let is_of = move |pod: &Pod| {
            let labels = pod.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get("app")).is_some_and(|app| app == deployment)
        };
        self.pods.iter().filter(move |(_, pod)| is_of(pod))
    }

    /// By the rules of `fit`, whose agreement with the real one is tested elsewhere.
    fn schedule(&mut self, now: Timestamp) {
        let waits = |pod: &Pod| bound_to(pod).is_none() && !is_terminating(pod);
        if !self.pods.values().any(waits) {
            return;
        }
        let namespaces = BTreeMap::from([("default".to_owned(), BTreeMap::new())]);
        let mut cluster = Cluster::new(&namespaces);
        let mut hosts = BTreeMap::new();
        for (name, node) in &self.nodes {
            hosts.insert(name.0.clone(), cluster.add_node(node).unwrap());
        }
        for pod in self.pods.values() {
            if let Some(host) = bound_to(pod).and_then(|node| hosts.get(node)) {
                let class = cluster.compile_bound(pod).unwrap();
                cluster.place(class, *host);
            }
        }
        for pod in self.pods.values_mut().filter(|pod| waits(pod)) {
            let Ok(class) = cluster.compile(pod, &Volumes::default()) else {
                scheduled(pod, None, now);
                continue;
            };
            let place = hosts.iter().find(|(_, host)| cluster.fits(class, **host));
            if let Some((_, host)) = place {
                cluster.place(class, *host);
            }
            scheduled(pod, place.map(|(name, _)| name.as_str()), now);
        }
    }

    /// Whether a pod was let go.
    pub(crate) fn evict(&mut self, key: &PodKey, now: Timestamp) -> bool {
        let Some(pod) = self.pods.get(key) else { return true };
        let app = pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).cloned();
        let app = app.unwrap_or_default();
        if self.allowed(&app) == Some(0) {
            return false;
        }
        *self.spent.entry(app).or_default() += 1;
        let pod = self.pods.get_mut(key).expect("it was just seen");
        pod.metadata.deletion_timestamp = Some(Time(now));
        true
    }

    /// How many disruptions a deployment's budget allows; none if it has no budget.
    fn allowed(&self, app: &str) -> Option<usize> {
        let deployment = self.deployments.iter().find(|it| it.name == app)?;
        let min = deployment.min_available?;
        let is_up = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let node = bound_to(pod).and_then(|node| self.nodes.get(node));
            let is_on_ready = node.is_some_and(|node| ready(node).0 == ConditionStatus::True);
            phase == Some("Running") && !is_terminating(pod) && is_on_ready
        };
        let healthy = self.of(app).filter(|(_, pod)| is_up(pod)).count();
        Some(healthy.saturating_sub(min))
    }

    pub(crate) fn budgets(&self) -> Vec<PodDisruptionBudget> {
        let budget = |deployment: &Deployment| {
            let (name, allowed) = (&deployment.name, self.allowed(&deployment.name)?);
            let labels = [("app".to_owned(), name.clone())].into();
            let selector = LabelSelector { match_labels: Some(labels), match_expressions: None };
            Some(PodDisruptionBudget {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    namespace: Some("default".to_owned()),
                    ..ObjectMeta::default()
                },
                spec: Some(PodDisruptionBudgetSpec {
                    selector: Some(selector),
                    ..PodDisruptionBudgetSpec::default()
                }),
                status: Some(PodDisruptionBudgetStatus {
                    disruptions_allowed: i32::try_from(allowed).unwrap(),
                    ..PodDisruptionBudgetStatus::default()
                }),
            })
        };
        self.deployments.iter().filter_map(budget).collect()
    }
}

/// Condition Ready, and since when it is so.
pub(crate) fn ready(node: &Node) -> (ConditionStatus, Timestamp) {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|it| it.type_ == "Ready").expect("it says");
    let status = match ready.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    (status, ready.last_transition_time.as_ref().expect("it says when").0)
}
