//! The numbers the registry goes by. Plain data: who reads flags and files checks them there.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::facts::Options;

/// No option of a group is longer: what is has another unit than its writer thought.
pub const OPTION_MAX: Duration = Duration::from_hours(7 * 24);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// For groups that say nothing else, and for unmanaged nodes.
    pub times: Times,
    /// The cluster, or a group, is unhealthy when more than this many per cent …
    pub unready_percentage_max: f64,
    /// … and more than this many nodes are unready.
    pub unready_count_ok: u32,
    pub unready_scope: UnreadyScope,
    pub backoff: BackoffTimes,
    /// How long a target may take to show an increase.
    pub settle_timeout: Duration,
    /// After a longer time without an observation, nothing is removed for as long again.
    pub observation_gap_tolerance: Option<Duration>,
    /// How long a drain may take, from its taint on.
    pub drain_timeout: Duration,
    pub removes_unready: bool,
    pub removes_unregistered_when_unhealthy: bool,
    /// Else a group's minimum is kept, though the nodes that make it up are of no use.
    pub removes_unregistered_below_min: bool,
    /// Taints that a node bears until it can be used, beside those with a known prefix.
    pub startup_taints: BTreeSet<String>,
}

/// What a group may set for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// How long a Ready node is unneeded before it is removed.
    pub unneeded: Duration,
    /// How long a node is unready before it is removed.
    pub unready: Duration,
    /// How long an instance may take to register.
    pub provision: Duration,
    /// How long a Node may take to become Ready.
    pub startup: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackoffTimes {
    pub initial: Duration,
    pub max: Duration,
    /// So long after its last failure a group starts anew.
    pub reset: Duration,
}

/// Whose unready nodes halt the autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnreadyScope {
    Autoscaled,
    All,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            times: Times::default(),
            unready_percentage_max: 45.0,
            unready_count_ok: 3,
            unready_scope: UnreadyScope::Autoscaled,
            backoff: BackoffTimes::default(),
            settle_timeout: Duration::from_mins(2),
            observation_gap_tolerance: None,
            drain_timeout: Duration::from_mins(12),
            removes_unready: true,
            removes_unregistered_when_unhealthy: false,
            removes_unregistered_below_min: false,
            startup_taints: BTreeSet::new(),
        }
    }
}

// === impl BackoffTimes ===

impl Default for BackoffTimes {
    fn default() -> Self {
        Self {
            initial: Duration::from_mins(5),
            max: Duration::from_mins(30),
            reset: Duration::from_hours(3),
        }
    }
}

// === impl Times ===

impl Default for Times {
    fn default() -> Self {
        Self {
            unneeded: Duration::from_mins(10),
            unready: Duration::from_mins(20),
            provision: Duration::from_mins(15),
            startup: Duration::from_mins(15),
        }
    }
}

impl Times {
    /// These, where a group says nothing else; and the names of options that make no sense.
    pub(crate) fn with(self, options: &Options) -> (Self, Vec<&'static str>) {
        let mut refused = Vec::new();
        let mut choose = |name, option: Option<SignedDuration>, default| match option {
            None => default,
            Some(option) if option.is_zero() => default,
            Some(option) => accepted(option).unwrap_or_else(|| {
                refused.push(name);
                default
            }),
        };
        let times = Self {
            unneeded: choose("unneeded time", options.unneeded, self.unneeded),
            unready: choose("unready time", options.unready, self.unready),
            provision: choose("provision time", options.provision, self.provision),
            startup: choose("startup time", options.startup, self.startup),
        };
        (times, refused)
    }
}

fn accepted(option: SignedDuration) -> Option<Duration> {
    Duration::try_from(option).ok().filter(|option| *option <= OPTION_MAX)
}
