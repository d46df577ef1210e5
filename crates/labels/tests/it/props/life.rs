//! One life of a node, drawn from a seed, with everything that can go wrong beside it.

use std::collections::BTreeSet;

use labels::core::{
    keys::MARKER,
    object::{Labels, Uid},
    rv::ResourceVersion,
};

use chance::Chance;

use super::{
    Violation,
    cluster::Cluster,
    model::{Fact, LIVE, Model, PREFER_LIVE, STORED, user_labels},
    processor::{Deeds, Fault, Processor},
    watchers::Watchers,
};

/// In which order deliveries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Deletions in order, `added` early at times, repetitions anywhere.
    AddedOvertakes,
    /// Any.
    Permuted,
}

const INCARNATIONS_MAX: usize = 4;
const STEPS: usize = 250;

/// Far more steps than any life needs to come to rest.
const REST_STEPS_MAX: usize = 5_000;

pub(crate) struct Life {
    chance: Chance,
    order: Order,
    pub(crate) cluster: Cluster,
    watchers: Watchers,
    processors: [Processor; 2],
    deeds: Deeds,
    facts: Vec<Fact>,
    /// For each event, where its death stands among the facts.
    deaths: Vec<(usize, usize)>,
    born: usize,
    /// Keys that were set by hand on this incarnation.
    set: BTreeSet<String>,
    /// Labels never have the same value twice, so that an edit can be told from what was there.
    values: usize,
    last_rv: Option<ResourceVersion>,
}

// === impl Life ===

impl Life {
    pub(crate) fn new(chance: Chance, order: Order, fault: Option<Fault>) -> Self {
        let order = match fault {
            Some(Fault::UnorderedPosting) => Order::Permuted,
            _ => order,
        };
        Self {
            chance,
            order,
            cluster: Cluster::default(),
            watchers: Watchers::new(),
            processors: [Processor::new(fault), Processor::new(fault)],
            deeds: Deeds::default(),
            facts: Vec::new(),
            deaths: Vec::new(),
            born: 0,
            set: BTreeSet::new(),
            values: 0,
            last_rv: None,
        }
    }

    /// Lives, comes to rest, and hears everything once more.
    pub(crate) fn live(mut self) -> Result<(), Violation> {
        self.live_for(STEPS)?;
        self.rest()?;
        if self.order == Order::AddedOvertakes {
            self.check_against_model()?;
        }
        self.check_repetition()
    }

    /// The same, whatever the order, against the model.
    pub(crate) fn live_and_compare(mut self) -> Result<(), Violation> {
        self.live_for(STEPS)?;
        self.rest()?;
        self.check_against_model()
    }

    pub(crate) fn live_for(&mut self, steps: usize) -> Result<(), Violation> {
        (0..steps).try_for_each(|_| self.step())
    }

    fn step(&mut self) -> Result<(), Violation> {
        match self.chance.below(24) {
            0 | 1 => self.bear(),
            2 => self.kill(),
            3 | 4 => self.edit(),
            5 => self.switch_watchers(),
            6 => self.checkpoint(),
            7..=10 => self.post(),
            11 => self.repeat(),
            12 => self.crash(),
            13..=18 => self.process(0)?,
            _ => self.process(1)?,
        }
        self.check_version()
    }

