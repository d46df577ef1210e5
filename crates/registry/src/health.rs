//! Whether cluster, groups and zones are in a shape to work on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::{Config, UnreadyScope};
use crate::id::NodeName;
use crate::notice::some_of;
use crate::terms::Terms;

/// A zone is disrupted from so many unready nodes on …
const ZONE_UNREADY_MIN: u32 = 3;

/// … if they are more than this part of it. Both as in Kubernetes' own node lifecycle.
const ZONE_UNREADY_PERCENTAGE: f64 = 55.0;

/// So many unready nodes are named with a halt.
const NAMED_MAX: usize = 5;

/// How many nodes of how many are unready, and which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterHealth {
    pub is_unhealthy: bool,
    pub unready: u32,
    pub nodes: u32,
    /// The first few of the unready ones.
    pub named: Vec<NodeName>,
}

/// Autoscaled nodes of one zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneHealth {
    pub unready: u32,
    pub nodes: u32,
}

/// Why nothing is done: numbers, limits and names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Halt {
    pub unready: u32,
    pub nodes: u32,
    pub scope: UnreadyScope,
    pub count_ok: u32,
    pub percentage_max: f64,
    pub named: Vec<NodeName>,
}

// === impl ClusterHealth ===

impl ClusterHealth {
    pub(crate) fn add(&mut self, name: &NodeName, is_unready: bool) {
        self.nodes += 1;
        self.unready += u32::from(is_unready);
        if is_unready && self.named.len() < NAMED_MAX {
            self.named.push(name.clone());
        }
    }

    pub(crate) fn halt(&self, config: &Config) -> Option<Halt> {
        self.is_unhealthy.then(|| Halt {
            unready: self.unready,
            nodes: self.nodes,
            scope: config.unready_scope,
            count_ok: config.unready_count_ok,
            percentage_max: config.unready_percentage_max,
            named: self.named.clone(),
        })
    }
}

// === impl ZoneHealth ===

impl ZoneHealth {
    pub(crate) fn add(&mut self, is_unready: bool) {
        self.nodes += 1;
        self.unready += u32::from(is_unready);
    }

    #[must_use]
    pub fn is_disrupted(&self) -> bool {
        self.unready >= ZONE_UNREADY_MIN
            && is_more_than(self.unready, ZONE_UNREADY_PERCENTAGE, self.nodes)
    }
}

// === impl Halt ===

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unready, nodes, count_ok, percentage_max, .. } = self;
        let scope = match self.scope {
            UnreadyScope::Autoscaled => "autoscaled nodes",
            UnreadyScope::All => "nodes",
        };
        let total = usize::try_from(*unready).unwrap_or(usize::MAX);
        let names = some_of(self.named.iter().map(NodeName::as_str), total, NAMED_MAX);
        write!(f, "{unready} of {nodes} {scope} are unready, more than {count_ok} and more than ")?;
        write!(f, "{percentage_max}%: {names}")
    }
}

/// Whether so many unready nodes of so many are too many.
pub(crate) fn is_too_many(unready: u32, nodes: u32, config: &Config) -> bool {
    unready > config.unready_count_ok && is_more_than(unready, config.unready_percentage_max, nodes)
}

/// Whether what a group lacks, or has broken, is within the limits.
pub(crate) fn is_group_healthy(terms: &Terms, config: &Config) -> bool {
    let (counts, min) = (&terms.counts, terms.range().min);
    if counts.nodes() == 0 && counts.unregistered_all() == 0 {
        return terms.target == 0 || min <= 0;
    }
    let good = counts.registered() - counts.unready;
    let lacking = u32::try_from(min - i64::from(good)).unwrap_or(0);
    !is_too_many(lacking, counts.registered(), config)
}

fn is_more_than(part: u32, percentage: f64, whole: u32) -> bool {
    f64::from(part) * 100.0 > percentage * f64::from(whole)
}
