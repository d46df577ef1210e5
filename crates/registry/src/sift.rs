//! Facts, looked over: groups that make sense, nodes with their groups and machines. What makes no
//! sense is left out, or its group's sizes count as unknown, and it is reported; nothing is decided.

mod groups;
mod nodes;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::config::Times;
use crate::facts::{Facts, Instance, Node};
use crate::id::{GroupId, InstanceId};
use crate::notice::Report;
use crate::state::{Profile, State};

/// All that one observation goes by.
#[derive(Debug)]
pub(crate) struct Sifted<'a> {
    pub(crate) groups: BTreeMap<GroupId, Reading<'a>>,
    /// By name; each name once.
    pub(crate) nodes: Vec<Placed<'a>>,
    /// The ids of machines that have a Node, in order.
    pub(crate) registered: Vec<&'a str>,
}

/// A group as it was read now.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) profile: Profile,
    /// Or why they are not known, which makes the group stale.
    pub(crate) sizes: Result<Sizes<'a>, String>,
}

#[derive(Debug)]
pub(crate) struct Sizes<'a> {
    pub(crate) group: &'a GroupId,
    pub(crate) target: u32,
    /// By id; each id once.
    pub(crate) instances: Vec<&'a Instance>,
}

/// An instance, and the group that lists it.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The instance's, at hand: it is compared far more often than the rest is looked at.
    id: &'a str,
    group: &'a GroupId,
    instance: &'a Instance,
}

/// A node with its group and machine.
#[derive(Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) node: &'a Node,
    /// Not in the future.
    pub(crate) created: Timestamp,
    /// `None`: unmanaged.
    pub(crate) group: Option<&'a GroupId>,
    pub(crate) instance: Option<&'a Instance>,
    /// Whether another Node has the same machine.
    pub(crate) has_twin: bool,
    /// Of twins only the youngest counts.
    pub(crate) is_counted: bool,
}

/// What facts are looked over with.
pub(crate) struct Sieve<'a> {
    pub(crate) now: Timestamp,
    pub(crate) times: Times,
    pub(crate) state: &'a State,
    pub(crate) reports: &'a mut Vec<Report>,
}

// === impl Sieve ===

impl Sieve<'_> {
    pub(crate) fn sift<'f>(&mut self, facts: &'f Facts) -> Sifted<'f> {
        let (groups, places) = self.groups(facts);
        let mut nodes = self.nodes(&facts.nodes, &groups, places);
        let registered = self.find_twins(&mut nodes);
        Sifted { groups, nodes, registered }
    }
}

// === impl Sifted ===

impl Sifted<'_> {
    /// The group's sizes, if they are known.
    pub(crate) fn sizes(&self, group: &GroupId) -> Option<&Sizes<'_>> {
        self.groups.get(group)?.sizes.as_ref().ok()
    }

    /// Whether a Node has this machine.
    pub(crate) fn is_registered(&self, instance: &InstanceId) -> bool {
        self.registered.binary_search(&instance.as_str()).is_ok()
    }
}

// === impl Sizes ===

impl Sizes<'_> {
    pub(crate) fn lists(&self, id: &InstanceId) -> bool {
        self.instances.binary_search_by_key(&id, |instance| &instance.id).is_ok()
    }
}

// === impl Placed ===

impl<'a> Placed<'a> {
    /// The id of its machine: of the one it was matched with, or of the one it says it is.
    pub(crate) fn machine(&self) -> Option<&'a str> {
        let told = self.node.provider_id.as_str();
        let matched = self.instance.map(|instance| instance.id.as_str());
        matched.or((!told.is_empty()).then_some(told))
    }
}