    fn fresh(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    fn bear(&mut self) {
        if self.cluster.node.is_some() || self.born == INCARNATIONS_MAX {
            return;
        }
        self.born += 1;
        self.set.clear();
        let mut labels = Labels::new();
        for key in [STORED[0], STORED[1], PREFER_LIVE, LIVE] {
            if self.chance.once_in(2) {
                labels.insert(key.to_owned(), self.fresh());
            }
        }
        let uid = Uid(format!("u{}", self.born));
        self.facts.push(Fact::Born(uid.clone(), labels.clone()));
        self.cluster.bear(uid, labels);
    }

    /// At once, or by way of a finalizer.
    fn kill(&mut self) {
        let Some(node) = &self.cluster.node else { return };
        // Lives in which nothing is ever restored teach little.
        if self.born > 1 && !node.is_marked() && !self.chance.once_in(4) {
            return;
        }
        if !node.is_terminating && self.chance.once_in(3) {
            self.cluster.edit(|node| node.is_terminating = true);
            return;
        }
        self.deaths.push((self.cluster.events.len(), self.facts.len()));
        self.facts.push(Fact::Died);
        self.cluster.delete_node();
    }

    /// Only after a restore, or on a first incarnation: before, edits are overwritten by design.
    fn edit(&mut self) {
        let is_first = self.born == 1;
        let Some(node) = self.cluster.node.as_ref() else { return };
        if node.is_terminating || !(is_first || node.is_marked()) {
            return;
        }
        let key = (*self.chance.pick(&STORED)).to_owned();
        // Whoever sets a key and removes it again leaves no trace that an amendment could see.
        let is_removable = node.labels.contains_key(&key) && !self.set.contains(&key);
        let is_removal = is_removable && self.chance.once_in(3);
        let value = (!is_removal).then(|| self.fresh());
        self.set.extend(value.is_some().then(|| key.clone()));
        self.facts.push(Fact::Edited { key: key.clone(), value: value.clone() });
        self.cluster.edit(|node| {
            node.labels.remove(&key);
            node.labels.extend(value.map(|value| (key, value)));
        });
    }

    /// Down; or up again, with or without the events in between.
    fn switch_watchers(&mut self) {
        if self.order == Order::Permuted {
            return;
        }
        if self.watchers.are_up {
            self.watchers.are_up = !self.chance.once_in(3);
        } else if self.chance.once_in(2) {
            self.watchers.are_up = true;
        } else {
            let reached = self.watchers.reached();
            for (_, fact) in self.deaths.iter().filter(|(event, _)| *event >= reached) {
                self.facts[*fact] = Fact::DiedUnseen;
            }
            self.watchers.relist(&mut self.cluster);
        }
    }

    fn checkpoint(&mut self) {
        if self.watchers.checkpoint(&mut self.cluster) {
            self.facts.push(Fact::Checkpointed);
        }
    }

    fn post(&mut self) {
        let Self { chance, cluster, watchers, .. } = self;
        match self.order {
            Order::Permuted => watchers.post_any(chance, cluster),
            Order::AddedOvertakes if !watchers.are_up => {}
            Order::AddedOvertakes if chance.once_in(2) => watchers.overtake(chance, cluster),
            Order::AddedOvertakes => watchers.post_next(chance, cluster),
        }
    }

    /// Something that was queued before is queued again.
    fn repeat(&mut self) {
        let known: Vec<_> = self.cluster.events.iter().collect();
        let known: Vec<_> =
            known.into_iter().filter(|it| self.cluster.queued.contains(&it.name)).collect();
        if !known.is_empty() {
            let event = (*self.chance.pick(&known)).clone();
            self.cluster.post(&event);
        }
    }

    fn crash(&mut self) {
        let which = self.chance.below(2);
        self.processors[which].crash();
    }

    fn process(&mut self, which: usize) -> Result<(), Violation> {
        let result = self.processors[which].step(&mut self.cluster, &mut self.deeds);
        self.facts.extend(self.deeds.restored.take().map(Fact::Restored));
        result
    }

    /// Everything is posted and worked off.
    pub(crate) fn rest(&mut self) -> Result<(), Violation> {
        self.post_everything();
        self.work_off_all()
    }

    pub(crate) fn post_everything(&mut self) {
        self.watchers.are_up = true;
        while self.watchers.is_behind(&self.cluster) {
            self.post();
        }
    }

    /// Until nothing waits but what is quarantined.
    pub(crate) fn work_off_all(&mut self) -> Result<(), Violation> {
        for _ in 0..REST_STEPS_MAX {
            if self.cluster.is_worked_off() && self.processors.iter().all(Processor::is_idle) {
                return Ok(());
            }
            let which = self.chance.below(2);
            self.process(which)?;
            self.check_version()?;
        }
        Err(Violation("it never comes to rest".to_owned()))
    }

    /// I3. Nothing here makes versions go back, but a record may be broken for a while.
    fn check_version(&mut self) -> Result<(), Violation> {
        let record = self.cluster.record.as_ref();
        let Some(marker) = record.and_then(|record| record.data.get(MARKER)) else { return Ok(()) };
        let rv = Some(marker.parse().expect("our own record"));
        let has_fallen = rv < self.last_rv;
        let before = std::mem::replace(&mut self.last_rv, rv);
        Violation::unless(self.order == Order::Permuted || !has_fallen, || {
            format!("I3: the record's version falls from {before:?}")
        })
    }

    pub(crate) fn check_against_model(&self) -> Result<(), Violation> {
        let model = Model::of(&self.facts);
        let reading = self.cluster.read();
        let found = reading.record().map(|record| user_labels(record.labels()));
        let wanted = model.stored.as_ref().map(user_labels);
        Violation::unless(found == wanted, || {
            format!("stored {found:?} instead of {wanted:?} after {:#?}", self.facts)
        })?;
        let (Some(node), Some(live)) = (&self.cluster.node, &model.live) else { return Ok(()) };
        if node.is_terminating && !node.is_marked() {
            return Ok(());
        }
        let found = user_labels(&node.labels);
        let wanted = user_labels(&live.labels);
        let is_restored = node.is_marked() || model.stored.is_none();
        Violation::unless(is_restored && (found == wanted || node.is_terminating), || {
            format!("{:?} instead of {wanted:?} after {:#?}", node.labels, self.facts)
        })?;
        let is_own = |key: &str| node.labels.get(key) == live.labels.get(key);
        Violation::unless(is_own(LIVE), || format!("{LIVE} is not the machine's own"))
    }

    /// I5: what was delivered before, delivered once more, changes neither node nor labels.
    pub(crate) fn check_repetition(&mut self) -> Result<(), Violation> {
        let state = |life: &Self| {
            let labels = life.cluster.node.as_ref().map(|node| node.labels.clone());
            let reading = life.cluster.read();
            let record = reading.record();
            (labels, record.map(|record| (record.snapshot.clone(), record.ledger.clone())))
        };
        let before = state(self);
        for event in self.cluster.events.clone() {
            if self.cluster.queued.contains(&event.name) {
                self.cluster.post(&event);
            }
        }
        self.rest()?;
        let after = state(self);
        Violation::unless(before == after, || {
            format!("I5: repetition makes {after:#?} of {before:#?}")
        })
    }
}
