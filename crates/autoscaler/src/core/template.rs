//! What new nodes of a group will be: like a node that it has, or had, or as the provider says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fit::{Cluster, Profile, Template, quantity};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, NodeSpec, NodeStatus, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use registry::{Class, GroupId, NodeName, Registry};

use super::config::Config;
use super::kept::KeptPod;
use super::names;
use super::snapshot::Snapshot;
use super::world::{World, is_mirror};
use crate::provider;

/// A node that is younger may not be all that it will be.
const SAMPLE_AGE_MIN: Duration = Duration::from_mins(1);

/// A node of a group, as far as others of the group are like it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    node: Arc<Node>,
    /// Pods that come with the machine, and not from any controller.
    mirrors: Vec<Arc<KeptPod>>,
}

/// What new nodes of one group will be.
#[derive(Clone, Debug)]
pub(super) struct GroupTemplate {
    pub(super) template: Template,
    pub(super) profile: Profile,
    pub(super) node: Arc<Node>,
}

/// Templates, and why some groups have none.
#[derive(Clone, Debug, Default)]
pub(super) struct Templates {
    pub(super) by_group: BTreeMap<GroupId, GroupTemplate>,
    pub(super) unreadable: BTreeMap<GroupId, String>,
}

// === impl Sample ===

impl Sample {
    pub(super) fn to_objects(&self) -> (Node, Vec<Pod>) {
        (Node::clone(&self.node), self.mirrors.iter().map(|pod| pod.to_pod()).collect())
    }

    pub(super) fn from_objects((node, mirrors): (Node, Vec<Pod>)) -> Self {
        let mirrors = mirrors.into_iter().map(|pod| Arc::new(pod.into())).collect();
        Self { node: Arc::new(node), mirrors }
    }
}

/// Samples of groups that have a node to take one from.
pub(super) fn samples(
    world: &World,
    snapshot: &Snapshot<'_>,
    registry: &Registry,
    (now, config): (Timestamp, &Config),
) -> BTreeMap<GroupId, Sample> {
    let mut samples = BTreeMap::new();
    for (name, view) in registry.nodes() {
        let Some(group) = view.group.as_ref().filter(|group| !samples.contains_key(*group)) else {
            continue;
        };
        let is_old = view.created.checked_add(SAMPLE_AGE_MIN).is_ok_and(|at| at <= now);
        if view.class == Class::Ready
            && is_old
            && let Some(sample) = sample(world, snapshot, name, config)
        {
            samples.insert(group.clone(), sample);
        }
    }
    samples
}

fn sample(
    world: &World,
    snapshot: &Snapshot<'_>,
    name: &NodeName,
    config: &Config,
) -> Option<Sample> {
    let node = Arc::new(sanitized(world.nodes.get(name)?, config));
    let occupants = snapshot.occupants.get(name.as_str()).into_iter().flatten();
    let mirrors = occupants.filter(|occupant| is_mirror(occupant.pod));
    Some(Sample { node, mirrors: mirrors.map(|occupant| Arc::clone(occupant.pod)).collect() })
}

/// A node without what is its own: how it fares, and what befalls it.
fn sanitized(node: &Node, config: &Config) -> Node {
    let mut node = lasting(node, config);
    node.metadata = ObjectMeta { labels: node.metadata.labels, ..ObjectMeta::default() };
    if let Some(spec) = &mut node.spec {
        spec.unschedulable = None;
        spec.provider_id = None;
    }
    if let Some(status) = &mut node.status {
        let capacity = status.capacity.take();
        let allocatable = status.allocatable.take();
        *status = NodeStatus { capacity, allocatable, ..NodeStatus::default() };
    }
    node
}

/// A node as it is once it can be used: with no taint that passes.
fn lasting(node: &Node, config: &Config) -> Node {
    let mut node = node.clone();
    if let Some(spec) = &mut node.spec {
        spec.taints.iter_mut().for_each(|taints| taints.retain(|taint| is_lasting(taint, config)));
    }
    node
}

/// Kubelets label every Node with its name, which a provider cannot tell of one that is not there. Without
/// the label, pods that keep apart or spread by it would find no two nodes there, or none.
fn named(mut node: Node) -> Node {
    node.metadata.labels.get_or_insert_default().entry(names::HOSTNAME.to_owned()).or_default();
    node
}

