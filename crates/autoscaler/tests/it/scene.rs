//! One iteration on a cluster in few words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use autoscaler::core::{
    Account, Action, Call, Config, Effect, GroupSettings, Inputs, Iteration, Memory, Next, World,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{self as core, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use registry::{
    Condition, ConditionStatus, Facts, Group, Instance, InstanceState, Membership, Options,
    Registry, Taint,
};
use serde::Deserialize;

/// A cluster as tests write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    #[serde(default)]
    pub(crate) groups: Vec<GroupWords>,
    #[serde(default)]
    pub(crate) nodes: Vec<NodeWords>,
    #[serde(default)]
    pub(crate) pods: Vec<PodWords>,
    #[serde(default)]
    pub(crate) daemons: Vec<PodWords>,
    #[serde(default)]
    pub(crate) budgets: BTreeMap<String, i32>,
    /// Controllers of pods that are gone.
    #[serde(default)]
    pub(crate) orphaned: Vec<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupWords {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) min: i64,
    #[serde(default = "ten")]
    pub(crate) max: i64,
    /// As many as it has nodes, if it does not say.
    pub(crate) target: Option<i64>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) taints: Vec<core::Taint>,
    /// What new nodes have; without, there is no template.
    pub(crate) new: Option<BTreeMap<String, Quantity>>,
    #[serde(default)]
    pub(crate) fault: bool,
    #[serde(default)]
    pub(crate) zero_or_max: bool,
    pub(crate) threshold: Option<f64>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeWords {
    pub(crate) name: String,
    pub(crate) group: Option<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) taints: Vec<core::Taint>,
    #[serde(default)]
    pub(crate) allocatable: BTreeMap<String, Quantity>,
    /// For how many minutes it is unready; ready, if it does not say.
    pub(crate) unready: Option<u64>,
    /// Minutes since it was created.
    #[serde(default = "day")]
    pub(crate) age: u64,
    #[serde(default)]
    pub(crate) suspended: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodWords {
    pub(crate) name: String,
    /// Without, it waits for one.
    pub(crate) node: Option<String>,
    pub(crate) nominated: Option<String>,
    #[serde(default)]
    pub(crate) cpu: Option<String>,
    #[serde(default)]
    pub(crate) memory: Option<String>,
    /// Its controller, and what its budget knows it by.
    pub(crate) app: Option<String>,
    #[serde(default = "replica_set")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) spec: core::PodSpec,
    #[serde(default)]
    pub(crate) priority: Option<i32>,
    /// Minutes since it was created.
    #[serde(default = "day")]
    pub(crate) age: u64,
    pub(crate) phase: Option<String>,
}

fn ten() -> i64 {
    10
}

fn day() -> u64 {
    24 * 60
}

fn replica_set() -> String {
    "ReplicaSet".to_owned()
}

