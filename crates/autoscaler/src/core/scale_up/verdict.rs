//! What a scale-up means to each group and each pod, in upstream's words where it has some.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use fit::expand::Offer;
use jiff::Timestamp;
use registry::{GroupId, NodeName, Refusal};

use super::super::account::Refusals;
use super::super::pending::Waiting;
use super::super::world::PodKey;
use super::Estimate;
use super::candidates::{Candidate, NODES_TOTAL};

/// Refusals whose numbers differ from node to node.
const NUMBERED: [&str; 2] = ["Insufficient ", "Too many pods"];

/// The one option that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleUpPlan {
    pub offer: Offer,
    /// At least one, each at least by one.
    pub increases: Vec<Increase>,
    /// Whom it is for.
    pub pods: BTreeSet<PodKey>,
}

/// How a group is to grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increase {
    pub group: GroupId,
    pub delta: u32,
    pub target: u32,
    pub max: u32,
}

/// What a group could do for the pods that wait.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupVerdict {
    /// It may not grow.
    Unusable(Unusable),
    /// It may, and no pod needs it.
    NotNeeded,
    /// It may, and does not help.
    Useless,
    /// It would help; another was chosen.
    Offered(Offer),
    Grows {
        by: u32,
    },
}

/// Why a group may not grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// At least one.
    Registry(Vec<Refusal>),
    /// Its provider refused a change a moment ago.
    Retrying {
        until: Timestamp,
    },
    /// One change of size in an iteration is enough.
    Touched,
    ZeroOrMax,
    MaxSize {
        max: u32,
    },
    NodesTotal,
    ResourceLimit(Vec<String>),
    /// Nobody knows what its nodes are; or what was said cannot be read.
    NoTemplate(Option<String>),
}

/// What becomes of a pod that the scheduler found no node for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodVerdict {
    Expendable,
    TooYoung {
        until: Timestamp,
    },
    /// It waits for others to leave a node.
    Nominated {
        node: NodeName,
    },
    /// It has a constraint that nobody here understands.
    Unsupported(String),
    /// There is room; the scheduler will find it.
    FitsNode,
    FitsUpcoming {
        group: GroupId,
    },
    /// Nodes were asked for on its behalf.
    Triggered {
        groups: Vec<GroupId>,
    },
    /// A group would help, and another was chosen this time.
    Awaits,
    /// What each group says to it.
    Refused(Refusals),
}

/// The offer that was chosen, and how it is shared.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) offer: Offer,
    pub(super) increases: Vec<Increase>,
    /// By their places.
    pub(super) pods: BTreeSet<usize>,
}

/// All that is to be told.
pub(super) struct Told<'a> {
    pub(super) waiting: &'a [Waiting<'a>],
    pub(super) left: &'a [usize],
    pub(super) estimates: &'a BTreeMap<GroupId, Estimate>,
    pub(super) unusable: &'a BTreeMap<GroupId, Unusable>,
    pub(super) candidates: &'a BTreeMap<GroupId, Candidate>,
    pub(super) plan: Option<&'a Chosen>,
}

// === impl Told ===

