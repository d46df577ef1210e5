//! Random histories: what a journal answers is compared with a naive model after every step that
//! could have changed it.

use std::collections::BTreeMap;

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use mvcc::{Change, Position, Record, Revision};

use super::{
    Dice, Subject,
    obligations::{Pen, all_heads, all_records, set, unset},
    put, tombstone,
};
use crate::Journal;

const RECORDS_MAX: usize = 5;
const CHANGES_MAX: usize = 4;
const VALUE_BYTES_MAX: usize = 3000;
const META_KEYS: usize = 20;

/// A journal, and what it should hold.
pub struct Run<'a, S: Subject> {
    subject: &'a mut S,
    journal: Option<S::Journal>,
    pen: Pen,
    model: Model,
    seed: u64,
}

/// All that was ever written, and what became of it.
#[derive(Debug)]
struct Model {
    durable: Revision,
    changes: BTreeMap<Position, (KeyValue, Fate)>,
    meta: BTreeMap<Bytes, Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Forgotten since the journal was opened: must not be seen.
    Forgotten,
    /// Forgotten before that: may be seen again.
    Faded,
}

// === impl Run ===

impl<'a, S: Subject> Run<'a, S> {
    pub fn begin(subject: &'a mut S) -> Self {
        let journal = subject.open();
        let pen = Pen::claim(&journal);
        Self { subject, journal: Some(journal), pen, model: Model::new(), seed: 0 }
    }

    /// Takes `steps` more steps, as `seed` decides, and compares everything at the end.
    pub fn go_on(&mut self, seed: u64, steps: usize) {
        self.seed = seed;
        let mut dice = Dice::new(seed);
        for _ in 0..steps {
            self.step(&mut dice);
        }
        self.compare();
        self.reopen();
        self.compare();
    }

    fn step(&mut self, dice: &mut Dice) {
        match dice.below(20) {
            0..12 => self.append(dice),
            12..15 => self.forget(dice),
            15..18 => {
                self.journal().maintain().expect("maintain");
            }
            18 if dice.one_in(2) => self.journal().condense(self.pen.epoch).expect("condense"),
            18 => self.pen = Pen::claim(self.journal()),
            _ => self.probe(dice),
        }
        if dice.one_in(40) {
            self.reopen();
        }
    }

    fn append(&mut self, dice: &mut Dice) {
        let records: Vec<Record> = (0..dice.below(RECORDS_MAX + 1))
            .scan(self.model.durable, |at, _| {
                *at = at.next();
                Some(some_record(dice, *at))
            })
            .collect();
        let meta_changes = dice.below(3) + usize::from(records.is_empty());
        let meta = (0..meta_changes)
            .map(|_| {
                let key = format!("meta/{}", dice.below(META_KEYS));
                if dice.one_in(3) { unset(&key) } else { set(&key, &dice.next_u64().to_string()) }
            })
            .collect();
        let batch = self.pen.batch(records, meta);
        self.journal().append(self.pen.epoch, &batch).expect("append");
        self.model.on_batch(&batch);
    }

    fn forget(&mut self, dice: &mut Dice) {
        let positions: Vec<Position> =
            self.model.changes.keys().copied().filter(|_| dice.one_in(4)).collect();
        self.journal().forget(self.pen.epoch, &positions).expect("forget");
        for position in positions {
            let (_, fate) = self.model.changes.get_mut(&position).expect("just listed");
            *fate = Fate::Forgotten;
        }
    }

    fn probe(&self, dice: &mut Dice) {
        let revision = Revision(dice.below(self.model.changes.len() + 3) as i64);
        let position =
            Position::new(revision, u32::try_from(dice.below(CHANGES_MAX)).expect("small"));
        let found = self.journal().read(position).expect("read");
        self.model.check(position, found.as_ref(), self.seed);
    }

    fn reopen(&mut self) {
        let journal = self.journal.take().expect("open");
        let journal = self.journal.insert(self.subject.reopen(journal));
        self.pen = Pen::claim(journal);
        for (_, fate) in
            self.model.changes.values_mut().filter(|(_, fate)| *fate == Fate::Forgotten)
        {
            *fate = Fate::Faded;
        }
    }

    fn compare(&self) {
        let (journal, model, seed) = (self.journal(), &self.model, self.seed);
        assert_eq!(journal.durable().expect("durable"), model.durable, "seed {seed}");
        let meta: BTreeMap<Bytes, Bytes> = journal.meta().expect("meta").into_iter().collect();
        assert_eq!(meta, model.meta, "seed {seed}");
        let records = all_records(journal);
        let found: BTreeMap<Position, &KeyValue> =
            records.iter().flat_map(Record::positions).collect();
        for position in model.changes.keys() {
            model.check(*position, found.get(position).copied(), seed);
        }
        assert!(found.keys().all(|position| model.changes.contains_key(position)), "seed {seed}");
        let heads = all_heads(journal);
        assert!(heads.is_sorted_by(|one, next| one.position < next.position), "seed {seed}");
        let positions: Vec<Position> = heads.iter().map(|head| head.position).collect();
        assert_eq!(positions, found.keys().copied().collect::<Vec<_>>(), "seed {seed}");
        for head in &heads {
            assert_eq!(head.kv, found[&head.position].without_value(), "seed {seed}");
        }
    }

    fn journal(&self) -> &S::Journal {
        self.journal.as_ref().expect("open between steps")
    }
}

// === impl Model ===

impl Model {
    fn new() -> Self {
        Self { durable: Revision::INITIAL, changes: BTreeMap::new(), meta: BTreeMap::new() }
    }

    fn on_batch(&mut self, batch: &crate::Batch) {
        self.durable = batch.last().unwrap_or(self.durable);
        for (position, kv) in batch.records.iter().flat_map(Record::positions) {
            self.changes.insert(position, (kv.clone(), Fate::Kept));
        }
        for change in &batch.meta {
            match &change.value {
                Some(value) => self.meta.insert(change.key.clone(), value.clone()),
                None => self.meta.remove(&change.key),
            };
        }
    }

    fn check(&self, position: Position, found: Option<&KeyValue>, seed: u64) {
        match self.changes.get(&position) {
            None | Some((_, Fate::Forgotten)) => {
                assert_eq!(found, None, "seed {seed}: {position}");
            }
            Some((kv, Fate::Kept)) => assert_eq!(found, Some(kv), "seed {seed}: {position}"),
            Some((kv, Fate::Faded)) => {
                assert!(
                    found.is_none_or(|found| found == kv),
                    "seed {seed}: {position}: {found:?}"
                );
            }
        }
    }
}

fn some_record(dice: &mut Dice, revision: Revision) -> Record {
    let changes = (0..=dice.below(CHANGES_MAX))
        .map(|sub| {
            let key = format!("key/{}", dice.below(50));
            let kv = if dice.one_in(5) {
                tombstone(revision.0, &key)
            } else {
                let len = dice.below(VALUE_BYTES_MAX);
                put(revision.0, &key, &dice.bytes(len))
            };
            Change { sub: u32::try_from(sub).expect("small"), kv }
        })
        .collect();
    Record { revision, changes }
}
