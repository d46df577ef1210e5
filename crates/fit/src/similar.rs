//! Groups that are as good as each other, and how an increase is shared among them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};

use crate::amounts::{self, MEMORY, Resources};
use crate::node::HOSTNAME;
use crate::quantity::{self, Quantity};
use crate::requests::{self, Basis};

/// Labels in which nodes of similar groups differ.
const OWN_LABELS: [&str; 3] =
    [HOSTNAME, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];

/// Machines of one kind differ a little in the memory they report.
const MEMORY_TOLERANCE_PER_MILLE: i128 = 15;

const ROOM_TOLERANCE_PER_MILLE: i128 = 50;

/// What a group's nodes are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    labels: BTreeMap<String, String>,
    capacity: Resources,
    allocatable: Resources,
    free: BTreeMap<String, i64>,
}

/// A group that may get a part of an increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub target: usize,
    pub max: usize,
}

// === impl Profile ===

impl Profile {
    /// Of a node of the group and the pods that each of them runs. Labels to be ignored are left out.
    pub fn new(
        node: &Node,
        daemons: &[Pod],
        ignored: &BTreeSet<String>,
    ) -> Result<Self, quantity::Error> {
        let labels = node.metadata.labels.clone().unwrap_or_default().into_iter();
        let is_own = |key: &String| OWN_LABELS.contains(&key.as_str()) || ignored.contains(key);
        let status = node.status.as_ref();
        let capacity = status.and_then(|status| status.capacity.as_ref());
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        let allocatable = amounts::parse(allocatable)?;
        let mut used = Resources::new();
        for pod in daemons {
            amounts::add(&mut used, &requests::of(pod, Basis::Spec)?);
        }
        let free = allocatable.iter().map(|(name, quantity)| {
            let used = used.get(name).copied().unwrap_or_default();
            (name.clone(), quantity.millis().saturating_sub(used.millis()))
        });
        Ok(Self {
            labels: labels.filter(|(key, _)| !is_own(key)).collect(),
            capacity: amounts::parse(capacity)?,
            free: free.collect(),
            allocatable,
        })
    }

    #[must_use]
    pub fn is_similar_to(&self, other: &Self) -> bool {
        let millis = |resources: &Resources| -> BTreeMap<String, i64> {
            let millis = |(name, quantity): (&String, &Quantity)| (name.clone(), quantity.millis());
            resources.iter().map(millis).collect()
        };
        let capacity_tolerance = |name: &str| {
            if name == MEMORY { MEMORY_TOLERANCE_PER_MILLE } else { 0 }
        };
        let room_tolerance = |_: &str| ROOM_TOLERANCE_PER_MILLE;
        self.labels == other.labels
            && are_near(&millis(&self.capacity), &millis(&other.capacity), capacity_tolerance)
            && are_near(&millis(&self.allocatable), &millis(&other.allocatable), room_tolerance)
            && are_near(&self.free, &other.free, room_tolerance)
    }
}

/// The same names, and amounts that differ by at most so many thousandths of the larger.
fn are_near(
    one: &BTreeMap<String, i64>,
    other: &BTreeMap<String, i64>,
    tolerance: impl Fn(&str) -> i128,
) -> bool {
    let is_near = |(name, amount): (&String, &i64)| {
        let Some(others) = other.get(name) else { return false };
        let (less, more) = (amount.min(others), amount.max(others));
        let (less, more) = (i128::from(*less), i128::from(*more));
        (more - less) * 1000 <= more * tolerance(name)
    };
    one.len() == other.len() && one.iter().all(is_near)
}

/// Shares an increase so that targets become as even as they can; what no group may take is not
/// shared. Answers with each group's part.
#[must_use]
pub fn balance(sizes: &[Size], increase: usize) -> Vec<usize> {
    let mut parts = vec![0; sizes.len()];
    for _ in 0..increase {
        let open = (0..sizes.len()).filter(|at| sizes[*at].target + parts[*at] < sizes[*at].max);
        let Some(smallest) = open.min_by_key(|at| sizes[*at].target + parts[*at]) else { break };
        parts[smallest] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increases_even_out_targets() {
        let check = |sizes: &[(usize, usize)], increase, parts: &[usize]| {
            let size = |(target, max): &(usize, usize)| Size { target: *target, max: *max };
            let groups: Vec<_> = sizes.iter().map(size).collect();
            assert_eq!(balance(&groups, increase), parts, "{sizes:?} + {increase}");
        };
        check(&[(1, 10), (1, 10)], 4, &[2, 2]);
        check(&[(5, 10), (1, 10)], 3, &[0, 3]);
        check(&[(5, 10), (1, 10)], 6, &[1, 5]);
        check(&[(1, 2), (1, 10)], 6, &[1, 5]);
        check(&[(2, 2), (3, 3)], 4, &[0, 0]);
        check(&[(0, 5), (0, 5), (0, 5)], 4, &[2, 1, 1]);
    }
}
