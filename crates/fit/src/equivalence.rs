//! Pods that are as good as each other, so that one answer does for all.

use std::collections::BTreeMap;

use crate::class::ClassId;

/// How many groups the pods of one controller may make; what differs more than this is looked at pod
/// by pod.
pub const GROUPS_PER_CONTROLLER_MAX: usize = 10;

/// A pod that waits for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending<'a> {
    /// What made it; pods made by nobody are equal to none.
    pub controller: Option<&'a str>,
    pub class: ClassId,
}

/// Groups of pods with the same controller and class, each pod by its place in the list; in the order
/// of their first pods.
#[must_use]
pub fn equivalence_groups(pods: &[Pending<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_controller: BTreeMap<&str, BTreeMap<ClassId, usize>> = BTreeMap::new();
    for (at, pod) in pods.iter().enumerate() {
        let Some(controller) = pod.controller else {
            groups.push(vec![at]);
            continue;
        };
        let known = by_controller.entry(controller).or_default();
        if let Some(group) = known.get(&pod.class) {
            groups[*group].push(at);
            continue;
        }
        if known.len() < GROUPS_PER_CONTROLLER_MAX {
            known.insert(pod.class, groups.len());
        }
        groups.push(vec![at]);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(controller: Option<&'static str>, class: u32) -> Pending<'static> {
        Pending { controller, class: ClassId(class) }
    }

    #[test]
    fn same_controller_and_class_make_a_group() {
        let pods = [
            pod(Some("a"), 1),
            pod(Some("b"), 1),
            pod(Some("a"), 2),
            pod(Some("a"), 1),
            pod(None, 1),
            pod(None, 1),
        ];
        let groups: [&[usize]; 5] = [&[0, 3], &[1], &[2], &[4], &[5]];
        assert_eq!(equivalence_groups(&pods), groups);
    }

    #[test]
    fn a_controller_makes_at_most_ten() {
        let classes = (0..12).chain(0..12);
        let pods: Vec<_> = classes.map(|class| pod(Some("a"), class)).collect();
        let groups = equivalence_groups(&pods);
        let sizes: Vec<_> = groups.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1]);
    }
}
