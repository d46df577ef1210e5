//! One function per obligation. Each starts from a fresh subject and looks only through the trait.

use std::{
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use bytes::Bytes;
use mvcc::{Change, Position, Record, Revision};

use super::{Dice, Subject, history, put, record, tombstone};
use crate::{AppendError, Batch, BatchId, Epoch, Head, Image, Journal, MetaChange};

/// Enough of everything for one answer.
const BYTES_MAX: usize = 64 << 20;
/// The histories every run replays, and their length.
const SEEDS: Range<u64> = 0..8;
const STEPS: usize = 150;
/// Large against what a journal needs for itself.
const VALUE_BYTES: usize = 64 << 10;
/// Far above what any journal writes at once without taking care.
const LARGE_VALUE_BYTES: usize = 3 << 20;
/// A journal that still has work after this many steps with no write between never rests.
const MAINTAIN_STEPS_MAX: usize = 10_000;

pub fn an_empty_journal_stands_at_the_initial_revision(subject: &mut impl Subject) {
    let journal = subject.open();
    assert_eq!(journal.durable().expect("durable"), Revision::INITIAL);
    assert_eq!(journal.meta().expect("meta"), []);
    assert_eq!(all_records(&journal), []);
    assert_eq!(all_heads(&journal), []);
    assert_eq!(journal.read(first_of(2)).expect("read"), None);
}

pub fn claims_rise_and_survive(subject: &mut impl Subject) {
    let journal = subject.open();
    let first = journal.claim().expect("claim");
    let second = journal.claim().expect("claim");
    assert!(second > first, "{second:?} follows {first:?}");
    let journal = subject.reopen(journal);
    let third = journal.claim().expect("claim");
    assert!(third > second, "{third:?} follows {second:?} across a crash");
}

pub fn a_later_claim_fences_every_write(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut old = Pen::claim(&journal);
    old.write(&journal, vec![record(2, [put(2, "a", b"1")])]);
    let new = Pen::claim(&journal);
    let late = old.batch(vec![record(3, [put(3, "a", b"2")])], Vec::new());
    assert_fenced(journal.append(old.epoch, &late), &old, &new);
    assert_fenced(journal.forget(old.epoch, &[first_of(2)]), &old, &new);
    assert_fenced(journal.condense(old.epoch), &old, &new);
    let image = Image { last: Revision(9), records: Vec::new(), meta: Vec::new() };
    assert_fenced(journal.ingest(old.epoch, &image), &old, &new);
    assert!(!journal.holds(late.id).expect("holds"), "a fenced batch is not held");
    let journal = subject.reopen(journal);
    assert_eq!(all_records(&journal), [record(2, [put(2, "a", b"1")])]);
}

pub fn an_appended_batch_survives_whole<S: Subject>(subject: &mut S) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let records = vec![
        record(2, [put(2, "a", b"1"), put(2, "b", b""), tombstone(2, "c")]),
        record(3, [put(3, "a", &[0, 255, 10])]),
    ];
    let batch = pen.batch(records.clone(), vec![set("lease/1", "10")]);
    journal.append(pen.epoch, &batch).expect("append");
    let check = |journal: &S::Journal| {
        assert_eq!(journal.durable().expect("durable"), Revision(3));
        assert_eq!(all_records(journal), records);
        for (position, kv) in records.iter().flat_map(Record::positions) {
            assert_eq!(journal.read(position).expect("read").as_ref(), Some(kv));
        }
        assert_eq!(journal.meta().expect("meta"), [entry("lease/1", "10")]);
    };
    check(&journal);
    check(&subject.reopen(journal));
}

pub fn a_batch_that_does_not_follow_changes_nothing(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    pen.write(&journal, vec![record(2, [put(2, "a", b"1")])]);
    let wrong = [vec![2], vec![4], vec![1], vec![3, 5], vec![3, 3], vec![3, 2]];
    for revisions in wrong {
        let records = revisions.iter().map(|at| record(*at, [put(*at, "b", b"x")])).collect();
        let batch = pen.batch(records, vec![set("m", "1")]);
        match journal.append(pen.epoch, &batch) {
            Err(AppendError::OutOfOrder { .. }) => {}
            other => panic!("{revisions:?} after 2 gave {other:?}"),
        }
    }
    assert_eq!(journal.durable().expect("durable"), Revision(2));
    assert_eq!(journal.meta().expect("meta"), []);
    pen.write(&journal, vec![record(3, [put(3, "b", b"x")])]);
    let journal = subject.reopen(journal);
    assert_eq!(all_records(&journal).len(), 2);
}

