//! A recorded life of a journal: what was asked of it, and after which operation of the disk each
//! answer came. The crash tests cut it anywhere and say what must be there.

use std::{collections::BTreeMap, ops::RangeInclusive, path::Path, sync::Arc};

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use journal::{
    Batch, BatchId, EmbeddedJournal, Epoch, Image, Journal, MetaChange,
    embedded::{Options, SEGMENT_BYTES_MIN},
    suite::{Dice, put, record, tombstone},
};
use mvcc::{Position, Record, Revision};
use tempfile::TempDir;

use crate::disk::{Op, RecordingDisk};

/// Values up to this size are usual,
const VALUE_BYTES_MAX: usize = 1500;
/// and one in so many batches has one that fills a segment and more.
const HUGE_VALUE_BYTES: usize = 20_000;
const HUGE_ONE_IN: usize = 40;

/// What was done, in order.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) dir: TempDir,
    pub(crate) ops: Vec<Op>,
    /// Operations of the disk before the journal existed for good.
    pub(crate) created_at: usize,
    events: Vec<Event>,
}

/// A write, and the operations of the disk before it was asked for and before it was answered.
#[derive(Debug)]
struct Event {
    asked_at: usize,
    answered_at: usize,
    write: Write,
}

#[derive(Debug)]
enum Write {
    Claim(Epoch),
    Records { last: Revision, records: Vec<Record>, meta: Vec<MetaChange> },
    Forget(Vec<Position>),
}

/// What a journal must hold after a crash.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) epoch: Epoch,
    pub(crate) durable: Revision,
    pub(crate) meta: BTreeMap<Bytes, Bytes>,
    pub(crate) changes: BTreeMap<Position, KeyValue>,
    /// May be there or not.
    pub(crate) forgotten: Vec<Position>,
}

/// Writes the story.
struct Teller {
    disk: RecordingDisk,
    dir: TempDir,
    dice: Dice,
    journal: Option<EmbeddedJournal>,
    id: BatchId,
    expected: Expected,
    events: Vec<Event>,
}

// === impl Story ===

impl Story {
    /// A life of appends, claims, forgetting, maintenance and restarts.
    pub(crate) fn of_appends(seed: u64, steps: usize) -> Self {
        let (mut teller, created_at) = Teller::begin(seed);
        for _ in 0..steps {
            teller.step();
        }
        teller.end(created_at)
    }

    /// A journal that is first filled from an image.
    pub(crate) fn of_an_image(seed: u64, pieces: usize, steps: usize) -> Self {
        let (mut teller, created_at) = Teller::begin(seed);
        for _ in 0..pieces {
            teller.ingest();
        }
        for _ in 0..steps {
            teller.step();
        }
        teller.end(created_at)
    }

    /// What must be there if the power went after the first `cut` operations: the answered writes,
    /// and the same with the one under way.
    pub(crate) fn expected(&self, cut: usize) -> (Expected, Option<Expected>) {
        let mut sure = Expected::nothing();
        for event in self.events.iter().filter(|event| event.answered_at <= cut) {
            sure.on(&event.write);
        }
        let under_way =
            self.events.iter().find(|event| (event.asked_at..event.answered_at).contains(&cut));
        let with_it = under_way.map(|event| {
            let mut with_it = sure.clone();
            with_it.on(&event.write);
            // An epoch that nobody was told may be given out again.
            Expected { epoch: sure.epoch, ..with_it }
        });
        (sure, with_it)
    }

    /// The cuts that can be made.
    pub(crate) fn cuts(&self) -> RangeInclusive<usize> {
        0..=self.ops.len()
    }
}

// === impl Expected ===

impl Expected {
    pub(crate) fn nothing() -> Self {
        Self {
            epoch: Epoch(0),
            durable: Revision::INITIAL,
            meta: BTreeMap::new(),
            changes: BTreeMap::new(),
            forgotten: Vec::new(),
        }
    }

    fn on(&mut self, write: &Write) {
        match write {
            Write::Claim(epoch) => self.epoch = *epoch,
            Write::Forget(positions) => self.forgotten.extend(positions),
            Write::Records { last, records, meta } => {
                self.durable = *last;
                let changes = records.iter().flat_map(Record::positions);
                self.changes.extend(changes.map(|(position, kv)| (position, kv.clone())));
                for change in meta {
                    match &change.value {
                        Some(value) => self.meta.insert(change.key.clone(), value.clone()),
                        None => self.meta.remove(&change.key),
                    };
                }
            }
        }
    }
}

// === impl Teller ===

