//! Builds the bytes of a frame.

use mvcc::{Change, Position, Revision};

use super::{
    ALIGNMENT, Counts, FRAME_BYTES_MAX, HEADER_BYTES, Header, MAGIC, REMOVED, Seed, Span, bounded,
    change_crc,
};
use crate::{BatchId, embedded::wire::PutFields};

/// Memory above this is given back after an unusually large frame.
pub(super) const BUFFER_BYTES_KEPT: usize = 8 << 20;

/// Builds frames in one reused buffer, each in one pass. Records come first, then meta, then marks.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Encoder {
    pub(super) buffer: Vec<u8>,
    counts: Counts,
    spans: Vec<Span>,
}

// === impl Encoder ===

impl Encoder {
    /// Begins a frame, dropping the one before it.
    pub(in crate::embedded) fn begin(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        self.buffer.resize(HEADER_BYTES, 0);
        self.spans.clear();
        self.counts = Counts::default();
    }

    pub(in crate::embedded) fn record(&mut self, revision: Revision, changes: &[Change]) {
        self.begin_record(revision, changes.len());
        for change in changes {
            self.change(Position::new(revision, change.sub), change.kv.encoded());
        }
    }

    /// Announces a record; its `changes` follow one by one.
    pub(in crate::embedded) fn begin_record(&mut self, revision: Revision, changes: usize) {
        self.counts.records += 1;
        self.buffer.put_revision(revision);
        self.buffer.put_u32(bounded(changes));
    }

    pub(in crate::embedded) fn change(&mut self, position: Position, encoded: &[u8]) {
        let len = bounded(encoded.len());
        self.spans.push(Span { position, start: bounded(self.buffer.len()), len });
        self.buffer.put_u32(position.sub);
        self.buffer.put_u32(len);
        self.buffer.put_u32(change_crc(position, encoded));
        self.buffer.extend_from_slice(encoded);
    }

    pub(in crate::embedded) fn meta(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.counts.meta += 1;
        self.buffer.put_u32(bounded(key.len()));
        self.buffer.put_u32(value.map_or(REMOVED, |value| bounded(value.len())));
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value.unwrap_or_default());
    }

    pub(in crate::embedded) fn mark(&mut self, id: BatchId) {
        self.counts.marks += 1;
        self.buffer.put_u64(id.epoch.0);
        self.buffer.put_u64(id.number);
    }

    /// Fills in the header; the frame is then in [`bytes`](Self::bytes).
    pub(in crate::embedded) fn finish(&mut self, header: &Header, seed: Seed) {
        self.buffer.resize(self.buffer.len().next_multiple_of(ALIGNMENT), 0);
        assert!(self.buffer.len() <= FRAME_BYTES_MAX, "a larger frame would not be read back");
        let mut fields = Vec::with_capacity(HEADER_BYTES);
        fields.put_u32(MAGIC);
        fields.put_u32(0);
        fields.put_u32(bounded(self.buffer.len() - HEADER_BYTES));
        fields.put_u32(header.kind.to_wire());
        fields.put_u64(header.sequence);
        fields.put_u64(header.id.epoch.0);
        fields.put_u64(header.id.number);
        fields.put_revision(header.last);
        fields.put_u32(self.counts.records);
        fields.put_u32(self.counts.meta);
        fields.put_u32(self.counts.marks);
        fields.put_u32(0);
        self.buffer[..HEADER_BYTES].copy_from_slice(&fields);
        let crc = crc32c::crc32c_append(seed.0, &self.buffer[8..]);
        self.buffer[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The length [`finish`](Self::finish) will bring the frame to.
    pub(in crate::embedded) fn finished_len(&self) -> u64 {
        self.buffer.len().next_multiple_of(ALIGNMENT) as u64
    }

    pub(in crate::embedded) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    pub(in crate::embedded) fn spans(&self) -> &[Span] {
        &self.spans
    }
}
