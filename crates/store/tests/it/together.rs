//! The embedded journal shared by several stores of this process, each of which can be cut off from
//! it: what a network partition or a pause is to a replica.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use journal::{
    AppendError, Batch, BatchId, EmbeddedJournal, Epoch, Error, Head, Image, Journal, Member,
    Shared, Size, Tip,
};
use mvcc::{Position, Record, Revision};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

use crate::harness::open_journal;

/// What all members share.
pub(crate) struct Together {
    journal: EmbeddedJournal,
    told: Mutex<Told>,
    /// Goes with the last member.
    _folder: TempDir,
}

struct Told {
    epoch: Epoch,
    meta: Option<BatchId>,
    forgotten: Revision,
    members: BTreeMap<u64, Member>,
}

/// One member's way to the journal.
pub(crate) struct Seat {
    together: Arc<Together>,
    is_cut_off: AtomicBool,
    /// Whether the size is not told.
    is_sizeless: AtomicBool,
    counts: Counts,
    records: Gate,
    /// Where batches wait once they are durable.
    durable: Gate,
}

/// What a member asked for.
#[derive(Default)]
struct Counts {
    sizes_refused: AtomicUsize,
    tips: AtomicUsize,
    metas: AtomicUsize,
    /// The most revisions asked for at once.
    tail_max: AtomicI64,
}

/// Where callers wait while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

// === impl Together ===

impl Together {
    pub(crate) fn new(folder: TempDir) -> Arc<Self> {
        let journal = open_journal(&folder);
        let told = Told {
            epoch: Epoch(0),
            meta: None,
            forgotten: Revision::INITIAL,
            members: BTreeMap::new(),
        };
        Arc::new(Self { journal, told: Mutex::new(told), _folder: folder })
    }

    pub(crate) fn seat(self: &Arc<Self>) -> Arc<Seat> {
        Arc::new(Seat {
            together: self.clone(),
            is_cut_off: AtomicBool::new(false),
            is_sizeless: AtomicBool::new(false),
            counts: Counts::default(),
            records: Gate::default(),
            durable: Gate::default(),
        })
    }
}

// === impl Gate ===

impl Gate {
    fn close(&self, is_closed: bool) {
        *self.is_closed.lock() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_closed = self.is_closed.lock();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.opened.wait_while(&mut is_closed, |is_closed| *is_closed);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

// === impl Seat ===

impl Seat {
    pub(crate) fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::SeqCst);
    }

    /// Tells the size, or fails to.
    pub(crate) fn hide_size(&self, is_hidden: bool) {
        self.is_sizeless.store(is_hidden, Ordering::SeqCst);
    }

    /// Lets readers of records wait, or go on.
    pub(crate) fn hold_records(&self, is_held: bool) {
        self.records.close(is_held);
    }

    /// Lets batches be durable before their writer hears of it, or not any more.
    pub(crate) fn hold_durable(&self, is_held: bool) {
        self.durable.close(is_held);
    }

    /// Whether the journal has a change, cut off or not.
    pub(crate) fn keeps(&self, at: Position) -> bool {
        self.together.journal.read(at).expect("it can be read").is_some()
    }

    pub(crate) fn batches_held(&self) -> usize {
        self.durable.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn readers_held(&self) -> usize {
        self.records.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn sizes_refused(&self) -> usize {
        self.counts.sizes_refused.load(Ordering::SeqCst)
    }

    /// How often the tip was asked for.
    pub(crate) fn tips(&self) -> usize {
        self.counts.tips.load(Ordering::SeqCst)
    }

    pub(crate) fn metas(&self) -> usize {
        self.counts.metas.load(Ordering::SeqCst)
    }

    pub(crate) fn tail_max(&self) -> i64 {
        self.counts.tail_max.load(Ordering::SeqCst)
    }

    fn reach(&self) -> Result<&Together, Error> {
        if self.is_cut_off.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { source: "cut off".into() });
        }
        Ok(&self.together)
    }

