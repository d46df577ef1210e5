//! The write path: checks a batch, encodes it, writes it and syncs it, and only then shows it.
//!
//! One writer at a time. It never retries: after a failed write or sync it takes no more.

use std::sync::Arc;

use mvcc::{Record, Revision};

use super::{
    create,
    frame::{Encoder, FRAME_BYTES_MAX, Header, Kind},
    ledger::Ledger,
    log::Log,
    rewrite::Shape,
    segment::Segment,
};
use crate::{AppendError, Batch, BatchId, Epoch, Error, Image, MetaChange, error::At};

/// What a record or a meta change takes in a frame beside its bytes, at most.
const OVERHEAD_BYTES: usize = mvcc::CHANGE_OVERHEAD_BYTES;

#[derive(Debug)]
pub(super) struct Writer {
    encoder: Encoder,
    /// The newest segment.
    active: Arc<Segment>,
}

/// What the next frame will say of itself.
#[derive(Clone, Copy, Debug)]
struct Draft {
    kind: Kind,
    id: BatchId,
    last: Revision,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(active: Arc<Segment>) -> Self {
        Self { encoder: Encoder::default(), active }
    }

    pub(super) fn claim(&mut self, log: &Log) -> Result<Epoch, Error> {
        let (current, last) = log.view.read().ledger.standing();
        let epoch = Epoch(current.0 + 1);
        self.encoder.begin();
        let id = BatchId { epoch, number: 0 };
        self.commit(log, Draft { kind: Kind::Claim, id, last }, |ledger| ledger.epoch = epoch)?;
        Ok(epoch)
    }

    pub(super) fn append(
        &mut self,
        log: &Log,
        epoch: Epoch,
        batch: &Batch,
    ) -> Result<(), AppendError> {
        assert_eq!(batch.id.epoch, epoch, "a batch is appended under the epoch of its id");
        assert!(!(batch.records.is_empty() && batch.meta.is_empty()), "a batch says something");
        let durable = log.admit(epoch)?;
        check_dense(durable, &batch.records)?;
        self.encode(&batch.records, &batch.meta)?;
        let last = batch.last().unwrap_or(durable);
        self.commit(log, Draft { kind: Kind::Batch, id: batch.id, last }, |ledger| {
            ledger.on_batch(batch.id);
            ledger.on_meta(&batch.meta);
        })
        .map_err(|source| AppendError::Failed { source })
    }

    pub(super) fn ingest(
        &mut self,
        log: &Log,
        epoch: Epoch,
        image: &Image,
    ) -> Result<(), AppendError> {
        let durable = log.admit(epoch)?;
        if !log.view.read().ledger.is_pristine() {
            return Err(AppendError::NotEmpty { durable });
        }
        check_ascending(durable, image)?;
        self.encode(&image.records, &image.meta)?;
        let id = BatchId { epoch, number: 0 };
        self.commit(log, Draft { kind: Kind::Sparse, id, last: image.last }, |ledger| {
            ledger.on_meta(&image.meta);
        })
        .map_err(|source| AppendError::Failed { source })
    }

    /// Ends the active segment if it holds much that is not kept, so that it can be rewritten.
    pub(super) fn seal(&mut self, log: &Log, epoch: Epoch) -> Result<(), AppendError> {
        log.admit(epoch)?;
        if !Shape::of(&self.active).is_worth_sealing() {
            return Ok(());
        }
        // A segment that finds no room for its beginning would stop the journal, for no need.
        let room = log.room().map_err(|source| AppendError::Failed { source })?;
        if log.spares.is_empty() && room.available_bytes() < room.upkeep_bytes() {
            return Ok(());
        }
        self.rotate(log, 0)
            .inspect_err(|_| log.stop())
            .map_err(|source| AppendError::Failed { source })
    }

