//! A whole cluster in one process, with a clock that only the test moves: the simulated cloud, what
//! others do in Kubernetes, and the autoscaler's own loop, which can be killed at any write and call.

mod cluster;
pub(crate) mod driver;
pub(crate) mod kubernetes;
pub(crate) mod objects;
mod provider;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::time::Duration;

use autoscaler::Recorder;
use autoscaler::core::{Account, Config, Memory};
use autoscaler::options::Options;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use registry::{GroupId, NodeName, Registry};
use simcloud::core::Cloud;
use simcloud::scenario::Scenario;

use kubernetes::Kubernetes;
use objects::Deployment;

pub(crate) use cluster::{INTERRUPTED, Interruption};

/// What one tick of the clock is.
pub(crate) const TICK: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Sim {
    pub(crate) started: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) cloud: Cloud,
    pub(crate) kube: Kubernetes,
    pub(crate) config: Config,
    pub(crate) rules: registry::Config,
    /// What else the process is told.
    pub(crate) told: fn(&mut Options),
    /// As the loop left them.
    pub(crate) registry: Registry,
    pub(crate) memory: Memory,
    pub(crate) account: Account,
    /// What is kept where a restart finds it.
    pub(crate) saved: Option<driver::Kept>,
    /// What iterations are recorded to, from the next process on.
    pub(crate) recorder: Option<Recorder>,
    process: Option<driver::Process>,
    /// Calls that reached the provider and changed something, and writes that others see.
    pub(crate) calls: Vec<Noted>,
    pub(crate) events: Vec<Noted>,
    /// How many writes and calls there were.
    pub(crate) points: usize,
    /// At which of them the process dies.
    pub(crate) dies_at: Option<usize>,
    /// Which of them a call to the provider follows.
    pub(crate) calling: BTreeSet<usize>,
    /// Whether the state is lost with the process.
    pub(crate) loses_state: bool,
    /// Whether every iteration begins with what was saved.
    pub(crate) restarts_always: bool,
    pub(crate) is_fenced: bool,
    /// How many targets the loop has read.
    pub(crate) reads: usize,
    pub(crate) interruption: Option<Interruption>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) at: Duration,
    pub(crate) what: String,
}

// === impl Sim ===

impl Sim {
    /// A cloud that has been there for an hour; nodes become Unknown after 50 s of silence.
    pub(crate) fn new(scenario: &str) -> Self {
        let scenario = format!("unknown_after: 50s\n{scenario}");
        let started: Timestamp = "2026-03-01T08:00:00Z".parse().unwrap();
        let cloud = Cloud::new(Scenario::parse(&scenario).expect("a scenario"), started);
        let config = Config::default();
        let rules = registry::Config {
            drain_timeout: config.drain_timeout(),
            observation_gap_tolerance: Some(Duration::from_mins(2)),
            ..registry::Config::default()
        };
        let mut sim = Self {
            started,
            now: started,
            cloud,
            kube: Kubernetes::default(),
            registry: Registry::new(rules.clone()),
            rules,
            config,
            told: |_| {},
            memory: Memory::new(),
            account: Account::default(),
            saved: Some(driver::Kept::nothing_under_way()),
            recorder: None,
            process: None,
            calls: Vec::new(),
            events: Vec::new(),
            points: 0,
            dies_at: None,
            calling: BTreeSet::new(),
            loses_state: false,
            restarts_always: false,
            is_fenced: false,
            reads: 0,
            interruption: None,
        };
        sim.kube.tick(&sim.cloud, started);
        for node in sim.kube.nodes.values_mut() {
            let created = Time(started - Duration::from_hours(1));
            node.metadata.creation_timestamp = Some(created);
        }
        sim
    }

    /// The same world, in which a new process has yet to begin.
    pub(crate) fn fork(&self) -> Self {
        Self {
            started: self.started,
            now: self.now,
            cloud: self.cloud.clone(),
            kube: self.kube.clone(),
            config: self.config.clone(),
            rules: self.rules.clone(),
            told: self.told,
            registry: self.registry.clone(),
            memory: self.memory.clone(),
            account: self.account.clone(),
            saved: self.saved.clone(),
            recorder: None,
            process: None,
            calls: self.calls.clone(),
            events: self.events.clone(),
            points: 0,
            dies_at: None,
            calling: BTreeSet::new(),
            loses_state: false,
            restarts_always: false,
            is_fenced: self.is_fenced,
            reads: 0,
            interruption: None,
        }
    }