    fn write<T>(
        &self,
        act: impl FnOnce(&Together) -> Result<T, AppendError>,
    ) -> Result<T, AppendError> {
        act(self.reach().map_err(|source| AppendError::Failed { source })?)
    }
}

impl Journal for Seat {
    fn claim(&self) -> Result<Epoch, Error> {
        let together = self.reach()?;
        let mut told = together.told.lock();
        told.epoch = together.journal.claim()?;
        Ok(told.epoch)
    }

    fn record_bytes_max(&self) -> usize {
        self.together.journal.record_bytes_max()
    }

    fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError> {
        self.write(|together| {
            let mut told = together.told.lock();
            together.journal.append(epoch, batch)?;
            if batch.is_news() {
                told.meta = Some(batch.id);
            }
            Ok(())
        })?;
        self.durable.pass();
        Ok(())
    }

    fn holds(&self, id: BatchId) -> Result<bool, Error> {
        self.reach()?.journal.holds(id)
    }

    fn durable(&self) -> Result<Revision, Error> {
        self.reach()?.journal.durable()
    }

    fn meta(&self) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.counts.metas.fetch_add(1, Ordering::SeqCst);
        self.reach()?.journal.meta()
    }

    fn heads(&self, visit: &mut dyn FnMut(Head)) -> Result<(), Error> {
        self.reach()?.journal.heads(visit)
    }

    fn records(&self, from: Revision, bytes_max: usize) -> Result<Vec<Record>, Error> {
        self.records.pass();
        self.reach()?.journal.records(from, bytes_max)
    }

    fn read(&self, at: Position) -> Result<Option<KeyValue>, Error> {
        self.reach()?.journal.read(at)
    }

    fn forget(&self, epoch: Epoch, positions: &[Position]) -> Result<(), AppendError> {
        self.write(|together| {
            let mut told = together.told.lock();
            let newest = positions.iter().map(|at| at.revision).max();
            told.forgotten = told.forgotten.max(newest.unwrap_or(Revision::INITIAL));
            together.journal.forget(epoch, positions)
        })
    }

    fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError> {
        self.write(|together| together.journal.ingest(epoch, image))
    }

    fn maintain(&self) -> Result<bool, Error> {
        self.reach()?.journal.maintain()
    }

    fn condense(&self, epoch: Epoch) -> Result<(), AppendError> {
        self.write(|together| together.journal.condense(epoch))
    }

    fn size(&self) -> Result<Size, Error> {
        if self.is_sizeless.load(Ordering::SeqCst) {
            self.counts.sizes_refused.fetch_add(1, Ordering::SeqCst);
            return Err(Error::Unavailable { source: "no size".into() });
        }
        self.reach()?.journal.size()
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for Seat {
    fn tip(&self) -> Result<Tip, Error> {
        self.counts.tips.fetch_add(1, Ordering::SeqCst);
        let together = self.reach()?;
        let told = together.told.lock();
        let revision = together.journal.durable()?;
        Ok(Tip { epoch: told.epoch, revision, meta: told.meta, forgotten: told.forgotten })
    }

    fn tail(&self, from: Revision, to: Revision) -> Result<Vec<Record>, Error> {
        self.counts.tail_max.fetch_max(to.0 - from.0 + 1, Ordering::SeqCst);
        let mut records = self.reach()?.journal.records(from, usize::MAX)?;
        records.retain(|record| record.revision <= to);
        if self.tip()?.forgotten >= from {
            return Err(Error::Forgotten { revision: from });
        }
        Ok(records)
    }

    fn announce(&self, member: &Member) -> Result<(), Error> {
        self.reach()?.told.lock().members.insert(member.id, member.clone());
        Ok(())
    }

    fn withdraw(&self, id: u64) -> Result<(), Error> {
        self.reach()?.told.lock().members.remove(&id);
        Ok(())
    }

    fn members(&self) -> Result<Vec<Member>, Error> {
        Ok(self.reach()?.told.lock().members.values().cloned().collect())
    }

    fn hurry(&self) {
        self.durable.close(false);
    }
}
