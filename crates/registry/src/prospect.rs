//! What happens next to each node, when and why; which nodes' time has come. The last word on a
//! removal has whoever knows their pods.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::class::{Class, Next};
use crate::decision::{Removal, RemovalReason};
use crate::id::{GroupId, NodeName};
use crate::registry::Registry;
use crate::time::later;
use crate::view::NodeView;

// === impl Registry ===

impl Registry {
    /// The nodes that are unneeded now. Who was already keeps their time; who is not named is needed.
    /// Only nodes of groups count, as no other is ever removed.
    pub fn mark_unneeded(&mut self, now: Timestamp, names: &BTreeSet<NodeName>) {
        let now = self.state.observed_at.map_or(now, |last| now.max(last));
        let is_managed = |name: &&NodeName| self.node(name).is_some_and(|it| it.group.is_some());
        let since = |name: &NodeName| self.state.unneeded.get(name).copied().unwrap_or(now);
        let marked = names.iter().filter(is_managed).map(|name| (name.clone(), since(name)));
        self.state.unneeded = marked.collect();
        self.mark(now);
    }

    pub fn clear_unneeded(&mut self) {
        self.state.unneeded.clear();
        if let Some(now) = self.state.observed_at {
            self.mark(now);
        }
    }

    /// Since when a node is unneeded.
    #[must_use]
    pub fn unneeded_since(&self, name: &NodeName) -> Option<Timestamp> {
        self.state.unneeded.get(name).copied()
    }

    /// The moment of a node's next change, if it has one, and what that is.
    #[must_use]
    pub fn prospect(&self, name: &NodeName) -> Option<(Option<Timestamp>, Next)> {
        let node = self.node(name)?;
        Some(match node.class {
            Class::Gone => (None, Next::NodeObjectGoes),
            Class::Leaving => (self.leaves_by(node), Next::LeavesOrStays),
            Class::Starting if node.was_ready => {
                (Some(later(node.created, node.times.startup)), Next::Becomes(Class::Unready))
            }
            Class::Starting => {
                (Some(later(node.created, node.times.startup)), Next::Becomes(Class::BrokenStart))
            }
            Class::Ready => match self.unneeded_since(name) {
                Some(since) => self.removed(node, later(since, node.times.unneeded)),
                None => (None, Next::Nothing),
            },
            Class::BrokenStart | Class::Unready => self.removed(node, self.unready_limit(node)),
            _ => (None, Next::Nothing),
        })
    }

    /// Until when nothing is removed, since somebody may not have looked, or nothing is remembered.
    #[must_use]
    pub fn removals_held_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.state.removals_from.filter(|from| now < *from)
    }

    /// Nodes whose time has come, by name.
    #[must_use]
    pub fn removable(&self, now: Timestamp) -> Vec<Removal> {
        let nodes = self.view.nodes.iter();
        nodes.filter_map(|(name, node)| self.removal(name, node, now)).collect()
    }

    fn removal(&self, name: &NodeName, node: &NodeView, now: Timestamp) -> Option<Removal> {
        let reason = match node.class {
            Class::Ready => RemovalReason::Unneeded,
            Class::BrokenStart => RemovalReason::BrokenStart,
            Class::Unready => RemovalReason::Unready,
            _ => return None,
        };
        let (Some(at), Next::Removed) = self.prospect(name)? else { return None };
        let group = node.group.clone()?;
        let is_whole = reason == RemovalReason::Unneeded || self.is_whole(&group, now);
        let instance = node.instance.clone();
        (now >= at && is_whole).then(|| Removal { node: name.clone(), group, instance, reason })
    }

    /// Whether the group has all its machines. One that does not may be about to lose unready nodes
    /// too, to whatever took the others.
    fn is_whole(&self, group: &GroupId, now: Timestamp) -> bool {
        let is_listed = self.view.groups.get(group).is_some_and(|view| view.unlisted == 0);
        is_listed && self.missing(group, now) == 0
    }

    /// Its removal at a moment, or when anything may be removed again, unless something forbids it.
    fn removed(&self, node: &NodeView, at: Timestamp) -> (Option<Timestamp>, Next) {
        match self.keeps(node) {
            Some(reason) => (None, Next::Kept(reason)),
            None => (Some(at).max(self.state.removals_from), Next::Removed),
        }
    }

    /// Why a node is never removed as it is.
    fn keeps(&self, node: &NodeView) -> Option<&'static str> {
        let Some(group) = &node.group else { return Some("it belongs to no group") };
        let zone = node.zone.as_ref().and_then(|zone| self.view.zones.get(zone));
        if self.view.cluster.is_unhealthy {
            Some("the cluster is unhealthy")
        } else if node.is_removal_forbidden {
            Some("its annotation forbids it")
        } else if node.class.is_unready() && !self.config.removes_unready {
            Some("scale-down of unready nodes is disabled")
        } else if node.has_twin {
            Some("another node has the same machine")
        } else if self.is_stale(group) {
            Some("the sizes of its group are not known")
        } else if !node.is_running {
            Some("its machine is not listed")
        } else if zone.is_some_and(|zone| zone.is_disrupted()) {
            Some("its zone is disrupted")
        } else {
            None
        }
    }

    fn is_stale(&self, group: &GroupId) -> bool {
        self.view.groups.get(group).is_none_or(|view| view.stale.is_some())
    }

    /// Until when a node may be unready. Times of a halt do not count.
    fn unready_limit(&self, node: &NodeView) -> Timestamp {
        let began =
            self.state.halt.ended.map_or(node.unready_since, |it| it.max(node.unready_since));
        later(began, node.times.unready)
    }

    fn leaves_by(&self, node: &NodeView) -> Option<Timestamp> {
        let drain =
            || later(node.removal.drained_since.unwrap_or(node.since), self.config.drain_timeout);
        node.removal.deadline.or_else(|| node.removal.is_tainted.then(drain))
    }
}
