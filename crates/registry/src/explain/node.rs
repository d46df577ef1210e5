//! A Node, explained.

use jiff::Timestamp;

use super::Account;
use crate::class::{Class, Next};
use crate::config::UnreadyScope;
use crate::health::ClusterHealth;
use crate::id::NodeName;
use crate::readiness::Cause;
use crate::registry::Registry;
use crate::safety::BROKEN_START_HOLD;
use crate::time::{clock, elapsed, later, words};
use crate::view::NodeView;

// === impl Registry ===

impl Registry {
    pub(super) fn explain_node(&self, name: &NodeName, now: Timestamp) -> Option<Account> {
        let node = self.node(name)?;
        let group = node.group.as_ref().map_or("unmanaged".into(), |it| format!("group {it}"));
        let zone = node.zone.as_ref().map(|zone| format!("zone {zone}"));
        let heading: Vec<String> =
            [format!("node {name}"), group].into_iter().chain(zone).collect();
        let mut account = Account::of(&heading);
        let (lasted, since) = (words(elapsed(node.since, now)), clock(node.since, now));
        account.say("class", &format!("{} for {lasted}, since {since}", node.class));
        account.say("because", &because(node, now));
        account.say("effect", &self.effect(node, now));
        account.say("next", &self.next(name, node, now)?);
        account.say("seen", &seen(node, now));
        Some(account)
    }

    fn effect(&self, node: &NodeView, now: Timestamp) -> String {
        let until = later(node.since, BROKEN_START_HOLD);
        match (node.class, &node.group) {
            (Class::Ready, _) => "none".to_owned(),
            (Class::Starting, Some(group)) => format!("counts as upcoming in {group}"),
            (Class::BrokenStart, Some(group)) if now < until => {
                let until = clock(until, now);
                format!("{group} is not expanded before {until} or until this node is gone")
            }
            (class, group) if class.is_unready() && self.is_counted(group.is_some()) => {
                let ClusterHealth { unready, nodes, .. } = &self.view.cluster;
                format!("is one of {unready} unready among {nodes} nodes")
            }
            _ => "counts neither as ready nor as unready".to_owned(),
        }
    }

    /// Whether a node bears on the health of the cluster.
    fn is_counted(&self, is_managed: bool) -> bool {
        is_managed || self.config.unready_scope == UnreadyScope::All
    }

    fn next(&self, name: &NodeName, node: &NodeView, now: Timestamp) -> Option<String> {
        let (at, next) = self.prospect(name)?;
        let at = at.map(|at| clock(at, now)).unwrap_or_default();
        Some(match next {
            Next::Nothing | Next::InstanceDeleted => "nothing".to_owned(),
            Next::NodeObjectGoes => "Kubernetes removes the Node object".to_owned(),
            Next::LeavesOrStays if at.is_empty() => "the provider deletes its machine".to_owned(),
            Next::LeavesOrStays => format!("gone by {at}, else its taint is lifted"),
            Next::Becomes(class) => format!("{class} at {at}, if it is not Ready by then"),
            Next::Kept(reason) => format!("stays: {reason}"),
            Next::Removed if node.class == Class::Ready => {
                format!("remove at {at}, if it is unneeded until then")
            }
            Next::Removed => format!("remove at {at}, if {} misses no node", self.sizes(node)),
        })
    }

    /// `pool-a (3, min 1)`
    fn sizes(&self, node: &NodeView) -> String {
        let Some(group) = &node.group else { return String::new() };
        let min = self.state.groups.get(group).map_or(0, |memory| memory.profile.min);
        let target = self.view.groups.get(group).and_then(|view| view.target);
        target.map_or_else(|| group.to_string(), |target| format!("{group} ({target}, min {min})"))
    }
}

fn because(node: &NodeView, now: Timestamp) -> String {
    let created = format!("created {}", clock(node.created, now));
    let causes = || causes(node, now);
    let times = &node.times;
    match node.class {
        Class::Gone if node.removal.is_tainted => {
            "it was to be deleted, and its machine is not listed".to_owned()
        }
        Class::Gone => "its machine is no longer listed".to_owned(),
        Class::Leaving => leaving(node, now),
        Class::Suspended => "Suspended=True".to_owned(),
        Class::Starting => format!("{}, {created}; limit {}", causes(), words(times.startup)),
        Class::BrokenStart => {
            format!("{}, {created}, never Ready; limit {}", causes(), words(times.startup))
        }
        Class::Unready => format!("{}, {created}; limit {}", causes(), words(times.unready)),
        _ => {
            let since = node.readiness.transition.map(|at| format!(" since {}", clock(at, now)));
            format!("Ready=True{}, {created}", since.unwrap_or_default())
        }
    }
}

fn leaving(node: &NodeView, now: Timestamp) -> String {
    let removal = &node.removal;
    if removal.is_deleting {
        "the provider deletes its machine".to_owned()
    } else if removal.deadline.is_some() {
        "its machine was handed to the provider to be deleted".to_owned()
    } else {
        let since = removal.drained_since.map(|at| format!(" since {}", clock(at, now)));
        format!("tainted to be deleted{}", since.unwrap_or_default())
    }
}

fn causes(node: &NodeView, now: Timestamp) -> String {
    let cause = |cause: &Cause| match cause {
        Cause::Condition { since: Some(since), .. } => {
            format!("{cause} since {}", clock(*since, now))
        }
        _ => cause.to_string(),
    };
    node.readiness.causes.iter().map(cause).collect::<Vec<_>>().join(", ")
}

/// The classes it had, oldest first, and how often it stopped being Ready.
fn seen(node: &NodeView, now: Timestamp) -> String {
    let all = node.history.iter().copied().chain([(node.class, node.since)]);
    let classes = all.map(|(class, since)| format!("{class} {}", clock(since, now)));
    classes.chain([format!("flaps {}", node.flaps)]).collect::<Vec<_>>().join(" · ")
}