pub fn a_batch_of_meta_alone_moves_no_revision(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let batch = pen.batch(Vec::new(), vec![set("compacted", "7")]);
    journal.append(pen.epoch, &batch).expect("append");
    let journal = subject.reopen(journal);
    assert_eq!(journal.durable().expect("durable"), Revision::INITIAL);
    assert_eq!(journal.meta().expect("meta"), [entry("compacted", "7")]);
    assert!(journal.holds(batch.id).expect("holds"));
}

pub fn meta_entries_are_set_replaced_and_removed(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let first = vec![set("b", "1"), set("a", "1"), set("c", ""), set("b", "2")];
    let second = vec![set("a", "2"), unset("c"), unset("never set")];
    for changes in [first, second] {
        let batch = pen.batch(Vec::new(), changes);
        journal.append(pen.epoch, &batch).expect("append");
    }
    let expected = [entry("a", "2"), entry("b", "2")];
    assert_eq!(journal.meta().expect("meta"), expected);
    let journal = subject.reopen(journal);
    assert_eq!(journal.meta().expect("meta"), expected);
}

pub fn only_durable_batches_are_held(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut first = Pen::claim(&journal);
    let held = first.batch(vec![record(2, [put(2, "a", b"1")])], Vec::new());
    assert!(!journal.holds(held.id).expect("holds"), "not yet sent");
    journal.append(first.epoch, &held).expect("append");
    assert!(journal.holds(held.id).expect("holds"));
    let second = Pen::claim(&journal);
    let unsent = BatchId { epoch: second.epoch, number: 1 };
    let journal = subject.reopen(journal);
    assert!(journal.holds(held.id).expect("holds"), "the last batch of the epoch before");
    assert!(!journal.holds(unsent).expect("holds"), "never sent");
    assert!(!journal.holds(first.next_id()).expect("holds"), "the one after the last");
}

pub fn records_come_in_order_within_their_bound(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let records: Vec<Record> =
        (2..20).map(|at| record(at, [put(at, "a", &[7; 100]), put(at, "b", &[8; 50])])).collect();
    for pair in records.chunks(2) {
        pen.write(&journal, pair.to_vec());
    }
    let one = records[0].encoded_len();
    for (from, bytes_max, count) in [
        (0, BYTES_MAX, 18),
        (5, BYTES_MAX, 15),
        (5, 0, 1),
        (5, 1, 1),
        (5, one, 1),
        (5, one + 1, 2),
        (20, 9, 0),
    ] {
        let found = journal.records(Revision(from), bytes_max).expect("records");
        let begin = usize::try_from(from.max(2) - 2).expect("not negative");
        assert_eq!(found, records[begin..begin + count], "from {from}, {bytes_max} bytes");
    }
}

pub fn heads_come_in_order_without_values<S: Subject>(subject: &mut S) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let records = vec![
        record(2, [put(2, "a", &[1; 3000]), tombstone(2, "b")]),
        record(3, [put(3, "a", b"")]),
    ];
    pen.write(&journal, records.clone());
    let expected: Vec<Head> = records.iter().flat_map(Record::positions).map(head).collect();
    assert_eq!(all_heads(&journal), expected);
    let journal = subject.reopen(journal);
    assert_eq!(all_heads(&journal), expected);
}

pub fn a_large_batch_is_one_batch(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let value = Dice::new(1).bytes(LARGE_VALUE_BYTES);
    let records = vec![
        record(2, [put(2, "small", b"1")]),
        record(3, [put(3, "large", &value)]),
        record(4, [put(4, "small", b"2")]),
    ];
    pen.write(&journal, records.clone());
    pen.write(&journal, vec![record(5, [put(5, "small", b"3")])]);
    let journal = subject.reopen(journal);
    assert_eq!(all_records(&journal)[..3], records);
    assert_eq!(journal.durable().expect("durable"), Revision(5));
}

pub fn forgotten_changes_are_gone_and_the_others_stay(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    for at in 2..8 {
        pen.write(&journal, vec![record(at, [put(at, "a", b"1"), put(at, "b", b"2")])]);
    }
    let forgotten = [first_of(2), Position::new(Revision(2), 1), first_of(4), first_of(99)];
    journal.forget(pen.epoch, &forgotten).expect("forget");
    journal.forget(pen.epoch, &forgotten).expect("forgetting twice is no harm");
    for position in forgotten {
        assert_eq!(journal.read(position).expect("read"), None, "{position}");
    }
    let records = all_records(&journal);
    let revisions: Vec<i64> = records.iter().map(|record| record.revision.0).collect();
    assert_eq!(revisions, [3, 4, 5, 6, 7], "nothing of 2 is kept");
    assert_eq!(records[1].changes, [Change { sub: 1, kv: put(4, "b", b"2") }]);
    assert_eq!(all_heads(&journal).len(), 9);
    assert_eq!(journal.durable().expect("durable"), Revision(7));
    pen.write(&journal, vec![record(8, [put(8, "a", b"1")])]);
}