/// A cluster and those who look after it.
pub(crate) struct Scene {
    pub(crate) now: Timestamp,
    pub(crate) seed: u64,
    pub(crate) words: Words,
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) memory: Memory,
    /// How every call ends.
    pub(crate) effect: Effect,
    /// Whose calls end otherwise, and how.
    pub(crate) struck: Option<(String, Effect)>,
    pub(crate) actions: Vec<Action>,
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new(yaml: &str) -> Self {
        Self {
            now: "2026-03-01T08:00:00Z".parse().unwrap(),
            seed: 0,
            words: serde_saphyr::from_str(yaml).expect("a cluster"),
            config: Config::default(),
            registry: Registry::new(registry::Config::default()),
            memory: Memory::new(),
            effect: Effect::Done,
            struck: None,
            actions: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// One iteration; what it wanted done is in `actions`.
    pub(crate) fn run(&mut self) -> Account {
        let (facts, world) = (self.facts(), self.world());
        let Self { now, seed, config, registry, memory, effect, struck, actions, .. } = self;
        let effect_of = |action: &Action| match (action, &struck) {
            (Action::Call(call), Some((group, own))) if call.group().0 == *group => own,
            _ => &*effect,
        };
        let inputs = Inputs { now: *now, seed: *seed, facts: &facts, world: &world, config };
        let mut iteration = Iteration::begin(inputs, registry, memory);
        actions.clear();
        loop {
            match iteration.next(registry, memory, 3) {
                Next::Act(action) => {
                    iteration.on_effect(effect_of(&action), memory);
                    actions.push(action);
                }
                Next::Working => {}
                Next::Ended => return iteration.into_account(),
            }
        }
    }

    /// Iterations, one every ten seconds, for so long.
    pub(crate) fn run_for(&mut self, span: Duration) -> Account {
        let end = self.now + span;
        loop {
            let account = self.run();
            if self.now >= end {
                return account;
            }
            self.now += Duration::from_secs(10);
        }
    }

    /// The calls of the last iteration.
    pub(crate) fn calls(&self) -> Vec<&Call> {
        let call = |action: &'_ Action| matches!(action, Action::Call(_));
        let calls = self.actions.iter().filter(|action| call(action));
        calls
            .map(|action| match action {
                Action::Call(call) => call,
                _ => unreachable!("others are left out"),
            })
            .collect()
    }

    pub(crate) fn facts(&self) -> Facts {
        let group = |words: &GroupWords| {
            let of_group = |node: &&NodeWords| node.group.as_ref() == Some(&words.id);
            let nodes: Vec<_> = self.words.nodes.iter().filter(of_group).collect();
            let instance = |node: &&NodeWords| Instance {
                id: provider_id(&node.name).as_str().into(),
                state: Some(InstanceState::Running),
                error: None,
            };
            let fault = || registry::Fault("scripted".to_owned());
            let target = words.target.unwrap_or(i64::try_from(nodes.len()).unwrap());
            Group {
                id: words.id.as_str().into(),
                min: words.min,
                max: words.max,
                exists: true,
                options: Options::default(),
                target: if words.fault { Err(fault()) } else { Ok(target) },
                instances: Ok(nodes.iter().map(instance).collect()),
            }
        };
        Facts {
            nodes: self.words.nodes.iter().map(|node| self.fact(node)).collect(),
            groups: Ok(self.words.groups.iter().map(group).collect()),
        }
    }

    fn fact(&self, words: &NodeWords) -> registry::Node {
        let node = self.node(words);
        let condition = |status| Condition { status, last_transition: Some(self.since(words)) };
        let is = |claim| if claim { ConditionStatus::True } else { ConditionStatus::False };
        let mut conditions =
            BTreeMap::from([("Ready".to_owned(), condition(is(words.unready.is_none())))]);
        if words.suspended {
            conditions.insert("Suspended".to_owned(), condition(ConditionStatus::True));
        }
        let taint = |taint: &core::Taint| Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
        };
        registry::Node {
            created: self.ago(words.age),
            name: words.name.as_str().into(),
            provider_id: provider_id(&words.name),
            conditions,
            taints: words.taints.iter().map(taint).collect(),
            labels: node.metadata.labels.unwrap_or_default(),
            annotations: words.annotations.clone(),
            missing_resources: Default::default(),
            membership: match &words.group {
                Some(group) => Membership::Group(group.as_str().into()),
                None => Membership::Unmanaged,
            },
        }
    }

    fn since(&self, words: &NodeWords) -> Timestamp {
        self.ago(words.unready.unwrap_or(words.age))
    }

    fn ago(&self, minutes: u64) -> Timestamp {
        let start: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        start - Duration::from_mins(minutes)
    }

    fn node(&self, words: &NodeWords) -> Node {
        let mut labels = words.labels.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), words.name.clone());
        let resources = resources(&words.allocatable);
        Node {
            metadata: ObjectMeta {
                name: Some(words.name.clone()),
                labels: Some(labels),
                annotations: Some(words.annotations.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(core::NodeSpec {
                taints: Some(words.taints.clone()),
                provider_id: Some(provider_id(&words.name)),
                ..core::NodeSpec::default()
            }),
            status: Some(core::NodeStatus {
                allocatable: Some(resources.clone()),
                capacity: Some(resources),
                ..core::NodeStatus::default()
            }),
        }
    }

    pub(crate) fn world(&self) -> World {
        let mut world = World {
            namespaces: ["default", "kube-system"]
                .map(|it| (it.to_owned(), Default::default()))
                .into(),
            budgets: self
                .words
                .budgets
                .iter()
                .map(|(app, allowed)| budget(app, *allowed))
                .collect(),
            ..World::default()
        };
        for words in &self.words.nodes {
            world.nodes.insert(words.name.as_str().into(), Arc::new(self.node(words)));
        }
        for words in &self.words.pods {
            let pod = self.pod(words);
            let app = words.app.clone().unwrap_or_default();
            if !self.words.orphaned.contains(&app) {
                let namespace = pod.metadata.namespace.clone().unwrap();
                world.controllers.add(&namespace, &words.kind, &app, Some(3));
            }
            world.pods.push(Arc::new(pod.into()));
        }
        world.daemon_sets = self.words.daemons.iter().map(|it| Arc::new(self.daemon(it))).collect();
        for words in &self.words.groups {
            let settings = GroupSettings {
                template: words.new.as_ref().map(|new| Arc::new(template(words, new))),
                utilization_threshold: words.threshold,
                ignores_daemon_sets: None,
                is_zero_or_max: words.zero_or_max,
            };
            world.groups.insert(words.id.as_str().into(), settings);
        }
        world
    }

    fn daemon(&self, words: &PodWords) -> DaemonSet {
        let pod = self.pod(words);
        let mut set = DaemonSet::default();
        set.metadata.name = Some(words.name.clone());
        set.metadata.namespace = pod.metadata.namespace;
        let spec = set.spec.get_or_insert_default();
        spec.template.spec = pod.spec;
        set
    }

    pub(crate) fn pod(&self, words: &PodWords) -> Pod {
        let requests = [("cpu", &words.cpu), ("memory", &words.memory)];
        let requests = requests
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), Quantity(amount.clone()?))));
        let container = core::Container {
            name: "main".to_owned(),
            resources: Some(core::ResourceRequirements {
                requests: Some(requests.collect()),
                ..core::ResourceRequirements::default()
            }),
            ..core::Container::default()
        };
        let owner = words.app.as_ref().map(|app| {
            vec![OwnerReference {
                kind: words.kind.clone(),
                name: app.clone(),
                controller: Some(true),
                ..OwnerReference::default()
            }]
        });
        let unschedulable = core::PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            ..core::PodCondition::default()
        };
        let phase = if words.node.is_some() { "Running" } else { "Pending" };
        let labels = words.app.iter().map(|app| ("app".to_owned(), app.clone()));
        Pod {
            metadata: ObjectMeta {
                name: Some(words.name.clone()),
                namespace: Some(words.namespace.clone().unwrap_or_else(|| "default".to_owned())),
                labels: Some(labels.collect()),
                annotations: Some(words.annotations.clone()),
                owner_references: owner,
                creation_timestamp: Some(Time(self.ago(words.age))),
                ..ObjectMeta::default()
            },
            spec: Some(core::PodSpec {
                containers: vec![container],
                node_name: words.node.clone(),
                priority: words.priority,
                restart_policy: words.spec.restart_policy.clone().or(Some("Always".to_owned())),
                ..words.spec.clone()
            }),
            status: Some(core::PodStatus {
                phase: Some(words.phase.clone().unwrap_or_else(|| phase.to_owned())),
                conditions: words.node.is_none().then(|| vec![unschedulable]),
                nominated_node_name: words.nominated.clone(),
                ..core::PodStatus::default()
            }),
        }
    }
}