impl Told<'_> {
    pub(super) fn groups(&self) -> BTreeMap<GroupId, GroupVerdict> {
        let verdict = |group: &GroupId| {
            let grows =
                self.plan.and_then(|plan| plan.increases.iter().find(|it| it.group == *group));
            match (grows, self.estimates.get(group)) {
                (Some(increase), _) => GroupVerdict::Grows { by: increase.delta },
                (None, Some(estimate)) if estimate.offer.pods > 0 => {
                    GroupVerdict::Offered(estimate.offer.clone())
                }
                (None, Some(_)) => GroupVerdict::Useless,
                (None, None) => GroupVerdict::NotNeeded,
            }
        };
        let usable = self.candidates.keys().map(|group| (group.clone(), verdict(group)));
        let unusable = self.unusable.iter().map(|(group, why)| match why {
            // Templates are asked for when pods wait.
            Unusable::NoTemplate(None) if self.waiting.is_empty() => {
                (group.clone(), GroupVerdict::NotNeeded)
            }
            why => (group.clone(), GroupVerdict::Unusable(why.clone())),
        });
        usable.chain(unusable).collect()
    }

    pub(super) fn pods(&self) -> BTreeMap<PodKey, PodVerdict> {
        // Pods of one class are refused alike.
        let mut known: BTreeMap<fit::ClassId, Refusals> = BTreeMap::new();
        let mut verdicts = BTreeMap::new();
        for at in self.left {
            let pod = &self.waiting[*at];
            let verdict = if self.plan.is_some_and(|plan| plan.pods.contains(at)) {
                PodVerdict::Triggered { groups: self.growing() }
            } else if self.estimates.values().any(|estimate| estimate.taken.contains(at)) {
                PodVerdict::Awaits
            } else {
                let refusals = known.entry(pod.class).or_insert_with(|| self.refusals(*at));
                PodVerdict::Refused(Arc::clone(refusals))
            };
            verdicts.insert(pod.key.clone(), verdict);
        }
        verdicts
    }

    pub(super) fn plan(&self, chosen: Chosen) -> ScaleUpPlan {
        let pods = chosen.pods.iter().map(|at| self.waiting[*at].key.clone()).collect();
        ScaleUpPlan { offer: chosen.offer, increases: chosen.increases, pods }
    }

    fn growing(&self) -> Vec<GroupId> {
        let increases = self.plan.into_iter().flat_map(|plan| &plan.increases);
        increases.map(|increase| increase.group.clone()).collect()
    }

    fn refusals(&self, pod: usize) -> Refusals {
        let refused = self.estimates.iter().map(|(group, estimate)| {
            let words = estimate.refused.get(&pod).map_or("not looked at in time", String::as_str);
            (group.clone(), words.to_owned())
        });
        let unusable = self.unusable.iter().map(|(group, why)| (group.clone(), why.to_string()));
        Arc::new(refused.chain(unusable).collect())
    }
}

// === impl Unusable ===

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(refusals) => match refusals.first() {
                Some(first) => write!(f, "{first}"),
                None => f.write_str("not ready for scale-up"),
            },
            Self::Retrying { .. } => f.write_str("provider refused a change"),
            Self::Touched => f.write_str("size changed in this iteration"),
            Self::ZeroOrMax => f.write_str("zero-or-max groups are not supported"),
            Self::MaxSize { .. } => f.write_str("max node group size reached"),
            Self::NodesTotal => f.write_str(NODES_TOTAL),
            Self::ResourceLimit(names) => {
                write!(f, "max cluster {} limit reached", names.join(", "))
            }
            Self::NoTemplate(None) => f.write_str("no template"),
            Self::NoTemplate(Some(error)) => write!(f, "no template: {error}"),
        }
    }
}

// === impl ScaleUpPlan ===

impl ScaleUpPlan {
    /// The part of it in these groups, if there is one.
    pub(in super::super) fn within(&self, groups: &BTreeSet<GroupId>) -> Option<Self> {
        let mut plan = self.clone();
        plan.increases.retain(|increase| groups.contains(&increase.group));
        (!plan.increases.is_empty()).then_some(plan)
    }
}

impl fmt::Display for ScaleUpPlan {
    /// As upstream's events have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |increase: &Increase| {
            let Increase { group, delta, target, max } = increase;
            format!("{{{group} {target}->{} (max: {max})}}", target.saturating_add(*delta))
        };
        let words: Vec<_> = self.increases.iter().map(words).collect();
        write!(f, "[{}]", words.join(" "))
    }
}

/// `2 Insufficient cpu, 1 max node group size reached`: how many groups say what, without numbers.
pub(crate) fn summary(refusals: &Refusals) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for words in refusals.values() {
        let has_numbers = NUMBERED.iter().any(|start| words.starts_with(start));
        let short = if has_numbers { words.split(':').next().unwrap_or(words) } else { words };
        *counts.entry(short).or_default() += 1;
    }
    let parts: Vec<_> = counts.iter().map(|(words, count)| format!("{count} {words}")).collect();
    parts.join(", ")
}
