//! Which counters a class looks at, and which count it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::class::{Class, ClassId, Spread, Term};

use super::spread::{SpreadQuestion, SpreadTally};
use super::tally::{Question, Tally};
use super::{Asides, Known, SpreadId, TallyId, Topology};

#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// One for each constraint of the class, in its order.
    pub(crate) spread: Vec<SpreadLink>,
    /// One for each term.
    pub(crate) affinity: Vec<TallyId>,
    /// Whether all terms of its affinity are about the class itself, so that its first pod needs none
    /// to be there.
    pub(crate) is_own_company: bool,
    pub(crate) anti_affinity: Vec<TallyId>,
    /// Those whose pods keep this class away.
    pub(crate) repelled_by: Vec<TallyId>,
    /// Those that count the pods of this class.
    pub(super) counted_in: Vec<TallyId>,
    pub(super) spread_in: Vec<SpreadId>,
}

#[derive(Clone, Debug)]
pub(crate) struct SpreadLink {
    pub(crate) id: SpreadId,
    /// What one more pod of the class adds to its domain: 1 if the constraint selects it.
    pub(crate) adds: i64,
}

// === impl Topology ===

impl Topology {
    /// Links a class whose number is the next one.
    pub(crate) fn on_class_added(&mut self, id: ClassId, known: Known<'_>) {
        let class = known.classes.get(id.0);
        let mut links = Arc::new(Links::default());
        for (number, question) in self.questions.iter() {
            join(&mut links, (question, TallyId(number)), class, known);
        }
        for (number, question) in self.spread_questions.iter() {
            join_spread(&mut links, (question, SpreadId(number)), class, known);
        }
        Arc::make_mut(&mut self.links).push(links);
        let needed = self.needed(class, known);
        let all = Arc::make_mut(&mut self.links);
        let links = Arc::make_mut(&mut all[id.0 as usize]);
        (links.spread, links.affinity, links.anti_affinity) = needed;
        links.is_own_company =
            class.affinity.iter().all(|term| term.who.matches(class, known.lexicon));
    }

    /// The counters that the class looks at. Those that others look at because of it are made too.
    fn needed(
        &mut self,
        class: &Class,
        known: Known<'_>,
    ) -> (Vec<SpreadLink>, Vec<TallyId>, Vec<TallyId>) {
        let all: Vec<_> = class.affinity.iter().map(|term| term.who.clone()).collect();
        let affinity = class
            .affinity
            .iter()
            .map(|term| self.question(Question::About { key: term.key, all: all.clone() }, known));
        let affinity = affinity.collect();
        let anti_affinity = class.anti_affinity.iter().map(|term: &Term| {
            self.question(Question::Holding(term.clone()), known);
            let all = vec![term.who.clone()];
            self.question(Question::About { key: term.key, all }, known)
        });
        let anti_affinity = anti_affinity.collect();
        let spread = class.spread.iter().map(|each| self.spread_link(class, each, known));
        (spread.collect(), affinity, anti_affinity)
    }

    fn spread_link(&mut self, class: &Class, spread: &Spread, known: Known<'_>) -> SpreadLink {
        let keys: BTreeSet<_> = class.spread.iter().map(|each| each.key).collect();
        let question = SpreadQuestion {
            key: spread.key,
            keys: keys.into_iter().collect(),
            namespace: class.namespace,
            selector: spread.selector.clone(),
            asides: Asides {
                affinity: spread.honors_affinity.then_some(class.placement),
                taints: spread.honors_taints.then_some(class.placement),
            },
        };
        let is_selected = spread.selector.matches(&class.labels, &known.lexicon.words);
        SpreadLink { id: self.spread_question(question, known), adds: is_selected.into() }
    }

    fn question(&mut self, question: Question, known: Known<'_>) -> TallyId {
        if let Some(id) = self.questions.find(&question) {
            return TallyId(id);
        }
        let key = self.key(question.key(), known);
        let (number, _) = Arc::make_mut(&mut self.questions).intern(question);
        let id = TallyId(number);
        let question = Arc::clone(self.questions.get(number));
        let mut is_counted = Vec::new();
        for ((_, class), links) in
            known.classes.iter().zip(Arc::make_mut(&mut self.links).iter_mut())
        {
            is_counted.push(join(links, (&question, id), class, known));
        }
        let mut tally = Tally::new(key);
        for (slot, host) in known.hosts() {
            let Some(domain) = self.domain(key, slot) else { continue };
            for (_, pods) in host.classes.iter().filter(|(class, _)| is_counted[class.0 as usize]) {
                tally.add(domain, *pods);
            }
        }
        self.tallies.push(Arc::new(tally));
        id
    }

    fn spread_question(&mut self, question: SpreadQuestion, known: Known<'_>) -> SpreadId {
        if let Some(id) = self.spread_questions.find(&question) {
            return SpreadId(id);
        }
        let key = self.key(question.key, known);
        let (number, _) = Arc::make_mut(&mut self.spread_questions).intern(question);
        let id = SpreadId(number);
        let question = Arc::clone(self.spread_questions.get(number));
        let mut is_counted = Vec::new();
        for ((_, class), links) in
            known.classes.iter().zip(Arc::make_mut(&mut self.links).iter_mut())
        {
            is_counted.push(join_spread(links, (&question, id), class, known));
        }
        let mut tally = SpreadTally::new(key);
        for (slot, host) in known.hosts.iter().enumerate() {
            let host = host.as_ref().filter(|host| question.holds_node(host, known));
            let found = host.and_then(|host| Some((host, self.domain(key, slot)?)));
            tally.add_node(found.map(|(_, domain)| domain));
            let Some((host, domain)) = found else { continue };
            for (_, pods) in host.classes.iter().filter(|(class, _)| is_counted[class.0 as usize]) {
                tally.add(domain, *pods);
            }
        }
        self.spreads.push(Arc::new(tally));
        id
    }
}

/// Notes what a counter and a class are to each other; true if it counts the class.
fn join(
    links: &mut Arc<Links>,
    (question, id): (&Question, TallyId),
    class: &Class,
    known: Known<'_>,
) -> bool {
    if question.repels(class, known.lexicon) {
        Arc::make_mut(links).repelled_by.push(id);
    }
    let is_counted = question.counts(class, known.lexicon);
    if is_counted {
        Arc::make_mut(links).counted_in.push(id);
    }
    is_counted
}

fn join_spread(
    links: &mut Arc<Links>,
    (question, id): (&SpreadQuestion, SpreadId),
    class: &Class,
    known: Known<'_>,
) -> bool {
    let is_counted = question.counts(class, known.lexicon);
    if is_counted {
        Arc::make_mut(links).spread_in.push(id);
    }
    is_counted
}
