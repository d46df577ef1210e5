//! The registry and what can be asked of it. Answers come from the last observation and from what is
//! remembered; a question changes nothing, and none reads a clock.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::facts::Targets;
use crate::health::{ClusterHealth, ZoneHealth, is_group_healthy};
use crate::id::{GroupId, InstanceId, NodeName};
use crate::request::Request;
use crate::state::{SizeRecord, State};
use crate::terms::{SizeRange, Terms};
use crate::view::{InstanceView, NodeView, View};

/// Explains every node and instance, and decides on what is late or broken.
#[derive(Clone, Debug)]
pub struct Registry {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) view: View,
}

/// Nodes that will come without anybody asking again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upcoming {
    pub count: u32,
    /// Those of them that have registered.
    pub nodes: Vec<NodeName>,
}

/// Sizes of all groups together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoscaledSizes {
    pub registered: u32,
    pub target: u32,
}

// === impl Registry ===

impl Registry {
    /// Of a cluster where nothing is under way.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, state: State::default(), view: View::default() }
    }

    /// Of a cluster where anything may be under way, since what was remembered is lost. What is
    /// missing at the first observation is taken for an increase; nothing is asked for until one that
    /// nobody remembers would show, and nothing removed until a deletion would be over.
    #[must_use]
    pub fn rebuild(config: Config) -> Self {
        let state = State { adopts_gaps: true, ..State::default() };
        Self { config, state, view: View::default() }
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes in targets that were read since the last observation. Ranges and upcoming nodes change;
    /// what is late, done or somebody else's increase is for the next observation to tell.
    pub fn refresh_targets(&mut self, Targets(targets): &Targets) {
        for (group, target) in targets {
            if let Some(view) = self.view.groups.get_mut(group) {
                view.target = Some(*target);
            }
        }
    }

    pub fn clear_backoff(&mut self, group: &GroupId) {
        if let Some(memory) = self.state.groups.get_mut(group) {
            memory.backoff = None;
        }
    }

    #[must_use]
    pub fn node(&self, name: &NodeName) -> Option<&NodeView> {
        self.view.nodes.get(name)
    }

    pub fn nodes(&self) -> impl Iterator<Item = (&NodeName, &NodeView)> {
        self.view.nodes.iter()
    }

    /// Instances without Node.
    pub fn unregistered(&self) -> impl Iterator<Item = (&InstanceId, &InstanceView)> {
        self.view.instances.iter()
    }

    /// Whether a Node has this machine.
    #[must_use]
    pub fn is_registered(&self, instance: &InstanceId) -> bool {
        self.view.nodes.values().any(|node| node.instance.as_ref() == Some(instance))
    }

    pub fn groups(&self) -> impl Iterator<Item = &GroupId> {
        self.view.groups.keys()
    }

    #[must_use]
    pub fn cluster_health(&self) -> &ClusterHealth {
        &self.view.cluster
    }

    /// Whether the group has what it should, within limits; `None` if its sizes were never known.
    #[must_use]
    pub fn is_group_healthy(&self, group: &GroupId, now: Timestamp) -> Option<bool> {
        Some(is_group_healthy(&self.terms(group, now)?, &self.config))
    }

    #[must_use]
    pub fn zone_health(&self, zone: &str) -> Option<ZoneHealth> {
        self.view.zones.get(zone).copied()
    }

    /// The backoff that keeps the group from growing now.
    #[must_use]
    pub fn backoff(&self, group: &GroupId, now: Timestamp) -> Option<&Backoff> {
        let backoff = self.state.groups.get(group)?.backoff.as_ref()?;
        backoff.is_on(now).then_some(backoff)
    }

    /// What the formulae of a group take, as of the last observation and what was recorded since.
    #[must_use]
    pub fn terms(&self, group: &GroupId, now: Timestamp) -> Option<Terms> {
        self.view.terms(&self.state, group, now)
    }

    #[must_use]
    pub fn range(&self, group: &GroupId, now: Timestamp) -> Option<SizeRange> {
        Some(self.terms(group, now)?.range())
    }

    #[must_use]
    pub fn missing(&self, group: &GroupId, now: Timestamp) -> u32 {
        self.terms(group, now).map_or(0, |terms| terms.missing())
    }

    #[must_use]
    pub fn upcoming(&self, group: &GroupId, now: Timestamp) -> Upcoming {
        let count = self.terms(group, now).map_or(0, |terms| terms.upcoming());
        let starting = self.view.groups.get(group).map(|view| view.starting.clone());
        let mut nodes = starting.unwrap_or_default();
        nodes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        Upcoming { count, nodes }
    }

    /// Of all groups that have any.
    #[must_use]
    pub fn all_upcoming(&self, now: Timestamp) -> BTreeMap<GroupId, Upcoming> {
        let all = self.groups().map(|group| (group.clone(), self.upcoming(group, now)));
        all.filter(|(_, upcoming)| upcoming.count > 0).collect()
    }

    #[must_use]
    pub fn wrong_size(&self, group: &GroupId) -> Option<SizeRecord> {
        self.state.groups.get(group)?.size
    }

    /// Whether nodes that were asked for are yet to come.
    #[must_use]
    pub fn is_scaling_up(&self, group: &GroupId, now: Timestamp) -> bool {
        self.has_scale_up_started(group) && self.upcoming(group, now).count > 0
    }

    #[must_use]
    pub fn has_scale_up_started(&self, group: &GroupId) -> bool {
        self.requests(group).next().is_some()
    }

    /// When the group was last asked to grow, by a request that is still open.
    #[must_use]
    pub fn scale_up_time(&self, group: &GroupId) -> Option<Timestamp> {
        self.requests(group).map(|request| request.opened).max()
    }

    /// Open requests: our own, then what others asked for.
    pub fn requests(&self, group: &GroupId) -> impl Iterator<Item = &Request> {
        self.state.groups.get(group).into_iter().flat_map(|memory| memory.requests())
    }

    #[must_use]
    pub fn autoscaled_sizes(&self) -> AutoscaledSizes {
        self.view.groups.values().fold(AutoscaledSizes::default(), |sum, group| AutoscaledSizes {
            registered: sum.registered + group.counts.registered(),
            target: sum.target.saturating_add(group.target.unwrap_or(0)),
        })
    }
}
