//! Whether a node can be used, by its conditions, taints and devices; and what speaks against it.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::facts::{Condition, ConditionStatus, Node, Taint};
use crate::names;

/// What a Node says of its readiness. No cause: it is Ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    pub causes: Vec<Cause>,
    /// The newest change of the conditions that readiness depends on.
    pub transition: Option<Timestamp>,
}

/// What keeps a node from being Ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// `None`: the condition is not there.
    Condition {
        kind: String,
        status: Option<ConditionStatus>,
        since: Option<Timestamp>,
    },
    Taint(String),
    Resource(String),
}

// === impl Readiness ===

impl Readiness {
    #[must_use]
    pub fn of(node: &Node, startup_taints: &BTreeSet<String>) -> Self {
        let mut causes: Vec<Cause> = bad_conditions(node).collect();
        let is_startup = |key: &str| {
            startup_taints.contains(key)
                || names::STARTUP_TAINT_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        };
        let is_bad = |taint: &&Taint| {
            names::UNREADY_TAINTS.contains(&taint.key.as_str()) || is_startup(&taint.key)
        };
        let taints = node.taints.iter().filter(is_bad).map(|taint| taint.key.clone());
        causes.extend(taints.map(Cause::Taint));
        causes.extend(node.missing_resources.iter().cloned().map(Cause::Resource));
        Self { causes, transition: transition(node) }
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.causes.is_empty()
    }

    /// Whether the transition tells since when it is unready. Taints and devices have no time.
    #[must_use]
    pub fn is_dated(&self) -> bool {
        let is_condition = |cause: &Cause| matches!(cause, Cause::Condition { .. });
        self.causes.iter().any(is_condition) && self.transition.is_some()
    }

    /// Whether nothing but a promised device is missing.
    #[must_use]
    pub fn is_resource_unready(&self) -> bool {
        let is_resource = |cause: &Cause| matches!(cause, Cause::Resource(_));
        !self.causes.is_empty() && self.causes.iter().all(is_resource)
    }
}

// === impl Cause ===

impl Cause {
    fn of(kind: &str, condition: Option<&Condition>) -> Self {
        let status = condition.map(|condition| condition.status);
        let since = condition.and_then(|condition| condition.last_transition);
        Self::Condition { kind: kind.to_owned(), status, since }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { kind, status: Some(status), .. } => write!(f, "{kind}={status:?}"),
            Self::Condition { kind, status: None, .. } => write!(f, "no condition {kind}"),
            Self::Taint(key) => write!(f, "taint {key}"),
            Self::Resource(name) => write!(f, "{name} promised and absent"),
        }
    }
}

fn bad_conditions(node: &Node) -> impl Iterator<Item = Cause> {
    let ready = node.conditions.get(names::READY);
    let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
    let unready = (!is_ready).then(|| Cause::of(names::READY, ready));
    let pressing = names::PRESSING.into_iter().filter_map(|kind| {
        let condition = node.conditions.get(kind)?;
        let is_pressing = condition.status == ConditionStatus::True;
        is_pressing.then(|| Cause::of(kind, Some(condition)))
    });
    unready.into_iter().chain(pressing)
}

fn transition(node: &Node) -> Option<Timestamp> {
    let kinds = [names::READY].into_iter().chain(names::PRESSING);
    kinds.filter_map(|kind| node.conditions.get(kind)?.last_transition).max()
}
