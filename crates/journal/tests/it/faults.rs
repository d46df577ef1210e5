//! The journal stops at the first failed write or sync, and a restart finds all that was
//! acknowledged. Readers are never held up by a slow disk.

use std::{path::Path, thread};

use journal::{
    AppendError, Batch, BatchId, EmbeddedJournal, Epoch, Error, Journal,
    suite::{Dice, put, record},
};
use mvcc::{Position, Revision};
use tempfile::TempDir;

use crate::{
    check::{append_one, compare, open},
    disk::{Fault, RecordingDisk},
    image::{Loss, Medium},
    story::{Expected, options, scratch},
};

/// Enough syncs and writes to reach rotation, indexing, rewriting and recycling.
const FAULTS_SWEPT: usize = 70;
const APPENDS: u64 = 60;

struct Faulty {
    dir: TempDir,
    disk: RecordingDisk,
    expected: Expected,
}

// === impl Faulty ===

impl Faulty {
    fn new() -> Self {
        let dir = tempfile::tempdir_in(scratch()).expect("a temporary folder");
        Self { dir, disk: RecordingDisk::default(), expected: Expected::nothing() }
    }

    fn open(&self) -> EmbeddedJournal {
        EmbeddedJournal::open(self.dir.path(), options(&self.disk)).expect("open")
    }

    /// A journal with one batch in it, and the id of the next.
    fn begin(&mut self) -> (EmbeddedJournal, BatchId) {
        let journal = self.open();
        let epoch = journal.claim().expect("claim");
        append_one(&journal, BatchId { epoch, number: 1 }, &mut self.expected, "before the fault");
        (journal, BatchId { epoch, number: 2 })
    }

    /// The folder as it is after the process ended and then the power went.
    fn crash(&self, loss: Loss) -> TempDir {
        let folder = tempfile::tempdir_in(scratch()).expect("a temporary folder");
        let mut medium = Medium::default();
        self.disk.ops().iter().for_each(|op| medium.apply(op));
        medium.crash(loss, &mut Dice::new(1), self.dir.path(), folder.path());
        folder
    }
}

fn batch(id: BatchId, at: i64) -> Batch {
    Batch { id, records: vec![record(at, [put(at, "x", &[5; 900])])], meta: Vec::new() }
}

fn check_stopped(fault: Fault) {
    let mut faulty = Faulty::new();
    let (journal, id) = faulty.begin();
    faulty.disk.inject(fault);
    let failed = journal.append(id.epoch, &batch(id, 3));
    assert!(matches!(failed, Err(AppendError::Failed { source: Error::Io { .. } })), "{failed:?}");
    let next = journal.append(id.epoch, &batch(id, 3));
    assert!(
        matches!(next, Err(AppendError::Failed { source: Error::Stopped { .. } })),
        "nothing is tried again: {next:?}"
    );
    assert!(matches!(journal.claim(), Err(Error::Stopped { .. })));
    assert!(matches!(journal.maintain(), Err(Error::Stopped { .. })));
    assert_eq!(journal.durable().expect("durable"), Revision(2));
    assert!(!journal.holds(id).expect("holds"), "a failed batch is not held");
    compare(&journal, &faulty.expected, "reads go on");
    drop(journal);
    for loss in Loss::ALL {
        let folder = faulty.crash(loss);
        let journal = open(folder.path(), "after the fault");
        compare_either(&journal, &faulty.expected, folder.path());
    }
}

/// The failed batch is there as a whole or not at all.
fn compare_either(journal: &EmbeddedJournal, before: &Expected, folder: &Path) {
    let mut after = before.clone();
    if journal.durable().expect("durable") != before.durable {
        after.durable = before.durable.next();
        let position = Position::first_of(after.durable);
        after.changes.insert(position, put(after.durable.0, "x", &[5; 900]));
    }
    compare(journal, &after, &folder.display().to_string());
}

#[test]
fn a_failed_sync_stops_the_journal() {
    check_stopped(Fault::Sync(0));
}

#[test]
fn a_full_disk_stops_the_journal() {
    check_stopped(Fault::Write(0));
}

/// A failed sync leaves pages that can be read but will never be written. The journal that is
/// opened next sees the batch in them; what it builds on the batch must not lose it.
#[test]
fn a_batch_seen_after_a_failed_sync_survives_the_next_crash() {
    let mut faulty = Faulty::new();
    let (journal, id) = faulty.begin();
    faulty.disk.inject(Fault::Sync(0));
    journal.append(id.epoch, &batch(id, 3)).expect_err("the sync fails");
    drop(journal);

    let journal = faulty.open();
    assert_eq!(journal.durable().expect("durable"), Revision(3), "seen in memory");
    faulty.expected.durable = Revision(3);
    faulty.expected.changes.insert(Position::first_of(Revision(3)), put(3, "x", &[5; 900]));
    let epoch = journal.claim().expect("claim");
    append_one(&journal, BatchId { epoch, number: 1 }, &mut faulty.expected, "after the fault");
    drop(journal);

    let folder = faulty.crash(Loss::Everything);
    compare(&open(folder.path(), "after the crash"), &faulty.expected, "after the crash");
}

#[test]
fn a_fault_anywhere_loses_nothing_acknowledged() {
    for nth in 0..FAULTS_SWEPT {
        check_sweep(Fault::Sync(nth));
        check_sweep(Fault::Write(nth * 4));
    }
}

