//! Why an iteration did what it did, for those who ask: every group, every pod that waited, every node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use registry::{GroupId, Halt, NodeName, Notices};

use super::event::Event;
use super::scale_down::{Against, Cooldown, Order};
use super::scale_up::{GroupVerdict, PodVerdict, ScaleUpPlan};
use super::world::PodKey;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// `None`: it is not over.
    pub ending: Option<Ending>,
    /// What the registry had to tell of the observation.
    pub notices: Notices,
    pub events: Vec<Event>,
    /// Facts that were left aside, in words.
    pub reports: Vec<String>,
    pub groups: BTreeMap<GroupId, GroupVerdict>,
    pub pods: BTreeMap<PodKey, PodVerdict>,
    pub scale_up: Option<ScaleUpPlan>,
    /// Nodes that may go, once their time has come.
    pub unneeded: BTreeSet<NodeName>,
    /// Why others do not.
    pub kept: BTreeMap<NodeName, Against>,
    pub cooldown: Option<Cooldown>,
    /// Removals that began.
    pub removals: Vec<Order>,
}

/// How an iteration ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Nothing was looked at: too many nodes are unready.
    Unhealthy(Halt),
    /// Sizes were wrong, and are believed to be right now; everything else is for the next one.
    SizesFixed,
    /// All steps were gone through.
    Complete {
        /// Whether there is reason to look again at once.
        was_productive: bool,
    },
}

/// What each group says to pods of one kind.
pub type Refusals = Arc<BTreeMap<GroupId, String>>;

// === impl Ending ===

impl Ending {
    /// Whether the next iteration begins at once.
    #[must_use]
    pub fn is_productive(&self) -> bool {
        match self {
            Self::Unhealthy(_) => false,
            Self::SizesFixed => true,
            Self::Complete { was_productive } => *was_productive,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unhealthy(halt) => write!(f, "halted: {halt}"),
            Self::SizesFixed => f.write_str("sizes fixed"),
            Self::Complete { was_productive: true } => f.write_str("complete, something was done"),
            Self::Complete { was_productive: false } => f.write_str("complete"),
        }
    }
}

/// `10:17:11`, in words for people.
pub(super) fn clock(at: Timestamp) -> String {
    at.strftime("%T").to_string()
}
