//! A journal whose appends or reads wait until the test lets them go: a disk that is slow at the
//! right moment. It may also be short of room, or fail.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use journal::{
    AppendError, Batch, BatchId, EmbeddedJournal, Epoch, Error, Head, Image, Journal, Size,
};
use mvcc::{Position, Record, Revision};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Semaphore;

/// Everything else goes straight to the embedded journal.
pub(crate) struct HeldJournal {
    inner: EmbeddedJournal,
    held: Mutex<Held>,
    released: Condvar,
    /// One permit for each that has come and waits.
    arrived: Semaphore,
    /// What the medium has room for in all, if not what it really has.
    medium_bytes: Mutex<Option<u64>>,
    /// How large a record may be, if not what the embedded journal takes.
    record_bytes_max: Mutex<Option<usize>>,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    Appends,
    Reads,
    /// Appends do not wait, but fail.
    FailedAppends,
}

// === impl HeldJournal ===

impl HeldJournal {
    pub(crate) fn new(inner: EmbeddedJournal) -> Arc<Self> {
        Arc::new(Self {
            inner,
            held: Mutex::new(Held::Nothing),
            released: Condvar::new(),
            arrived: Semaphore::new(0),
            medium_bytes: Mutex::new(None),
            record_bytes_max: Mutex::new(None),
        })
    }

    /// A store that is started from now on finds that records can be no larger.
    pub(crate) fn bound_records(&self, bytes_max: usize) {
        *self.record_bytes_max.lock() = Some(bytes_max);
    }

    /// From now on writes find so much room before the reserve is touched.
    pub(crate) fn leave(&self, bytes: u64, reserve_bytes: u64) {
        let size = self.inner.size().expect("an open journal has a size");
        let taken = size.total_bytes + size.upkeep_bytes;
        *self.medium_bytes.lock() = Some(taken + reserve_bytes + bytes);
    }

    /// Lets the append that waits fail, and all later ones.
    pub(crate) fn fail(&self) {
        *self.held.lock() = Held::FailedAppends;
        self.released.notify_all();
    }

    /// From now on appends wait.
    pub(crate) fn hold(&self) {
        *self.held.lock() = Held::Appends;
    }

    /// From now on reads wait.
    pub(crate) fn hold_reads(&self) {
        *self.held.lock() = Held::Reads;
    }

    /// Waits until one waits.
    pub(crate) async fn arrival(&self) {
        self.arrived.acquire().await.expect("it is never closed").forget();
    }

    /// Lets the one that waits go on, and all later ones.
    pub(crate) fn release(&self) {
        *self.held.lock() = Held::Nothing;
        self.released.notify_all();
    }

    fn wait_if(&self, this: Held) {
        let mut held = self.held.lock();
        if *held == this {
            self.arrived.add_permits(1);
            self.released.wait_while(&mut held, |held| *held == this);
        }
    }
}

impl Journal for HeldJournal {
    fn claim(&self) -> Result<Epoch, Error> {
        self.inner.claim()
    }

    fn record_bytes_max(&self) -> usize {
        self.record_bytes_max.lock().unwrap_or_else(|| self.inner.record_bytes_max())
    }

    fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError> {
        // The store appends from a thread of its own, so that waiting here stops nobody else.
        self.wait_if(Held::Appends);
        if *self.held.lock() == Held::FailedAppends {
            let source = Error::Stopped { path: "the test's journal".into() };
            return Err(AppendError::Failed { source });
        }
        self.inner.append(epoch, batch)
    }

    fn holds(&self, id: BatchId) -> Result<bool, Error> {
        self.inner.holds(id)
    }

    fn durable(&self) -> Result<Revision, Error> {
        self.inner.durable()
    }

    fn meta(&self) -> Result<Vec<(Bytes, Bytes)>, Error> {
        self.inner.meta()
    }

    fn heads(&self, visit: &mut dyn FnMut(Head)) -> Result<(), Error> {
        self.inner.heads(visit)
    }

    fn records(&self, from: Revision, bytes_max: usize) -> Result<Vec<Record>, Error> {
        self.inner.records(from, bytes_max)
    }

    fn read(&self, at: Position) -> Result<Option<KeyValue>, Error> {
        // This stops a thread of the runtime; the test has to have another.
        self.wait_if(Held::Reads);
        self.inner.read(at)
    }

    fn forget(&self, epoch: Epoch, positions: &[Position]) -> Result<(), AppendError> {
        self.inner.forget(epoch, positions)
    }

    fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError> {
        self.inner.ingest(epoch, image)
    }

    fn maintain(&self) -> Result<bool, Error> {
        self.inner.maintain()
    }

    fn condense(&self, epoch: Epoch) -> Result<(), AppendError> {
        self.inner.condense(epoch)
    }

    fn size(&self) -> Result<Size, Error> {
        let size = self.inner.size()?;
        let Some(medium_bytes) = *self.medium_bytes.lock() else { return Ok(size) };
        Ok(Size { available_bytes: medium_bytes.saturating_sub(size.total_bytes), ..size })
    }
}