impl Teller {
    fn begin(seed: u64) -> (Self, usize) {
        let dir = tempfile::tempdir_in(scratch()).expect("a temporary folder");
        let disk = RecordingDisk::default();
        let journal = open(dir.path(), &disk);
        let created_at = disk.position();
        let mut teller = Self {
            disk,
            dir,
            dice: Dice::new(seed),
            journal: Some(journal),
            id: BatchId { epoch: Epoch(0), number: 0 },
            expected: Expected::nothing(),
            events: Vec::new(),
        };
        teller.claim();
        (teller, created_at)
    }

    fn end(self, created_at: usize) -> Story {
        Story { dir: self.dir, ops: self.disk.ops(), created_at, events: self.events }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..10 => self.append(),
            10..12 => self.forget(),
            12..18 => {
                self.journal().maintain().expect("maintain");
            }
            18 if self.dice.one_in(3) => {
                self.journal().condense(self.id.epoch).expect("condense");
            }
            18 => self.claim(),
            _ => self.restart(),
        }
    }

    fn claim(&mut self) {
        let asked_at = self.disk.position();
        let epoch = self.journal().claim().expect("claim");
        self.id = BatchId { epoch, number: 0 };
        self.note(asked_at, Write::Claim(epoch));
    }

    fn append(&mut self) {
        let count = self.dice.below(4);
        let records = self.records(count, 1);
        let meta = self.meta(usize::from(count == 0));
        let last = records.last().map_or(self.expected.durable, |record| record.revision);
        self.id.number += 1;
        let batch = Batch { id: self.id, records, meta };
        let asked_at = self.disk.position();
        self.journal().append(self.id.epoch, &batch).expect("append");
        let Batch { records, meta, .. } = batch;
        self.note(asked_at, Write::Records { last, records, meta });
    }

    fn ingest(&mut self) {
        let gap = 1 + self.dice.below(1000);
        let records = self.records(3, gap);
        let last = Revision(records.last().expect("three").revision.0 + 7);
        let meta = self.meta(1);
        let image = Image { last, records, meta };
        let asked_at = self.disk.position();
        self.journal().ingest(self.id.epoch, &image).expect("ingest");
        let Image { records, meta, .. } = image;
        self.note(asked_at, Write::Records { last, records, meta });
    }

    fn forget(&mut self) {
        let dice = &mut self.dice;
        let every = 1 + dice.below(3);
        let positions: Vec<Position> =
            self.expected.changes.keys().copied().filter(|_| dice.one_in(every)).collect();
        self.journal().forget(self.id.epoch, &positions).expect("forget");
        self.note(self.disk.position(), Write::Forget(positions));
    }

    fn restart(&mut self) {
        drop(self.journal.take());
        self.journal = Some(open(self.dir.path(), &self.disk));
        self.claim();
    }

    fn note(&mut self, asked_at: usize, write: Write) {
        self.expected.on(&write);
        self.events.push(Event { asked_at, answered_at: self.disk.position(), write });
    }

    fn records(&mut self, count: usize, gap: usize) -> Vec<Record> {
        let mut at = self.expected.durable.0;
        let dice = &mut self.dice;
        (0..count)
            .map(|_| {
                at += i64::try_from(gap).expect("small");
                let changes = 1 + dice.below(3);
                let kvs: Vec<KeyValue> = (0..changes).map(|_| change(dice, at)).collect();
                record(at, kvs)
            })
            .collect()
    }

    fn meta(&mut self, at_least: usize) -> Vec<MetaChange> {
        (0..at_least + self.dice.below(2))
            .map(|_| {
                let key = Bytes::from(format!("meta/{}", self.dice.below(10)));
                let value = (!self.dice.one_in(4)).then(|| Bytes::from(self.dice.bytes(20)));
                MetaChange { key, value }
            })
            .collect()
    }

    fn journal(&self) -> &EmbeddedJournal {
        self.journal.as_ref().expect("open between steps")
    }
}

fn change(dice: &mut Dice, at: i64) -> KeyValue {
    let key = format!("key/{}", dice.below(30));
    if dice.one_in(8) {
        return tombstone(at, &key);
    }
    let len = if dice.one_in(HUGE_ONE_IN) { HUGE_VALUE_BYTES } else { dice.below(VALUE_BYTES_MAX) };
    put(at, &key, &dice.bytes(len))
}

fn open(dir: &Path, disk: &RecordingDisk) -> EmbeddedJournal {
    EmbeddedJournal::open(dir, options(disk)).expect("open")
}

pub(crate) fn options(disk: &RecordingDisk) -> Options {
    Options {
        segment_bytes: SEGMENT_BYTES_MIN,
        disk: Arc::new(disk.clone()),
        identity: uuid::Uuid::from_u128(0x5eed),
    }
}

/// Memory if there is some mounted: thousands of folders are built, and none has to last.
pub(crate) fn scratch() -> std::path::PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}
