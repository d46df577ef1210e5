//! What orders and keeps revisions.
//!
//! The store is a materialisation of a [`Journal`]: its position is the revision, its order the
//! only order. This crate owns the trait with its obligations, the [`suite`] every implementation
//! passes, and the [`embedded`] journal in a local folder. It knows nothing of requests, watches
//! or clients.

mod batch;
pub mod embedded;
mod error;
mod following;
pub mod suite;

pub use batch::{Batch, BatchId, Epoch, Head, Image, MetaChange, Size};
pub use embedded::EmbeddedJournal;
pub use error::{AppendError, Error};
pub use following::{Member, Shared, Tip, WRITERS_META};

use etcd_api::mvccpb::KeyValue;
use mvcc::{Position, Record, Revision};

/// Orders and keeps batches of revisions for one writer at a time.
///
/// Calls block until done. Reads may come from any thread while one writer appends; what they see
/// is always durable. Obligations, each held by [`suite`]:
///
/// 1. **Fencing.** [`claim`](Self::claim) returns an epoch above every earlier one. From then on
///    every write under an earlier epoch fails with [`AppendError::Fenced`] and changes nothing.
/// 2. **Atomic and durable.** After [`append`](Self::append) returned `Ok`, the whole batch (its
///    records and its meta changes) survives any crash. After any other outcome a reopened journal
///    holds all of it or nothing of it.
/// 3. **Dense.** A batch is accepted only if its first record is the durable revision plus one and
///    its records follow each other; anything else is [`AppendError::OutOfOrder`] and changes nothing.
/// 4. **Fail-stop.** After [`AppendError::Failed`] every further write fails; a failed sync is never
///    repeated. After [`AppendError::Unknown`] the caller asks [`holds`](Self::holds) before anything
///    else, and never sends the batch again blindly.
/// 5. **Kept until forgotten.** Every change stays readable, byte for byte, until its position was
///    passed to [`forget`](Self::forget). Forgetting promises nothing about when the space returns, and
///    a reopened journal may show a forgotten change again: the caller derives what is superseded
///    from the order itself, and forgets it again.
/// 6. **Given back.** Once [`condense`](Self::condense) was called and [`maintain`](Self::maintain) has
///    no more to do, the journal takes little more than what is kept, wherever the rest was.
/// 7. **Loud.** A damaged or missing part is reported with its place, never skipped; only an
///    unacknowledged tail is cut.
pub trait Journal: Send + Sync + 'static {
    /// Takes the writer's role from whoever holds it.
    fn claim(&self) -> Result<Epoch, Error>;

    /// The largest record it takes, whatever else a store gathers in a batch with it. Each change is
    /// counted with [`mvcc::CHANGE_OVERHEAD_BYTES`] beside its key-value.
    fn record_bytes_max(&self) -> usize;

    /// Makes `batch` durable, all of it or nothing.
    fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError>;

    /// Whether the batch of this id is durable: the answer to an unknown outcome. Only the last
    /// batch of the last epochs is ever asked for.
    fn holds(&self, id: BatchId) -> Result<bool, Error>;

    /// The last durable revision; [`Revision::INITIAL`] in an empty journal.
    fn durable(&self) -> Result<Revision, Error>;

    /// All meta entries, in key order.
    fn meta(&self) -> Result<Vec<(bytes::Bytes, bytes::Bytes)>, Error>;

    /// Calls `visit` with the head of every kept change, in order of position. This is how the store
    /// builds its index at start, so it reads no values where that can be helped.
    fn heads(&self, visit: &mut dyn FnMut(Head)) -> Result<(), Error>;

    /// Kept records from `from` on, in order, stopping once `bytes_max` is reached but with at least
    /// one record if there is any. Revisions of which nothing is kept are left out.
    fn records(&self, from: Revision, bytes_max: usize) -> Result<Vec<Record>, Error>;

    /// One change, or `None` if it was forgotten or never written.
    fn read(&self, at: Position) -> Result<Option<KeyValue>, Error>;

    /// Gives up changes that no reader can ask for any more.
    fn forget(&self, epoch: Epoch, positions: &[Position]) -> Result<(), AppendError>;

    /// Fills an empty journal from an image; see [`Image`]. The pieces come in order.
    fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError>;

    /// One bounded step of housekeeping off the write path: preparing room, giving space back.
    /// Returns whether there is more to do at once.
    fn maintain(&self) -> Result<bool, Error>;

    /// Lets [`maintain`](Self::maintain) give back all it can until it rests: also what is not worth
    /// the copying by itself, and what was written last. For when somebody asks for room.
    fn condense(&self, epoch: Epoch) -> Result<(), AppendError>;

    /// What the journal takes on its medium.
    fn size(&self) -> Result<Size, Error>;

    /// The journal as one that other processes open too, if it is.
    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}
