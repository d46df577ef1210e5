//! Who runs in which domain of the topology: counters that follow every pod placed and removed.
//!
//! A counter is counted through once, when the first class that needs it is made.

mod domains;
mod links;
mod spread;
mod tally;

use std::sync::Arc;

use crate::class::{Class, ClassId, Lexicon, PlacementId};
use crate::node::Host;
use crate::placement::Placement;
use crate::table::Table;
use crate::words::Symbol;

use self::domains::Domains;
use self::spread::{SpreadQuestion, SpreadTally};
use self::tally::{Question, Tally};

pub(crate) use self::domains::Domain;
pub(crate) use self::links::Links;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TallyId(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpreadId(u32);

/// Every part is shared between forks until one of them changes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    keys: Arc<Table<Symbol>>,
    domains: Vec<Arc<Domains>>,
    questions: Arc<Table<Question>>,
    tallies: Vec<Arc<Tally>>,
    spread_questions: Arc<Table<SpreadQuestion>>,
    spreads: Vec<Arc<SpreadTally>>,
    /// By class.
    links: Arc<Vec<Arc<Links>>>,
}

/// What counters are made from when they are new.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) classes: &'a Table<Class>,
    pub(crate) placements: &'a Table<Placement>,
    pub(crate) hosts: &'a [Option<Arc<Host>>],
}

// === impl Known ===

impl<'a> Known<'a> {
    fn hosts(self) -> impl Iterator<Item = (usize, &'a Host)> {
        let hosts = self.hosts.iter().enumerate();
        hosts.filter_map(|(slot, host)| Some((slot, host.as_deref()?)))
    }
}

// === impl Topology ===

impl Topology {
    pub(crate) fn links(&self, class: ClassId) -> &Arc<Links> {
        &self.links[class.0 as usize]
    }

    pub(crate) fn tally(&self, id: TallyId) -> &Tally {
        &self.tallies[id.0 as usize]
    }

    pub(crate) fn spread(&self, id: SpreadId) -> &SpreadTally {
        &self.spreads[id.0 as usize]
    }

    /// Where a node lies in the domains of a key; absent if it lacks the label.
    pub(crate) fn domain(&self, key: KeyId, slot: usize) -> Option<Domain> {
        self.domains[key.0 as usize].of_node(slot)
    }

    /// Counts a pod that came to a node.
    pub(crate) fn on_placed(&mut self, class: ClassId, slot: usize) {
        let links = Arc::clone(self.links(class));
        for id in &links.counted_in {
            if let Some(domain) = self.domain(self.tally(*id).key, slot) {
                Arc::make_mut(&mut self.tallies[id.0 as usize]).add(domain, 1);
            }
        }
        for id in &links.spread_in {
            if let Some(domain) = self.eligible_domain(*id, slot) {
                Arc::make_mut(&mut self.spreads[id.0 as usize]).add(domain, 1);
            }
        }
    }

    /// Counts a pod that left a node.
    pub(crate) fn on_removed(&mut self, class: ClassId, slot: usize) {
        let links = Arc::clone(self.links(class));
        for id in &links.counted_in {
            if let Some(domain) = self.domain(self.tally(*id).key, slot) {
                Arc::make_mut(&mut self.tallies[id.0 as usize]).subtract(domain, 1);
            }
        }
        for id in &links.spread_in {
            if let Some(domain) = self.eligible_domain(*id, slot) {
                Arc::make_mut(&mut self.spreads[id.0 as usize]).subtract(domain, 1);
            }
        }
    }

    /// A node without pods enters; its number is the next one.
    pub(crate) fn on_node_added(&mut self, slot: usize, host: &Host, known: Known<'_>) {
        for (id, key) in self.keys.iter() {
            let domains = Arc::make_mut(&mut self.domains[id as usize]);
            domains.add_node(host.machine.labels.get(**key));
        }
        let questions = Arc::clone(&self.spread_questions);
        for (id, question) in questions.iter() {
            let is_eligible = question.holds_node(host, known);
            let domain = self.domain(self.spreads[id as usize].key, slot);
            let spread = Arc::make_mut(&mut self.spreads[id as usize]);
            spread.add_node(domain.filter(|_| is_eligible));
        }
    }

    /// A node leaves that its pods have left before.
    pub(crate) fn on_node_removed(&mut self, slot: usize) {
        for id in 0..self.spreads.len() {
            let id = SpreadId(u32::try_from(id).expect("counters are numbered"));
            if let Some(domain) = self.eligible_domain(id, slot) {
                Arc::make_mut(&mut self.spreads[id.0 as usize]).remove_node(slot, domain);
            }
        }
        for domains in &mut self.domains {
            Arc::make_mut(domains).remove_node(slot);
        }
    }

    /// The domain in which a constraint counts what runs on the node, if it counts it at all.
    fn eligible_domain(&self, id: SpreadId, slot: usize) -> Option<Domain> {
        let spread = self.spread(id);
        if spread.holds_node(slot) { self.domain(spread.key, slot) } else { None }
    }

    fn key(&mut self, key: Symbol, known: Known<'_>) -> KeyId {
        let (id, is_new) = match self.keys.find(&key) {
            Some(id) => (id, false),
            None => Arc::make_mut(&mut self.keys).intern(key),
        };
        if is_new {
            let mut domains = Domains::default();
            for host in known.hosts {
                let value = host.as_ref().and_then(|host| host.machine.labels.get(key));
                domains.add_node(value);
            }
            self.domains.push(Arc::new(domains));
        }
        KeyId(id)
    }
}

/// Whether nodes are left aside by a pod's affinity or its missing tolerations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Asides {
    affinity: Option<PlacementId>,
    taints: Option<PlacementId>,
}