fn provider_id(node: &str) -> String {
    format!("cloud://{node}")
}

/// Four cores, 8 GiB and ten pods, unless it says otherwise.
fn resources(more: &BTreeMap<String, Quantity>) -> BTreeMap<String, Quantity> {
    let all = [("cpu", "4"), ("memory", "8Gi"), ("pods", "10")];
    let all = all.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    let mut resources = BTreeMap::from(all);
    resources.extend(more.clone());
    resources
}

fn template(words: &GroupWords, new: &BTreeMap<String, Quantity>) -> Node {
    let resources = resources(new);
    Node {
        metadata: ObjectMeta { labels: Some(words.labels.clone()), ..ObjectMeta::default() },
        spec: Some(core::NodeSpec {
            taints: Some(words.taints.clone()),
            ..core::NodeSpec::default()
        }),
        status: Some(core::NodeStatus {
            allocatable: Some(resources.clone()),
            capacity: Some(resources),
            ..core::NodeStatus::default()
        }),
    }
}

fn budget(app: &str, allowed: i32) -> PodDisruptionBudget {
    let words = format!(
        "{{metadata: {{name: {app}, namespace: default}}, spec: {{selector: {{matchLabels: {{app: {app}}}}}}}, status: {{disruptionsAllowed: {allowed}, currentHealthy: 9, desiredHealthy: 8, expectedPods: 9}}}}"
    );
    serde_saphyr::from_str(&words).unwrap()
}
