//! The numbers the planners go by. Plain data: who reads flags and files checks them there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use fit::drain;
use fit::expand::Expander;
use serde::{Deserialize, Serialize};

/// What a drain takes beyond its evictions and the grace of its pods: the delay after the taint, and
/// one scan more.
const DRAIN_MARGIN: Duration = Duration::from_secs(30);

/// See the module; named after upstream's flags.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {
    pub scale_up: ScaleUpConfig,
    pub scale_down: ScaleDownConfig,
    pub drain: DrainConfig,
    /// Pods below this priority neither bring a node nor keep one.
    pub expendable_priority_cutoff: i32,
    /// Sums over all nodes that must be kept.
    pub limits: Limits,
    /// Taints that nodes bear until they can be used, beside those with a known prefix.
    pub startup_taints: BTreeSet<String>,
    /// Taints that say how a node fares, and not what it is.
    pub status_taints: BTreeSet<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScaleUpConfig {
    /// How one of several groups is chosen. Not written down: they follow from names and priorities.
    #[serde(skip)]
    pub expanders: Vec<Expander>,
    pub balances_similar_groups: bool,
    /// Labels in which similar groups may differ, beside those of zone and host.
    pub balancing_ignored_labels: BTreeSet<String>,
    pub nodes_per_scale_up_max: u32,
    /// Younger pods are left to the scheduler.
    pub new_pod_delay: Duration,
    /// Whether a cluster without any node is scaled up.
    pub scales_from_zero: bool,
}

/// What the whole cluster may have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    /// `None`: any number.
    pub nodes_max: Option<u32>,
    /// By resource: cores, bytes or devices.
    pub resources: BTreeMap<String, RangeInclusive<i64>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScaleDownConfig {
    pub is_enabled: bool,
    /// For groups that say nothing else.
    pub utilization_threshold: f64,
    /// Whether pods of DaemonSets are left out of the utilisation.
    pub ignores_daemon_sets: bool,
    pub delay_after_add: Duration,
    pub delay_after_delete: Duration,
    pub delay_after_failure: Duration,
    /// How long a node that could not go is not looked at again.
    pub unremovable_recheck: Duration,
    pub removes_unready: bool,
    /// Nodes that are being removed at once …
    pub parallelism_max: usize,
    /// … of which so many have pods.
    pub drain_parallelism_max: usize,
    pub soft_taints_max: usize,
    #[serde(with = "DrainRules")]
    pub drain_rules: drain::Options,
}

/// How [`drain::Options`] are written down.
#[derive(Serialize, Deserialize)]
#[serde(remote = "drain::Options")]
struct DrainRules {
    skips_system_pods: bool,
    skips_local_storage: bool,
    skips_custom_controllers: bool,
    replicas_min: i32,
}

/// How one node is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainConfig {
    pub cordons: bool,
    /// Pods that the scheduler was about to place may arrive in this time.
    pub delay_after_taint: Duration,
    /// How long a pod's eviction may be refused.
    pub eviction_max: Duration,
    /// Pods get no more grace than this.
    pub grace_max: Duration,
    /// Whether pods of DaemonSets are evicted from nodes that have others.
    pub evicts_daemons: bool,
}

// === impl Config ===

impl Config {
    /// How long a drain may take from its taint on; what the registry is to wait for one.
    #[must_use]
    pub fn drain_timeout(&self) -> Duration {
        let drain = &self.drain;
        let pods = drain.eviction_max + drain.grace_max + super::drain::GRACE_ALLOWANCE;
        drain.delay_after_taint + pods + DRAIN_MARGIN
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scale_up: ScaleUpConfig::default(),
            scale_down: ScaleDownConfig::default(),
            drain: DrainConfig::default(),
            expendable_priority_cutoff: -10,
            limits: Limits::default(),
            startup_taints: BTreeSet::new(),
            status_taints: BTreeSet::new(),
        }
    }
}

// === impl ScaleUpConfig ===

impl Default for ScaleUpConfig {
    fn default() -> Self {
        Self {
            expanders: vec![Expander::LeastWaste],
            balances_similar_groups: false,
            balancing_ignored_labels: BTreeSet::new(),
            nodes_per_scale_up_max: 1000,
            new_pod_delay: Duration::ZERO,
            scales_from_zero: true,
        }
    }
}

// === impl ScaleDownConfig ===

impl Default for ScaleDownConfig {
    fn default() -> Self {
        Self {
            is_enabled: true,
            utilization_threshold: 0.5,
            ignores_daemon_sets: false,
            delay_after_add: Duration::from_mins(10),
            delay_after_delete: Duration::ZERO,
            delay_after_failure: Duration::from_mins(3),
            unremovable_recheck: Duration::from_mins(5),
            removes_unready: true,
            parallelism_max: 10,
            drain_parallelism_max: 1,
            soft_taints_max: 10,
            drain_rules: drain::Options::default(),
        }
    }
}

// === impl DrainConfig ===

impl Default for DrainConfig {
    fn default() -> Self {
        Self {
            cordons: true,
            delay_after_taint: Duration::from_secs(5),
            eviction_max: Duration::from_mins(2),
            grace_max: Duration::from_mins(10),
            evicts_daemons: true,
        }
    }
}