/// Appends, forgets, condenses and maintains until the fault strikes, or to the end; then crashes.
fn check_sweep(fault: Fault) {
    let place = format!("{fault:?}");
    let mut faulty = Faulty::new();
    let (journal, BatchId { epoch, .. }) = faulty.begin();
    faulty.disk.inject(fault);
    for number in 2..APPENDS {
        let at = faulty.expected.durable.next();
        let next = batch(BatchId { epoch, number }, at.0);
        match journal.append(epoch, &next) {
            Ok(()) => {}
            Err(AppendError::Failed { .. }) => break,
            Err(other) => panic!("{place}: {other}"),
        }
        faulty.expected.durable = at;
        faulty
            .expected
            .changes
            .insert(Position::first_of(at), next.records[0].changes[0].kv.clone());
        forget_recent(&journal, epoch, &mut faulty.expected, at);
        match journal.condense(epoch) {
            Ok(()) => {}
            Err(AppendError::Failed { .. }) => break,
            Err(other) => panic!("{place}: {other}"),
        }
        match journal.maintain() {
            // A failed step of upkeep is given up; the log itself is whole.
            Ok(_) | Err(Error::Io { .. }) => {}
            Err(other) => panic!("{place}: {other}"),
        }
    }
    drop(journal);
    for loss in [Loss::Everything, Loss::Nothing] {
        let folder = faulty.crash(loss);
        compare_either(&open(folder.path(), &place), &faulty.expected, folder.path());
    }
}

fn forget_recent(journal: &EmbeddedJournal, epoch: Epoch, expected: &mut Expected, at: Revision) {
    let old = Position::first_of(Revision(at.0 - 3));
    if at.0 % 10 != 0 && expected.changes.contains_key(&old) {
        journal.forget(epoch, &[old]).expect("forget");
        expected.forgotten.push(old);
    }
}

/// Upkeep that found no room for a spare never came to giving space back, and a rewrite was always
/// the first run of segments, however large: both took all that was left, failed and began again, and
/// the next append found nothing. Here the disk stays as full as it is, and has less left than a spare
/// takes, or than a run.
#[test]
fn a_nearly_full_disk_gets_its_space_back_and_is_never_filled() {
    for left_bytes in [14, 20, 40, 60] {
        check_nearly_full(left_bytes << 10, false);
        check_nearly_full(left_bytes << 10, true);
    }
    // Too little for any copy; but there is a spare.
    check_nearly_full(3 << 10, true);
}

/// `is_kept_in_order` tells whether spares and indexes were made before the disk became full.
fn check_nearly_full(left_bytes: u64, is_kept_in_order: bool) {
    let place = format!("{left_bytes} bytes left, kept in order: {is_kept_in_order}");
    let mut faulty = Faulty::new();
    let (journal, BatchId { epoch, .. }) = faulty.begin();
    for number in 2..120 {
        append_one(&journal, BatchId { epoch, number }, &mut faulty.expected, &place);
        while is_kept_in_order && journal.maintain().expect("there is room") {}
    }
    faulty.disk.limit(left_bytes);
    for number in 120..400 {
        forget_most(&journal, epoch, &mut faulty.expected);
        settle(&journal, &faulty.disk, &place);
        append_one(&journal, BatchId { epoch, number }, &mut faulty.expected, &place);
    }
    assert!(faulty.disk.left_bytes() > left_bytes, "{place}: {}", faulty.disk.left_bytes());
    compare(&journal, &faulty.expected, &place);
    drop(journal);
    compare(&open(faulty.dir.path(), &place), &faulty.expected, &place);
}

/// Lets upkeep do what it can. It may find no room, but leaves at least half of what there is.
fn settle(journal: &EmbeddedJournal, disk: &RecordingDisk, place: &str) {
    let mut most = disk.left_bytes();
    loop {
        let has_more = match journal.maintain() {
            Ok(has_more) => has_more,
            Err(error) if error.is_medium_full() => return,
            Err(error) => panic!("{place}: {error}"),
        };
        let left = disk.left_bytes();
        assert!(left >= most / 2, "{place}: upkeep left {left} bytes of {most}");
        most = most.max(left);
        if !has_more {
            return;
        }
    }
}

/// Forgets all but every fifth of the last hundred changes.
fn forget_most(journal: &EmbeddedJournal, epoch: Epoch, expected: &mut Expected) {
    let newest = expected.durable.0;
    let is_old =
        |position: &Position| position.revision.0 % 5 != 0 || position.revision.0 + 100 < newest;
    let kept = |position: &Position| !expected.forgotten.contains(position);
    let old: Vec<Position> = expected.changes.keys().copied().filter(is_old).filter(kept).collect();
    journal.forget(epoch, &old).expect("forget");
    expected.forgotten.extend(old);
}

#[test]
fn readers_do_not_wait_for_a_sync() {
    let mut faulty = Faulty::new();
    let (journal, id) = faulty.begin();
    let (journal, disk) = (&journal, &faulty.disk);
    let gate = disk.close_gate();
    thread::scope(|threads| {
        // Opened when an assertion fails, too: the scope would wait for the writer for ever.
        let gate = gate;
        let writer = threads.spawn(move || journal.append(id.epoch, &batch(id, 3)));
        disk.wait_for_waiting_sync();
        assert_eq!(journal.durable().expect("durable"), Revision(2), "not durable yet");
        compare(journal, &faulty.expected, "while a sync is under way");
        assert_eq!(journal.read(Position::first_of(Revision(3))).expect("read"), None);
        assert!(!journal.holds(id).expect("holds"));
        assert_eq!(journal.meta().expect("meta"), []);
        journal.size().expect("size");
        journal.forget(id.epoch, &[Position::first_of(Revision(2))]).expect("forget");
        drop(gate);
        writer.join().expect("the writer").expect("append");
    });
    assert_eq!(journal.durable().expect("durable"), Revision(3));
}
