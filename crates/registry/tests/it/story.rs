//! A registry that lives through a story, and what it says in few words.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;
use registry::{
    Action, Config, Decision, GroupId, NodeName, Notices, Observation, Outcome, Registry, Step,
};

use crate::scene::{beginning, facts, span};

pub(crate) struct Story {
    pub(crate) registry: Registry,
    pub(crate) now: Timestamp,
}

/// The limits of the acceptance cases.
pub(crate) fn config() -> Config {
    Config { unready_percentage_max: 10.0, unready_count_ok: 1, ..Config::default() }
}

// === impl Story ===

impl Story {
    pub(crate) fn new() -> Self {
        Self::of(Registry::new(config()))
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        Self::of(Registry::new(config))
    }

    pub(crate) fn of(registry: Registry) -> Self {
        Self { registry, now: beginning() }
    }

    /// So long after the beginning.
    pub(crate) fn at(&mut self, after: &str) -> &mut Self {
        self.now = beginning() + span(after);
        self
    }

    pub(crate) fn observe(&mut self, text: &str) -> Observation {
        self.registry.observe(self.now, &facts(text))
    }

    /// Sees this and says what to do.
    pub(crate) fn see(&mut self, text: &str) -> String {
        show(&self.observe(text))
    }

    fn record(&mut self, action: Action, step: Step) -> Notices {
        self.registry.record(self.now, &Outcome { action, step }).expect("there is room")
    }

    /// Asks for `delta` nodes where the target was `baseline`.
    pub(crate) fn ask(&mut self, group: &str, delta: u32, baseline: u32) -> &mut Self {
        let action = Action::Increase { group: group.into(), delta, baseline };
        self.record(action, Step::Requested);
        self
    }

    pub(crate) fn increased(&mut self, group: &str, delta: u32, step: Step) -> String {
        let action = Action::Increase { group: group.into(), delta, baseline: 0 };
        show_notices(&self.record(action, step))
    }

    pub(crate) fn decreased(&mut self, group: &str, delta: u32, step: Step) -> String {
        show_notices(&self.record(Action::Decrease { group: group.into(), delta }, step))
    }

    pub(crate) fn deleted(&mut self, instance: &str, step: Step) -> String {
        let group = instance.trim_start_matches("sim/").split('-').next().expect("a group");
        let action = Action::Delete { group: group.into(), instance: instance.into() };
        show_notices(&self.record(action, step))
    }

    pub(crate) fn unneeded(&mut self, names: &[&str]) -> &mut Self {
        let names: BTreeSet<NodeName> = names.iter().map(|name| (*name).into()).collect();
        self.registry.mark_unneeded(self.now, &names);
        self
    }

    /// A group in a line.
    pub(crate) fn group(&self, group: &str) -> String {
        let id: GroupId = group.into();
        let Some(terms) = self.registry.terms(&id, self.now) else { return "unknown".to_owned() };
        let is_healthy = self.registry.is_group_healthy(&id, self.now).expect("it is known");
        let range = terms.range();
        let (upcoming, missing) = (terms.upcoming(), terms.missing());
        let health = if is_healthy { "healthy" } else { "unhealthy" };
        format!("{health}, {}..{}, upcoming {upcoming}, missing {missing}", range.min, range.max)
    }

    pub(crate) fn upcoming(&self, group: &str) -> u32 {
        self.registry.upcoming(&group.into(), self.now).count
    }

    /// Class and name of everything, by class.
    pub(crate) fn classes(&self) -> String {
        let nodes = self.registry.nodes().map(|(name, node)| (node.class, name.as_str()));
        let instances = self.registry.unregistered().map(|(id, it)| (it.class, id.as_str()));
        let all: BTreeSet<_> = nodes.chain(instances).collect();
        let words: Vec<String> =
            all.iter().map(|(class, name)| format!("{class} {name}")).collect();
        words.join(", ")
    }

    pub(crate) fn class(&self, node: &str) -> String {
        self.registry.node(&node.into()).map_or("none".to_owned(), |node| node.class.to_string())
    }

    /// `own 4 since +0s`
    pub(crate) fn requests(&self, group: &str) -> String {
        let group = group.into();
        let words = self.registry.requests(&group).map(|request| {
            let since = request.opened.duration_since(beginning()).as_secs();
            format!("{} since {since}s", request.increase)
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// What keeps a group from growing.
    pub(crate) fn refusals(&self, group: &str) -> String {
        let refusals = self.registry.scale_up_refusals(&group.into(), self.now);
        refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// The nodes whose time has come.
    pub(crate) fn removable(&self) -> String {
        let all = self.registry.removable(self.now);
        let words = all.iter().map(|removal| format!("{:?} {}", removal.reason, removal.node));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Health, scale-up and scale-down of the cluster and of each group.
    pub(crate) fn statuses(&self) -> String {
        let status = self.registry.status(self.now);
        let cluster = status.cluster_wide.expect("something was observed");
        let health = cluster.health.status;
        let (up, down) = (cluster.scale_up.status, cluster.scale_down.status);
        let mut text = format!("cluster {health:?} {up:?} {down:?}");
        for group in status.node_groups {
            let health = group.health.health.status;
            let (up, down) = (group.scale_up.state.status, group.scale_down.status);
            write!(text, "\n{} {health:?} {up:?} {down:?}", group.name).expect("text");
        }
        text
    }

    /// Backoff of a group in minutes left, and its code.
    pub(crate) fn backoff(&self, group: &str) -> String {
        let Some(backoff) = self.registry.backoff(&group.into(), self.now) else {
            return "none".to_owned();
        };
        let left = Duration::try_from(backoff.until.duration_since(self.now)).expect("it is on");
        format!("{} {}m of {}m", backoff.code, left.as_secs() / 60, backoff.duration.as_secs() / 60)
    }
}

/// Each decision, failure, event and report in a line.
pub(crate) fn show(observation: &Observation) -> String {
    let mut text = String::new();
    for decision in &observation.decisions {
        let line = match decision {
            Decision::Halt(halt) => format!("halt: {halt}"),
            Decision::RemoveInstance { instance, reason, .. } => {
                format!("remove {instance}: {reason:?}")
            }
            Decision::ReduceTarget { group, delta } => format!("reduce {group} by {delta}"),
            Decision::LiftTaint { node } => format!("lift the taint of {node}"),
        };
        writeln!(text, "{line}").expect("text");
    }
    text + &show_notices(&observation.notices)
}

fn show_notices(notices: &Notices) -> String {
    let mut text = String::new();
    for failure in &notices.failures {
        let (group, code, delta) = (&failure.group, &failure.code, failure.delta);
        writeln!(text, "failure {group} {code} {delta}: {}", failure.message).expect("text");
    }
    for event in &notices.events {
        writeln!(text, "event {}: {}", event.reason, event.message).expect("text");
    }
    for report in &notices.reports {
        writeln!(text, "report {report}").expect("text");
    }
    text
}
