//! Which group to expand, of several that would help.

use std::collections::BTreeMap;

use regex::Regex;
use thiserror::Error;

use crate::cluster::Template;
use crate::packing::Packed;

/// What expanding a group would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub group: String,
    pub new_nodes: usize,
    /// Pods that the new nodes would take.
    pub pods: usize,
    /// The share of the new nodes' cpu that stays unused plus that of their memory, 0 to 2.
    pub waste: f64,
}

/// One link of the chain `expander` names.
#[derive(Clone, Debug)]
pub enum Expander {
    Random,
    MostPods,
    LeastWaste,
    LeastNodes,
    Priority(Priorities),
}

/// Patterns of group names; the highest number with a match wins.
#[derive(Clone, Debug, Default)]
pub struct Priorities(BTreeMap<i64, Vec<Regex>>);

#[derive(Debug, Error)]
pub enum Error {
    #[error("no expander is called `{0}`")]
    Name(String),
    #[error("priority {priority} has a pattern that cannot be read")]
    Pattern {
        priority: i64,
        #[source]
        source: regex::Error,
    },
}

// === impl Offer ===

impl Offer {
    /// What came of packing pods onto new nodes of one group.
    #[must_use]
    pub fn new(group: &str, template: &Template, packed: &Packed) -> Self {
        let cluster = &packed.cluster;
        let allocatable = &template.machine().allocatable;
        let mut unused = (0.0, 0.0);
        let mut pods = 0;
        for node in &packed.new_nodes {
            let host = cluster.host(*node);
            unused.0 +=
                share(allocatable.cpu_millis - host.used.cpu_millis, allocatable.cpu_millis);
            unused.1 += share(allocatable.memory - host.used.memory, allocatable.memory);
            pods += cluster.pods_on(*node) - template.daemons.len();
        }
        let nodes = as_float(packed.new_nodes.len().max(1));
        Self {
            group: group.to_owned(),
            new_nodes: packed.new_nodes.len(),
            pods,
            waste: (unused.0 + unused.1) / nodes,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares are compared, not counted")]
fn share(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has so many nodes")]
fn as_float(count: usize) -> f64 {
    count as f64
}

// === impl Expander ===

impl Expander {
    /// Reads a comma chain of names.
    pub fn parse_chain(names: &str, priorities: &Priorities) -> Result<Vec<Self>, Error> {
        let expander = |name: &str| match name.trim() {
            "random" => Ok(Self::Random),
            "most-pods" => Ok(Self::MostPods),
            "least-waste" => Ok(Self::LeastWaste),
            "least-nodes" => Ok(Self::LeastNodes),
            "priority" => Ok(Self::Priority(priorities.clone())),
            unknown => Err(Error::Name(unknown.to_owned())),
        };
        names.split(',').map(expander).collect()
    }

    fn keep_best(&self, offers: &mut Vec<Offer>, seed: u64) {
        match self {
            Self::Random => keep_one(offers, seed),
            Self::MostPods => keep_least(offers, |offer| -as_float(offer.pods)),
            Self::LeastWaste => keep_least(offers, |offer| offer.waste),
            Self::LeastNodes => keep_least(offers, |offer| as_float(offer.new_nodes)),
            Self::Priority(priorities) => priorities.keep_best(offers),
        }
    }
}

/// The offer that the chain leaves; where it leaves several, the seed decides.
#[must_use]
pub fn choose(chain: &[Expander], mut offers: Vec<Offer>, seed: u64) -> Option<Offer> {
    // The order in which groups were listed must not matter.
    offers.sort_by(|one, other| one.group.cmp(&other.group));
    for expander in chain {
        expander.keep_best(&mut offers, seed);
    }
    keep_one(&mut offers, seed);
    offers.pop()
}

fn keep_one(offers: &mut Vec<Offer>, seed: u64) {
    if let Some(count) = u64::try_from(offers.len()).ok().filter(|count| *count > 0) {
        let at = usize::try_from(seed % count).expect("it is less than a length");
        offers.swap(0, at);
        offers.truncate(1);
    }
}

fn keep_least(offers: &mut Vec<Offer>, score: impl Fn(&Offer) -> f64) {
    let least = offers.iter().map(&score).min_by(f64::total_cmp);
    offers.retain(|offer| least.is_some_and(|least| score(offer) <= least));
}

// === impl Priorities ===

impl Priorities {
    pub fn new(patterns: &BTreeMap<i64, Vec<String>>) -> Result<Self, Error> {
        let compile = |(priority, patterns): (&i64, &Vec<String>)| {
            let patterns = patterns.iter().map(|pattern| Regex::new(pattern));
            let patterns: Result<_, _> = patterns.collect();
            let error = |source| Error::Pattern { priority: *priority, source };
            Ok((*priority, patterns.map_err(error)?))
        };
        Ok(Self(patterns.iter().map(compile).collect::<Result<_, _>>()?))
    }

    fn of(&self, group: &str) -> Option<i64> {
        let mut from_highest = self.0.iter().rev();
        let has_match = |patterns: &[Regex]| patterns.iter().any(|each| each.is_match(group));
        from_highest.find(|(_, patterns)| has_match(patterns)).map(|(priority, _)| *priority)
    }

    /// Groups that no pattern matches are left out, unless that is all of them.
    fn keep_best(&self, offers: &mut Vec<Offer>) {
        let best = offers.iter().filter_map(|offer| self.of(&offer.group)).max();
        if best.is_some() {
            offers.retain(|offer| self.of(&offer.group) == best);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(group: &str, new_nodes: usize, pods: usize, waste: f64) -> Offer {
        Offer { group: group.to_owned(), new_nodes, pods, waste }
    }

    fn offers() -> Vec<Offer> {
        vec![
            offer("spot-b", 3, 9, 0.4),
            offer("spot-a", 2, 9, 0.6),
            offer("demand", 2, 7, 0.2),
            offer("gpu", 1, 7, 0.2),
        ]
    }

    /// Each seed once in turn: what a chain chooses.
    fn check(names: &str, expected: &[&str]) {
        let patterns = [(10, vec!["^spot".to_owned()]), (5, vec![".*".to_owned()])];
        let priorities = Priorities::new(&patterns.into()).unwrap();
        let chain = Expander::parse_chain(names, &priorities).unwrap();
        let chosen = |seed| choose(&chain, offers(), seed).unwrap().group;
        let chosen: Vec<_> = (0..u64::try_from(expected.len()).unwrap()).map(chosen).collect();
        assert_eq!(chosen, expected, "{names}");
        let mut turned = offers();
        turned.reverse();
        assert_eq!(choose(&chain, turned, 0).unwrap().group, expected[0], "{names}, turned");
    }

    #[test]
    fn each_expander_and_each_chain() {
        check("random", &["demand", "gpu", "spot-a", "spot-b", "demand"]);
        check("most-pods", &["spot-a", "spot-b"]);
        check("least-waste", &["demand", "gpu"]);
        check("least-nodes", &["gpu", "gpu"]);
        check("priority", &["spot-a", "spot-b"]);
        check("least-waste,least-nodes", &["gpu", "gpu"]);
        check("priority,least-waste", &["spot-b", "spot-b"]);
        check("most-pods, least-nodes", &["spot-a", "spot-a"]);
    }

    #[test]
    fn priorities_that_match_nothing_decide_nothing() {
        let chain = [Expander::Priority(Priorities::default()), Expander::LeastNodes];
        assert_eq!(choose(&chain, offers(), 0).unwrap().group, "gpu");
        assert_eq!(choose(&chain, Vec::new(), 0), None);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let none = Priorities::default();
        assert!(matches!(Expander::parse_chain("cheapest", &none), Err(Error::Name(_))));
        let patterns = [(3, vec!["(".to_owned()])].into();
        assert!(matches!(Priorities::new(&patterns), Err(Error::Pattern { priority: 3, .. })));
    }
}