fn is_lasting(taint: &Taint, config: &Config) -> bool {
    let key = taint.key.as_str();
    let passing = registry::names::STARTUP_TAINT_PREFIXES;
    !(key == names::TO_BE_DELETED
        || key == names::DELETION_CANDIDATE
        || names::CONDITION_TAINTS.contains(&key)
        || key.starts_with(names::STATUS_TAINT_PREFIX)
        || passing.iter().any(|prefix| key.starts_with(prefix))
        || config.startup_taints.contains(key)
        || config.status_taints.contains(key))
}

/// Of each group the sample, or what the provider says.
pub(super) fn templates(
    cluster: &mut Cluster,
    world: &World,
    samples: &BTreeMap<GroupId, Sample>,
    (groups, config): (&[GroupId], &Config),
) -> Templates {
    let mut templates = Templates::default();
    for group in groups {
        let provided = || {
            let node = world.groups.get(group)?.template.as_ref()?;
            Some(Sample { node: Arc::new(named(lasting(node, config))), mirrors: Vec::new() })
        };
        let Some(sample) = samples.get(group).cloned().or_else(provided) else { continue };
        match template(cluster, world, &sample, config) {
            Ok(template) => _ = templates.by_group.insert(group.clone(), template),
            Err(error) => _ = templates.unreadable.insert(group.clone(), error.to_string()),
        }
    }
    templates
}

fn template(
    cluster: &mut Cluster,
    world: &World,
    sample: &Sample,
    config: &Config,
) -> Result<GroupTemplate, quantity::Error> {
    let (mut classes, mut pods) = (Vec::new(), Vec::new());
    for pod in &sample.mirrors {
        // Kubelets start these without asking whether they fit, so taints do not keep them away.
        let Ok(class) = cluster.compile_bound(&pod.kind) else { continue };
        classes.push(class);
        pods.push(Pod::clone(&pod.kind));
    }
    let bare = cluster.template(&sample.node, classes.clone())?;
    let made: Vec<_> = world.daemon_sets.iter().map(|set| daemon(set)).collect();
    let compiled: Vec<_> = made.iter().map(|pod| cluster.compile(pod, &world.volumes)).collect();
    let mut trial = cluster.fork();
    let node = trial.add_from(&bare);
    for (pod, class) in made.into_iter().zip(compiled) {
        // What cannot be told is not counted: the node is then found fuller than planned, and more
        // is asked for in the next iteration.
        let Some(class) = class.ok().filter(|class| trial.fits(*class, node)) else { continue };
        trial.place(class, node);
        classes.push(class);
        pods.push(pod);
    }
    let ignored = &config.scale_up.balancing_ignored_labels;
    Ok(GroupTemplate {
        template: cluster.template(&sample.node, classes)?,
        profile: Profile::new(&sample.node, &pods, ignored)?,
        node: Arc::clone(&sample.node),
    })
}

/// A pod that a DaemonSet would make.
fn daemon(set: &DaemonSet) -> Pod {
    let template = set.spec.as_ref().map(|spec| &spec.template);
    let mut spec = template.and_then(|template| template.spec.clone()).unwrap_or_default();
    let tolerated = names::DAEMON_TOLERATIONS.map(|(key, effect)| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    });
    spec.tolerations.get_or_insert_default().extend(tolerated);
    let labels = template.and_then(|template| template.metadata.as_ref()?.labels.clone());
    let owner = OwnerReference {
        kind: "DaemonSet".to_owned(),
        name: set.metadata.name.clone().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    Pod {
        metadata: ObjectMeta {
            namespace: set.metadata.namespace.clone(),
            labels,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// A Node that is all the provider says of a group's nodes.
#[must_use]
pub fn node_of(template: &provider::Template) -> Node {
    let quantities = |texts: &BTreeMap<String, String>| {
        let written = |(name, text): (&String, &String)| (name.clone(), Quantity(text.clone()));
        Some(texts.iter().map(written).collect())
    };
    let taint = |taint: &provider::TemplateTaint| Taint {
        key: taint.key.clone(),
        value: Some(taint.value.clone()),
        effect: taint.effect.clone(),
        ..Taint::default()
    };
    Node {
        metadata: ObjectMeta {
            labels: Some(template.labels.clone()),
            annotations: Some(template.annotations.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: Some(template.taints.iter().map(taint).collect()),
            unschedulable: template.is_unschedulable.then_some(true),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: quantities(&template.capacity),
            allocatable: quantities(&template.allocatable),
            ..NodeStatus::default()
        }),
    }
}
