//! The journal in a local folder: a log of pre-zeroed, recycled segments, one sync per batch.
//!
//! Every change is written once and found by its offset, which is kept in memory (24 bytes per
//! change); values are not. Nothing here spawns a thread: the owner calls
//! [`maintain`](crate::Journal::maintain) from one of its own.

mod chain;
mod create;
pub mod disk;
mod folder;
mod frame;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod index;
mod inspect;
mod ledger;
mod log;
mod read;
mod recover;
mod replay;
mod rewrite;
mod room;
mod segment;
mod sidecar;
mod sizes;
mod spares;
mod survey;
mod upkeep;
mod wire;
mod writer;

pub use inspect::{Report, SegmentReport, State, inspect, verify};

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use mvcc::{Position, Record, Revision};
use parking_lot::Mutex;
use uuid::Uuid;

use self::{
    disk::{Disk, SystemDisk},
    folder::Folder,
    log::Log,
    sizes::Sizes,
    upkeep::Upkeep,
    writer::Writer,
};
use crate::{AppendError, Batch, BatchId, Epoch, Error, Head, Image, Journal, Size};

/// Large enough that rotating is rare, small enough that one rewrite is short. Segments of a journal
/// below eight times this are smaller.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
/// Room for the header page and a few frames.
pub const SEGMENT_BYTES_MIN: u64 = 16 << 10;
/// Offsets in a segment are 32 bits wide, and the largest batch has to fit beside what is there.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// Leaves a quarter of the largest frame to what is gathered beside a record.
const RECORD_BYTES_MAX: usize = frame::FRAME_BYTES_MAX / 4 * 3;

/// How to open an embedded journal.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment once the journal is large; kept between [`SEGMENT_BYTES_MIN`] and [`SEGMENT_BYTES_MAX`].
    pub segment_bytes: u64,
    /// The name a new journal gets; one that exists keeps its own. Clients must not be able to
    /// guess it: it tells frames of the log from values that look like frames.
    pub identity: Uuid,
    pub disk: Arc<dyn Disk>,
}

/// A journal in a folder that belongs to it alone.
#[derive(Debug)]
pub struct EmbeddedJournal {
    log: Log,
    writer: Mutex<Writer>,
    upkeep: Mutex<Upkeep>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            identity: Uuid::new_v4(),
            disk: Arc::new(SystemDisk),
        }
    }
}

// === impl EmbeddedJournal ===

impl EmbeddedJournal {
    /// Opens the journal in `dir`, creating it if there is none.
    ///
    /// # Errors
    ///
    /// If another process has it open, if its format is newer, or if anything but an
    /// unacknowledged tail is damaged.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let sizes = Sizes::up_to(options.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX));
        let (folder, found) = Folder::open(dir, options.disk, options.identity)?;
        let (log, writer) = recover::open(folder, found, sizes)?;
        Ok(Self { log, writer: Mutex::new(writer), upkeep: Mutex::default() })
    }

    /// Bytes the file system still has for the journal.
    ///
    /// # Errors
    ///
    /// If the file system cannot be asked.
    pub fn available_bytes(&self) -> Result<u64, Error> {
        self.log.folder.available_bytes()
    }
}

impl Journal for EmbeddedJournal {
    fn claim(&self) -> Result<Epoch, Error> {
        self.writer.lock().claim(&self.log)
    }

    fn record_bytes_max(&self) -> usize {
        RECORD_BYTES_MAX
    }

    fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError> {
        self.writer.lock().append(&self.log, epoch, batch)
    }

    fn holds(&self, id: BatchId) -> Result<bool, Error> {
        Ok(self.log.view.read().ledger.holds(id))
    }

    fn durable(&self) -> Result<Revision, Error> {
        Ok(self.log.view.read().ledger.last)
    }

    fn meta(&self) -> Result<Vec<(Bytes, Bytes)>, Error> {
        let view = self.log.view.read();
        Ok(view.ledger.meta.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn heads(&self, visit: &mut dyn FnMut(Head)) -> Result<(), Error> {
        self.log.segments().iter().try_for_each(|segment| read::heads(&self.log, segment, visit))
    }

    fn records(&self, from: Revision, bytes_max: usize) -> Result<Vec<Record>, Error> {
        read::records(&self.log, from, bytes_max)
    }

    fn read(&self, at: Position) -> Result<Option<KeyValue>, Error> {
        read::read(&self.log, at)
    }

    fn forget(&self, epoch: Epoch, positions: &[Position]) -> Result<(), AppendError> {
        self.log.admit(epoch)?;
        self.log.forget(positions);
        Ok(())
    }

    fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError> {
        self.writer.lock().ingest(&self.log, epoch, image)
    }

    fn maintain(&self) -> Result<bool, Error> {
        self.upkeep.lock().step(&self.log)
    }

    fn condense(&self, epoch: Epoch) -> Result<(), AppendError> {
        self.writer.lock().seal(&self.log, epoch)?;
        self.upkeep.lock().condense();
        Ok(())
    }

    fn size(&self) -> Result<Size, Error> {
        let room = self.log.room()?;
        let mut size = Size {
            available_bytes: room.available_bytes(),
            upkeep_bytes: room.upkeep_bytes(),
            ..Size::default()
        };
        for segment in self.log.segments() {
            let filled = segment.filled.read();
            size.total_bytes += filled.end;
            size.in_use_bytes += filled.index.live_bytes();
        }
        Ok(size)
    }
}
