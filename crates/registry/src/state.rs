//! What the registry remembers from one observation to the next: this and nothing else, so that a
//! saved state goes on exactly where it was. Ordinary nodes are not in it: a node that nothing is
//! remembered of, and that is old enough to have been seen, was Ready and had its machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::class::Class;
use crate::config::Times;
use crate::facts::{ErrorInfo, InstanceState};
use crate::id::{GroupId, InstanceId, NodeName};
use crate::request::Request;
use crate::status::Marks;

/// How long a deletion handed to the provider may take.
pub const DELETION_TIMEOUT: Duration = Duration::from_mins(5);

/// What is younger may have been missed by the last observation, and is remembered even if Ready.
pub(crate) const YOUNG: Duration = Duration::from_mins(1);

/// Flaps are told of for this long.
pub(crate) const FLAP_MEMORY: Duration = Duration::from_hours(1);

/// A node that flaps more often than this in an hour is told of as well by the newest.
pub(crate) const FLAPS_MAX: usize = 60;

/// How many classes of a node's past are told of.
pub(crate) const HISTORY_MAX: usize = 6;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) observed_at: Option<Timestamp>,
    /// The state before was lost: what a group misses when its sizes are first known is taken for an
    /// increase.
    pub(crate) adopts_gaps: bool,
    /// Nothing is removed before.
    pub(crate) removals_from: Option<Timestamp>,
    /// Nothing is increased before: a raise that is not remembered may be under way.
    pub(crate) increases_from: Option<Timestamp>,
    pub(crate) halt: HaltMemory,
    pub(crate) marks: Option<Marks>,
    pub(crate) groups: BTreeMap<GroupId, GroupMemory>,
    pub(crate) nodes: BTreeMap<NodeName, NodeMemory>,
    pub(crate) instances: BTreeMap<InstanceId, InstanceMemory>,
    pub(crate) deletions: BTreeMap<InstanceId, Deletion>,
    pub(crate) unneeded: BTreeMap<NodeName, Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HaltMemory {
    /// Set while it lasts.
    pub(crate) since: Option<Timestamp>,
    /// When the last one ended.
    pub(crate) ended: Option<Timestamp>,
}

/// A group, as it was last read, and what is under way in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GroupMemory {
    pub(crate) profile: Profile,
    /// The last reading.
    pub(crate) target: Option<u32>,
    /// Whether its instances were ever listed.
    pub(crate) was_listed: bool,
    pub(crate) own: Option<Request>,
    pub(crate) adopted: Option<Request>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) size: Option<SizeRecord>,
    /// What a request that timed out left to take back.
    pub(crate) revert: u32,
    /// Instances whose creation error was told.
    pub(crate) counted: BTreeSet<InstanceId>,
    /// Since when the provider does not list it.
    pub(crate) vanished: Option<Timestamp>,
    pub(crate) marks: Option<Marks>,
}

/// What a group is, beside its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profile {
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) exists: bool,
    pub(crate) times: Times,
}

/// A group whose size is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRecord {
    pub registered: u32,
    pub target: u32,
    /// Since when it is this pair.
    pub since: Timestamp,
    /// Whether a failure was told because of it.
    pub(crate) is_told: bool,
}

/// A node that is not ordinary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeMemory {
    /// Another one means another node of the same name.
    pub(crate) created: Timestamp,
    pub(crate) group: Option<GroupId>,
    pub(crate) instance: Option<InstanceId>,
    pub(crate) class: Class,
    pub(crate) since: Timestamp,
    pub(crate) was_ready: bool,
    pub(crate) presence: Presence,
    /// Classes before this one, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) history: Vec<(Class, Timestamp)>,
    /// When it stopped being Ready, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) flaps: Vec<Timestamp>,
}

/// What listings say of a node's machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Presence {
    Listed,
    /// Listed as being deleted.
    Deleting,
    /// Listed once, and then not.
    Absent,
    /// Never listed, or not asked for.
    Unknown,
}

/// An instance without Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceMemory {
    pub(crate) group: GroupId,
    pub(crate) first_listed: Timestamp,
    pub(crate) class: Class,
    pub(crate) since: Timestamp,
    pub(crate) state: Option<InstanceState>,
    pub(crate) error: Option<ErrorInfo>,
}

/// A machine that the provider was asked to delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deletion {
    pub(crate) group: GroupId,
    pub(crate) opened: Timestamp,
    pub(crate) deadline: Timestamp,
    /// Nobody waits for it any more. Kept while the machine is listed, so that its end, when it
    /// comes, is not taken for a loss.
    pub(crate) is_overdue: bool,
}

// === impl State ===

impl State {
    pub(crate) fn open_deletion(&self, instance: &str) -> Option<&Deletion> {
        self.deletions.get(instance).filter(|deletion| !deletion.is_overdue)
    }

    pub(crate) fn open_deletions(&self, group: &GroupId) -> u32 {
        let is_counted = |it: &&Deletion| !it.is_overdue && it.group == *group;
        count(self.deletions.values().filter(is_counted))
    }
}

// === impl GroupMemory ===

impl GroupMemory {
    pub(crate) fn new(profile: Profile) -> Self {
        Self {
            profile,
            target: None,
            was_listed: false,
            own: None,
            adopted: None,
            backoff: None,
            size: None,
            revert: 0,
            counted: BTreeSet::new(),
            vanished: None,
            marks: None,
        }
    }

    pub(crate) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.own.iter().chain(&self.adopted)
    }

    pub(crate) fn is_backed_off(&self, now: Timestamp) -> bool {
        self.backoff.as_ref().is_some_and(|backoff| backoff.is_on(now))
    }
}

// === impl Profile ===

impl Profile {
    /// Of a group that was never listed.
    pub(crate) fn unknown(times: Times) -> Self {
        Self { min: 0, max: 0, exists: true, times }
    }
}

/// How many there are. No cluster has more than fit a `u32`.
pub(crate) fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
