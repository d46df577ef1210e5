//! How evenly pods of a kind are spread over the domains of a key, among the nodes that count.

use std::collections::BTreeMap;

use crate::class::{Class, Lexicon};
use crate::labels::Selector;
use crate::node::Host;
use crate::words::Symbol;

use super::domains::{Counts, Domain};
use super::{Asides, KeyId, Known};

/// What is counted, and on which nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SpreadQuestion {
    pub(super) key: Symbol,
    /// The keys of all constraints of the pod: a node that lacks one is left aside by each.
    pub(super) keys: Vec<Symbol>,
    pub(super) namespace: Symbol,
    pub(super) selector: Selector,
    pub(super) asides: Asides,
}

/// Domains are those of nodes that count, whether pods run there or not.
#[derive(Clone, Debug)]
pub(crate) struct SpreadTally {
    pub(super) key: KeyId,
    /// By node: whether it counts.
    nodes: Vec<bool>,
    nodes_of: Counts,
    pods_of: Counts,
    /// How many domains have how many pods: its first entry is the emptiest.
    levels: BTreeMap<u32, usize>,
    domains: usize,
}

// === impl SpreadQuestion ===

impl SpreadQuestion {
    /// Pods on their way out are not counted; and, as the scheduler has it, neither is anything if
    /// everything is selected.
    pub(super) fn counts(&self, class: &Class, lexicon: &Lexicon) -> bool {
        !class.is_terminating
            && class.namespace == self.namespace
            && !self.selector.is_everything()
            && self.selector.matches(&class.labels, &lexicon.words)
    }

    pub(super) fn holds_node(&self, host: &Host, known: Known<'_>) -> bool {
        let machine = &host.machine;
        let words = &known.lexicon.words;
        let affinity = self.asides.affinity.map(|id| known.placements.get(id.0));
        let taints = self.asides.taints.map(|id| known.placements.get(id.0));
        self.keys.iter().all(|key| machine.labels.get(*key).is_some())
            && affinity.is_none_or(|placement| placement.wants(machine, words))
            && taints.is_none_or(|placement| placement.untolerated(machine, words).is_none())
    }
}

// === impl SpreadTally ===

impl SpreadTally {
    pub(super) fn new(key: KeyId) -> Self {
        Self {
            key,
            nodes: Vec::new(),
            nodes_of: Counts::default(),
            pods_of: Counts::default(),
            levels: BTreeMap::new(),
            domains: 0,
        }
    }

    pub(crate) fn key(&self) -> KeyId {
        self.key
    }

    pub(super) fn holds_node(&self, slot: usize) -> bool {
        self.nodes[slot]
    }

    /// The next node, with its domain if it counts.
    pub(super) fn add_node(&mut self, domain: Option<Domain>) {
        self.nodes.push(domain.is_some());
        let Some(domain) = domain else { return };
        let nodes = self.nodes_of.entry(domain);
        *nodes += 1;
        if *nodes == 1 {
            self.domains += 1;
            *self.levels.entry(self.pods_of.get(domain)).or_default() += 1;
        }
    }

    pub(super) fn remove_node(&mut self, slot: usize, domain: Domain) {
        self.nodes[slot] = false;
        let nodes = self.nodes_of.entry(domain);
        *nodes -= 1;
        if *nodes == 0 {
            self.domains -= 1;
            self.leave_level(self.pods_of.get(domain));
        }
    }

    pub(super) fn add(&mut self, domain: Domain, pods: u32) {
        let before = self.pods_of.get(domain);
        self.move_to(domain, before + pods);
    }

    pub(super) fn subtract(&mut self, domain: Domain, pods: u32) {
        let before = self.pods_of.get(domain);
        self.move_to(domain, before - pods);
    }

    fn move_to(&mut self, domain: Domain, pods: u32) {
        self.leave_level(self.pods_of.get(domain));
        *self.levels.entry(pods).or_default() += 1;
        *self.pods_of.entry(domain) = pods;
    }

    fn leave_level(&mut self, level: u32) {
        let domains = self.levels.get_mut(&level).expect("every domain has a level");
        *domains -= 1;
        if *domains == 0 {
            self.levels.remove(&level);
        }
    }

    /// How much fuller a domain would be than the emptiest with so many pods more; absent if there is
    /// no domain to compare with.
    pub(crate) fn skew(&self, domain: Domain, more: i64, domains_min: usize) -> Option<i64> {
        let own = i64::from(self.pods_of.get(domain)) + more;
        if self.domains < domains_min {
            return Some(own);
        }
        let (least, _) = self.levels.first_key_value()?;
        Some(own - i64::from(*least))
    }
}
