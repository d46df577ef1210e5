//! One of the offers, and how its increase is shared.

use std::collections::BTreeMap;

use fit::expand::{self, Offer};
use fit::{Size, balance};
use registry::GroupId;

use super::super::config::Config;
use super::Estimate;
use super::candidates::Candidate;
use super::verdict::{Chosen, Increase};

/// What the expanders leave, if anything.
pub(super) fn choose(
    offers: Vec<Offer>,
    candidates: &BTreeMap<GroupId, Candidate>,
    estimates: &BTreeMap<GroupId, Estimate>,
    (config, seed): (&Config, u64),
) -> Option<Chosen> {
    let offer = expand::choose(&config.scale_up.expanders, offers, seed)?;
    let group = GroupId(offer.group.clone());
    let (candidate, estimate) = (candidates.get(&group)?, estimates.get(&group)?);
    // A group that is like this one but does not take its pods, for a zone for instance, is no help.
    let takes_all = |other: &&GroupId| {
        estimates.get(*other).is_some_and(|other| estimate.taken.is_subset(&other.taken))
    };
    let mut sharing = vec![group];
    sharing.extend(candidate.similar.iter().filter(takes_all).cloned());
    let increases = share(&sharing, candidates, offer.new_nodes);
    (!increases.is_empty()).then(|| Chosen { offer, increases, pods: estimate.taken.clone() })
}

fn share(
    sharing: &[GroupId],
    candidates: &BTreeMap<GroupId, Candidate>,
    new_nodes: usize,
) -> Vec<Increase> {
    let known: Vec<_> =
        sharing.iter().filter_map(|group| Some((group, candidates.get(group)?))).collect();
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let sizes: Vec<_> = known
        .iter()
        .map(|(_, each)| Size { target: size(each.target), max: size(each.max) })
        .collect();
    let parts = balance(&sizes, new_nodes);
    let increase = |((group, each), part): (&(&GroupId, &Candidate), usize)| Increase {
        group: (*group).clone(),
        delta: u32::try_from(part).unwrap_or(u32::MAX),
        target: each.target,
        max: each.max,
    };
    let increases = known.iter().zip(parts).map(increase);
    increases.filter(|increase| increase.delta > 0).collect()
}