    fn encode(&mut self, records: &[Record], meta: &[MetaChange]) -> Result<(), AppendError> {
        let bytes = measure(records, meta);
        if bytes > FRAME_BYTES_MAX {
            return Err(AppendError::TooLarge { bytes, bytes_max: FRAME_BYTES_MAX });
        }
        self.encoder.begin();
        for record in records {
            self.encoder.record(record.revision, &record.changes);
        }
        for change in meta {
            self.encoder.meta(&change.key, change.value.as_deref());
        }
        Ok(())
    }

    /// Makes the encoded frame durable and then visible. Any failure on the way stops the writer.
    fn commit(
        &mut self,
        log: &Log,
        draft: Draft,
        apply: impl FnOnce(&mut Ledger),
    ) -> Result<(), Error> {
        log.check_running()?;
        self.write(log, draft).inspect_err(|_| log.stop())?;
        let mut view = log.view.write();
        view.ledger.last = draft.last;
        apply(&mut view.ledger);
        Ok(())
    }

    fn write(&mut self, log: &Log, draft: Draft) -> Result<(), Error> {
        let frame_bytes = self.encoder.finished_len();
        if self.active.filled.read().end + frame_bytes > self.active.capacity {
            self.rotate(log, frame_bytes)?;
        }
        let Segment { path, file, header, filled, .. } = &*self.active;
        let (start, sequence) = filled.read().tail();
        let Draft { kind, id, last } = draft;
        self.encoder.finish(&Header { kind, sequence, id, last }, header.seed());
        file.write_at(self.encoder.bytes(), start).at("cannot write", path)?;
        file.sync().at("cannot sync", path)?;
        filled.write().grow(self.encoder.spans(), frame_bytes, last);
        Ok(())
    }

    /// Seals the active segment and goes on in a new one with room for a frame of `frame_bytes`.
    fn rotate(&mut self, log: &Log, frame_bytes: u64) -> Result<(), Error> {
        self.active = Arc::new(create::log_segment(log, &self.active, frame_bytes)?);
        log.view.write().segments.push(Arc::clone(&self.active));
        Ok(())
    }
}

fn check_dense(durable: Revision, records: &[Record]) -> Result<(), AppendError> {
    let mut before = durable;
    for record in records {
        if record.revision != before.next() {
            return Err(AppendError::OutOfOrder { durable: before, found: record.revision });
        }
        assert_sound(record);
        before = record.revision;
    }
    Ok(())
}

fn check_ascending(durable: Revision, image: &Image) -> Result<(), AppendError> {
    let mut before = durable;
    for record in &image.records {
        if record.revision <= before {
            return Err(AppendError::OutOfOrder { durable: before, found: record.revision });
        }
        assert_sound(record);
        before = record.revision;
    }
    if image.last < before {
        return Err(AppendError::OutOfOrder { durable: before, found: image.last });
    }
    Ok(())
}

/// The check before the write; [`super::segment::key_value`] is its other half.
fn assert_sound(record: &Record) {
    assert!(!record.changes.is_empty(), "a record has changes");
    assert!(
        record.changes.is_sorted_by(|one, next| one.sub < next.sub),
        "the changes of revision {} are in order",
        record.revision
    );
    assert!(
        record.changes.iter().all(|change| change.kv.mod_revision() == record.revision.0),
        "the changes of revision {} carry it",
        record.revision
    );
}

/// An upper bound of the frame's size, taken before anything is copied.
fn measure(records: &[Record], meta: &[MetaChange]) -> usize {
    let overhead = |items: usize| items * OVERHEAD_BYTES;
    let records: usize = records
        .iter()
        .map(|record| record.encoded_len() + overhead(1 + record.changes.len()))
        .sum();
    let meta: usize = meta
        .iter()
        .map(|change| {
            change.key.len() + change.value.as_ref().map_or(0, bytes::Bytes::len) + overhead(1)
        })
        .sum();
    super::frame::HEADER_BYTES + records + meta + overhead(1)
}