pub fn maintenance_changes_nothing_that_is_kept<S: Subject>(subject: &mut S) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    for at in 2..400 {
        let batch = pen.batch(vec![record(at, [put(at, "a", &[3; 400])])], vec![set("at", "x")]);
        journal.append(pen.epoch, &batch).expect("append");
    }
    let forgotten: Vec<Position> = (2..390).filter(|at| at % 50 != 0).map(first_of).collect();
    journal.forget(pen.epoch, &forgotten).expect("forget");
    let before = (all_records(&journal), all_heads(&journal), journal.size().expect("size"));
    rest(&journal);
    assert_eq!(all_records(&journal), before.0);
    assert_eq!(all_heads(&journal), before.1);
    let after = journal.size().expect("size");
    assert_eq!(after.in_use_bytes, before.2.in_use_bytes);
    assert!(after.total_bytes <= before.2.total_bytes, "{after:?} after {:?}", before.2);
    let journal = subject.reopen(journal);
    let kept: Vec<Record> =
        all_records(&journal).into_iter().filter(|found| before.0.contains(found)).collect();
    assert_eq!(kept, before.0, "all that was kept is there after a crash too");
    assert_eq!(journal.durable().expect("durable"), Revision(399));
}

pub fn what_is_forgotten_during_maintenance_stays_forgotten(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    for at in 2..300 {
        pen.write(&journal, vec![record(at, [put(at, "a", &[3; 400])])]);
    }
    let mut forgotten: Vec<Position> = (2..250).filter(|at| at % 5 != 0).map(first_of).collect();
    journal.forget(pen.epoch, &forgotten).expect("forget");
    for late in (5..250).step_by(5).map(first_of) {
        journal.maintain().expect("maintain");
        journal.forget(pen.epoch, &[late]).expect("forget");
        forgotten.push(late);
    }
    rest(&journal);
    for position in forgotten {
        assert_eq!(journal.read(position).expect("read"), None, "{position} is back");
    }
}

pub fn a_condensed_journal_takes_little_more_than_it_keeps<S: Subject>(subject: &mut S) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    for at in 2..32 {
        pen.write(&journal, vec![record(at, [put(at, "a", &[3; VALUE_BYTES])])]);
    }
    let check = |journal: &S::Journal, forgotten: &mut dyn Iterator<Item = i64>| {
        let forgotten: Vec<Position> = forgotten.map(first_of).collect();
        journal.forget(pen.epoch, &forgotten).expect("forget");
        let kept = all_records(journal);
        journal.condense(pen.epoch).expect("condense");
        rest(journal);
        let size = journal.size().expect("size");
        let allowed_bytes = size.in_use_bytes + size.in_use_bytes / 4 + VALUE_BYTES as u64 / 2;
        assert!(size.total_bytes < allowed_bytes, "{size:?} after {forgotten:?}");
        assert_eq!(all_records(journal), kept);
    };
    check(&journal, &mut (2..32).filter(|at| at % 3 == 0));
    check(&journal, &mut (2..32));
    pen.write(&journal, vec![record(32, [put(32, "a", b"1")])]);
    let journal = subject.reopen(journal);
    assert_eq!(journal.durable().expect("durable"), Revision(32));
    assert_eq!(all_records(&journal).last(), Some(&record(32, [put(32, "a", b"1")])));
}

/// Of changes of a few bytes the frame around them takes more than they do: a journal that takes it for
/// waste copies it for ever.
pub fn maintenance_ends_however_little_is_kept(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let last = 61;
    for at in 2..=last {
        pen.write(&journal, vec![record(at, [put(at, "a", b"1")])]);
    }
    for kept in (0..4).rev() {
        let forgotten: Vec<Position> = (2..=last - kept).map(first_of).collect();
        journal.forget(pen.epoch, &forgotten).expect("forget");
        journal.condense(pen.epoch).expect("condense");
        // First all that was asked for, then what it does by itself.
        rest(&journal);
        rest(&journal);
    }
    assert_eq!(all_records(&journal), []);
}

