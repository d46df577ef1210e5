//! Whether a group may grow, and every reason why not.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::health::is_group_healthy;
use crate::id::{GroupId, NodeName};
use crate::registry::Registry;
use crate::state::GroupMemory;
use crate::time::later;
use crate::view::GroupView;

/// A node that does not start keeps its group from growing for this long, in which it is removed.
pub(crate) const BROKEN_START_HOLD: Duration = Duration::from_mins(30);

/// Why a group may not grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Also of a group that is not known at all.
    SizesUnknown,
    ClusterUnhealthy,
    Unhealthy,
    Backoff {
        until: Timestamp,
        code: String,
    },
    /// An increase was asked for that the target does not show.
    Unsettled,
    /// An increase may have been asked for of which nothing is remembered.
    NothingRemembered {
        until: Timestamp,
    },
    ZoneDisrupted {
        zone: String,
    },
    BrokenStart {
        node: NodeName,
        until: Timestamp,
    },
}

// === impl Registry ===

impl Registry {
    /// What keeps a group from growing now; nothing if it is safe.
    #[must_use]
    pub fn scale_up_refusals(&self, group: &GroupId, now: Timestamp) -> Vec<Refusal> {
        let known = self.view.groups.get(group).zip(self.state.groups.get(group));
        let Some(((view, memory), terms)) = known.zip(self.terms(group, now)) else {
            return vec![Refusal::SizesUnknown];
        };
        let is_unsettled = memory.own.as_ref().is_some_and(|own| !own.is_settled());
        let held = self.state.increases_from.filter(|from| now < *from);
        let held = held.map(|until| Refusal::NothingRemembered { until });
        let claims = [
            (view.stale.is_some(), Refusal::SizesUnknown),
            (self.view.cluster.is_unhealthy, Refusal::ClusterUnhealthy),
            (!is_group_healthy(&terms, &self.config), Refusal::Unhealthy),
            (is_unsettled, Refusal::Unsettled),
        ];
        let plain = claims.into_iter().filter_map(|(holds, refusal)| holds.then_some(refusal));
        let dated = [held, backoff(memory, now), self.disrupted(view), broken_start(view, now)];
        plain.chain(dated.into_iter().flatten()).collect()
    }

    #[must_use]
    pub fn is_safe_to_scale_up(&self, group: &GroupId, now: Timestamp) -> bool {
        self.scale_up_refusals(group, now).is_empty()
    }

    /// Whether all nodes of the group lie in one zone, and that is disrupted.
    fn disrupted(&self, group: &GroupView) -> Option<Refusal> {
        let mut zones = group.zones.iter();
        let (Some(Some(zone)), None) = (zones.next(), zones.next()) else { return None };
        let is_disrupted = self.view.zones.get(zone).is_some_and(|health| health.is_disrupted());
        is_disrupted.then(|| Refusal::ZoneDisrupted { zone: zone.clone() })
    }
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SizesUnknown => "sizes unknown",
            Self::ClusterUnhealthy => "cluster unhealthy",
            Self::Unhealthy => "not ready for scale-up",
            Self::Backoff { .. } => "in backoff after failed scale-up",
            Self::Unsettled => "increase not settled",
            Self::NothingRemembered { .. } => "nothing is remembered from before",
            Self::ZoneDisrupted { .. } => "zone disrupted",
            Self::BrokenStart { .. } => "broken start",
        })
    }
}

fn backoff(memory: &GroupMemory, now: Timestamp) -> Option<Refusal> {
    let backoff = memory.backoff.as_ref().filter(|backoff| backoff.is_on(now))?;
    Some(Refusal::Backoff { until: backoff.until, code: backoff.code.clone() })
}

fn broken_start(view: &GroupView, now: Timestamp) -> Option<Refusal> {
    let (since, node) = view.broken.as_ref()?;
    let until = later(*since, BROKEN_START_HOLD);
    (now < until).then(|| Refusal::BrokenStart { node: node.clone(), until })
}