    /// Other rules for the registry; to be called before time passes.
    pub(crate) fn with_rules(mut self, change: impl FnOnce(&mut registry::Config)) -> Self {
        change(&mut self.rules);
        self.registry = Registry::new(self.rules.clone());
        self
    }

    pub(crate) fn with_config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn deploy(&mut self, name: &str, replicas: usize, cpu: &str) -> &mut Deployment {
        self.kube.deployments.push(Deployment::new(name, replicas, cpu, "100Mi"));
        self.kube.deployments.last_mut().unwrap()
    }

    pub(crate) fn scale(&mut self, name: &str, replicas: usize) {
        let mut all = self.kube.deployments.iter_mut();
        all.find(|deployment| deployment.name == name).expect("it is there").replicas = replicas;
    }

    /// Everything moves on by one tick.
    pub(crate) fn tick(&mut self) {
        self.advance();
        self.iterate();
    }

    /// Everything but the autoscaler does.
    pub(crate) fn advance(&mut self) {
        self.now += TICK;
        self.cloud.step(self.now);
        self.kube.tick(&self.cloud, self.now);
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.tick();
        }
    }

    /// Until the claim holds, which it must within the limit.
    pub(crate) fn run_until(&mut self, limit: Duration, claim: impl Fn(&Self) -> bool) -> Duration {
        let end = self.now + limit;
        while !claim(self) {
            assert!(self.now < end, "not within {limit:?}; so far:\n{}", self.story());
            self.tick();
        }
        self.elapsed()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::try_from(self.now.duration_since(self.started)).unwrap()
    }

    /// By somebody else.
    pub(crate) fn raise_by_hand(&mut self, group: &str, by: u32) {
        let by = NonZeroU32::new(by).unwrap();
        self.cloud.increase(self.now, &group.into(), by).unwrap();
    }

    pub(crate) fn target(&mut self, group: &str) -> u32 {
        self.cloud.target(self.now, &GroupId::from(group)).unwrap()
    }

    pub(crate) fn upcoming(&self, group: &str) -> u32 {
        self.registry.upcoming(&group.into(), self.now).count
    }

    pub(crate) fn class(&self, node: &str) -> Option<registry::Class> {
        self.registry.node(&NodeName::from(node)).map(|view| view.class)
    }

    pub(crate) fn has_node(&self, node: &str) -> bool {
        self.kube.nodes.contains_key(node)
    }

    /// Pods of a deployment that run.
    pub(crate) fn running(&self, deployment: &str) -> usize {
        let is_running = |pod: &k8s_openapi::api::core::v1::Pod| {
            pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
                && !objects::is_terminating(pod)
        };
        self.kube.of(deployment).filter(|(_, pod)| is_running(pod)).count()
    }

    /// Calls whose words begin so.
    pub(crate) fn calls(&self, start: &str) -> Vec<&Noted> {
        self.calls.iter().filter(|noted| noted.what.starts_with(start)).collect()
    }

    pub(crate) fn has_event(&self, words: &str) -> bool {
        self.events.iter().any(|noted| noted.what.contains(words))
    }

    /// Why a node stays, by the last iteration.
    pub(crate) fn kept(&self, node: &str) -> String {
        self.account.kept.get(node).map(ToString::to_string).unwrap_or_default()
    }

    /// What happened so far, for those who look into a failure.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        let mut all: Vec<_> = self.calls.iter().chain(&self.events).collect();
        all.sort_by_key(|noted| noted.at);
        for Noted { at, what } in all {
            writeln!(story, "{:>8}s {what}", at.as_secs()).unwrap();
        }
        for (node, against) in &self.account.kept {
            writeln!(story, "{node} stays: {against}").unwrap();
        }
        for (pod, verdict) in &self.account.pods {
            writeln!(story, "{pod}: {verdict:?}").unwrap();
        }
        for (group, verdict) in &self.account.groups {
            writeln!(story, "{group}: {verdict:?}").unwrap();
        }
        story
    }
}

/// Minutes.
pub(crate) fn mins(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// Seconds.
pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