pub fn an_image_fills_an_empty_journal_only(subject: &mut impl Subject) {
    let journal = subject.open();
    let mut pen = Pen::claim(&journal);
    let kept = |at| record(at, [put(at, "a", b"1")]);
    let pieces = [
        Image { last: Revision(9), records: vec![kept(4), kept(9)], meta: vec![set("m", "1")] },
        Image {
            last: Revision(5_000_000_000),
            records: vec![kept(10), kept(20)],
            meta: Vec::new(),
        },
    ];
    for piece in &pieces {
        journal.ingest(pen.epoch, piece).expect("ingest");
    }
    assert!(matches!(journal.ingest(pen.epoch, &pieces[0]), Err(AppendError::OutOfOrder { .. })));
    let journal = subject.reopen(journal);
    assert_eq!(all_records(&journal), [kept(4), kept(9), kept(10), kept(20)]);
    assert_eq!(journal.meta().expect("meta"), [entry("m", "1")]);
    assert_eq!(journal.durable().expect("durable"), Revision(5_000_000_000));
    pen.write(&journal, vec![kept(5_000_000_001)]);
    let late = Image { last: Revision(6_000_000_000), records: Vec::new(), meta: Vec::new() };
    assert!(matches!(journal.ingest(pen.epoch, &late), Err(AppendError::NotEmpty { .. })));
}

pub fn readers_see_only_whole_batches(subject: &mut impl Subject) {
    let journal = &subject.open();
    let is_done = &AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(move || {
            let mut pen = Pen::claim(journal);
            for at in (2..200).step_by(2) {
                let pair =
                    [at, at + 1].map(|at| record(at, [put(at, "a", b"1"), put(at, "b", b"2")]));
                pen.write(journal, pair.to_vec());
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            let durable = journal.durable().expect("durable");
            assert_eq!(durable.0 % 2, 1, "batches end at odd revisions");
            let records = all_records(journal);
            assert!(records.len() as i64 > durable.0 - 2, "all up to {durable} is readable");
            assert!(records.iter().all(|record| record.changes.len() == 2));
            let newest = Position::new(durable, 1);
            let is_there = journal.read(newest).expect("read").is_some();
            assert_eq!(is_there, durable > Revision::INITIAL, "{newest}");
        }
    });
}

pub fn histories_agree_with_the_model<S: Subject>(subject: &mut S) {
    // One journal lives through all of them: later seeds begin where the earlier ones ended.
    let mut run = history::Run::begin(subject);
    for seed in SEEDS {
        run.go_on(seed, STEPS);
    }
}

/// A writer: its epoch, and the number of its last batch.
pub(super) struct Pen {
    pub(super) epoch: Epoch,
    number: u64,
}

// === impl Pen ===

impl Pen {
    pub(super) fn claim(journal: &impl Journal) -> Self {
        Self { epoch: journal.claim().expect("claim"), number: 0 }
    }

    fn next_id(&self) -> BatchId {
        BatchId { epoch: self.epoch, number: self.number + 1 }
    }

    pub(super) fn batch(&mut self, records: Vec<Record>, meta: Vec<MetaChange>) -> Batch {
        self.number += 1;
        Batch { id: BatchId { epoch: self.epoch, number: self.number }, records, meta }
    }

    fn write(&mut self, journal: &impl Journal, records: Vec<Record>) {
        let batch = self.batch(records, Vec::new());
        journal.append(self.epoch, &batch).expect("append");
    }
}

/// Calls for maintenance until there is none left.
fn rest(journal: &impl Journal) {
    for _ in 0..MAINTAIN_STEPS_MAX {
        if !journal.maintain().expect("maintain") {
            return;
        }
    }
    panic!("maintenance does not end");
}

pub(super) fn all_records(journal: &impl Journal) -> Vec<Record> {
    journal.records(Revision(0), BYTES_MAX).expect("records")
}

pub(super) fn all_heads(journal: &impl Journal) -> Vec<Head> {
    let mut heads = Vec::new();
    journal.heads(&mut |head| heads.push(head)).expect("heads");
    heads
}

fn head((position, kv): (Position, &etcd_api::mvccpb::KeyValue)) -> Head {
    let encoded_len = u32::try_from(kv.encoded().len()).expect("small");
    Head { position, kv: kv.without_value(), encoded_len }
}

fn first_of(revision: i64) -> Position {
    Position::first_of(Revision(revision))
}

pub(super) fn set(key: &str, value: &str) -> MetaChange {
    let (key, value) = entry(key, value);
    MetaChange { key, value: Some(value) }
}

pub(super) fn unset(key: &str) -> MetaChange {
    MetaChange { key: Bytes::copy_from_slice(key.as_bytes()), value: None }
}

fn entry(key: &str, value: &str) -> (Bytes, Bytes) {
    (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()))
}

fn assert_fenced(outcome: Result<(), AppendError>, old: &Pen, new: &Pen) {
    match outcome {
        Err(AppendError::Fenced { held, current }) => {
            assert_eq!((held, current), (old.epoch, new.epoch));
        }
        other => panic!("expected to be fenced, got {other:?}"),
    }
}
