//! What the last observation showed: every node, instance and group, explained. Made anew by each
//! observation and read by queries; nothing is remembered here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::class::Class;
use crate::config::{Times, UnreadyScope};
use crate::health::{ClusterHealth, ZoneHealth};
use crate::id::{GroupId, InstanceId, NodeName};
use crate::readiness::Readiness;
use crate::state::State;
use crate::terms::{Counts, Terms};

#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Whether anything was observed yet.
    pub(crate) is_made: bool,
    pub(crate) nodes: BTreeMap<NodeName, NodeView>,
    pub(crate) instances: BTreeMap<InstanceId, InstanceView>,
    pub(crate) groups: BTreeMap<GroupId, GroupView>,
    pub(crate) zones: BTreeMap<String, ZoneHealth>,
    pub(crate) cluster: ClusterHealth,
    /// Of all nodes, managed or not.
    pub(crate) counts: Counts,
}

/// A Node, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// `None`: unmanaged, and never acted on.
    pub group: Option<GroupId>,
    pub instance: Option<InstanceId>,
    pub zone: Option<String>,
    pub class: Class,
    pub since: Timestamp,
    pub created: Timestamp,
    pub readiness: Readiness,
    pub was_ready: bool,
    /// From when on its unreadiness is counted.
    pub unready_since: Timestamp,
    pub removal: Leave,
    /// Whether the provider lists its machine, and not as being deleted.
    pub is_running: bool,
    /// Whether another Node has the same machine.
    pub has_twin: bool,
    pub is_removal_forbidden: bool,
    pub history: Vec<(Class, Timestamp)>,
    pub flaps: usize,
    pub times: Times,
}

/// How far the removal of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leave {
    pub is_tainted: bool,
    /// When its drain began, if its taint says so.
    pub drained_since: Option<Timestamp>,
    /// Set while a deletion that was handed to the provider is waited for.
    pub deadline: Option<Timestamp>,
    /// Whether the provider says that it deletes it.
    pub is_deleting: bool,
}

/// An instance without Node, explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceView {
    pub group: GroupId,
    pub class: Class,
    pub since: Timestamp,
    pub first_listed: Timestamp,
    pub deadline: Option<Timestamp>,
    pub error: Option<String>,
}

/// A group's part of the view.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupView {
    pub(crate) counts: Counts,
    /// The last good reading, or what was read since; `None`: there is none.
    pub(crate) target: Option<u32>,
    /// Why its sizes are not known now.
    pub(crate) stale: Option<String>,
    /// Instances that the provider lists and does not delete.
    pub(crate) listed: u32,
    /// Nodes of which no machine was ever listed.
    pub(crate) unlisted: u32,
    pub(crate) starting: Vec<NodeName>,
    /// Zones of its nodes; `None` is a node without one.
    pub(crate) zones: BTreeSet<Option<String>>,
    /// Its youngest `BrokenStart`, and since when.
    pub(crate) broken: Option<(Timestamp, NodeName)>,
}

// === impl View ===

impl View {
    pub(crate) fn count_node(&mut self, name: &NodeName, node: &NodeView, scope: UnreadyScope) {
        let is_unready = node.class.is_unready();
        let lacks_device = node.readiness.is_resource_unready();
        let is_handed_over = node.removal.is_handed_over();
        self.counts.add_node(node.class, is_handed_over, lacks_device);
        if scope == UnreadyScope::All || node.group.is_some() {
            self.cluster.add(name, is_unready);
        }
        let Some(group) = node.group.as_ref().and_then(|group| self.groups.get_mut(group)) else {
            return;
        };
        group.counts.add_node(node.class, is_handed_over, lacks_device);
        group.add_node(name, node);
        if let Some(zone) = &node.zone {
            match self.zones.get_mut(zone) {
                Some(known) => known.add(is_unready),
                None => self.zones.entry(zone.clone()).or_default().add(is_unready),
            }
        }
    }

    pub(crate) fn count_instance(&mut self, instance: &InstanceView) {
        self.counts.add_instance(instance.class);
        if let Some(group) = self.groups.get_mut(&instance.group) {
            group.counts.add_instance(instance.class);
        }
    }

    /// What the formulae of a group take; `None` if its target was never read.
    pub(crate) fn terms(&self, state: &State, group: &GroupId, now: Timestamp) -> Option<Terms> {
        let (view, memory) = (self.groups.get(group)?, state.groups.get(group)?);
        let settling = memory.own.as_ref().and_then(|own| own.settling.as_ref());
        Some(Terms {
            counts: view.counts,
            target: view.target?,
            expected_target: settling.map(|settling| settling.expects),
            increase: memory.requests().fold(0, |sum, it| sum.saturating_add(it.increase)),
            is_backed_off: memory.is_backed_off(now),
            open_deletions: state.open_deletions(group),
            exists: memory.profile.exists,
        })
    }
}

// === impl GroupView ===

impl GroupView {
    fn add_node(&mut self, name: &NodeName, node: &NodeView) {
        if !self.zones.contains(&node.zone) {
            self.zones.insert(node.zone.clone());
        }
        let is_leaving = matches!(node.class, Class::Gone | Class::Leaving);
        self.unlisted += u32::from(!node.is_running && !is_leaving);
        match node.class {
            Class::Starting => self.starting.push(name.clone()),
            Class::BrokenStart => {
                let broken = Some((node.since, name.clone()));
                self.broken = broken.max(self.broken.take());
            }
            _ => {}
        }
    }
}

// === impl Leave ===

impl Leave {
    /// Whether it is the provider's turn, and the target has forgotten the node.
    #[must_use]
    pub fn is_handed_over(&self) -> bool {
        self.deadline.is_some() || self.is_deleting
    }
}
