//! The unit of the log: one frame per batch, claim, image piece or segment start.
//!
//! Owns the bytes of a frame and nothing else: it neither reads files nor knows what follows what.
//!
//! ```text
//! header   magic u32 | crc u32 | payload length u32 | kind u32 | sequence u64 | epoch u64
//!          | number u64 | last revision i64 | records u32 | meta changes u32 | marks u32 | 0 u32
//! payload  records:  revision i64 | changes u32 | per change: sub u32 | length u32 | crc u32 | key-value
//!          meta:     key length u32 | value length u32, or u32::MAX for a removal | key | value
//!          marks:    epoch u64 | number u64
//!          zeros up to a multiple of 8
//! ```
//!
//! All integers are little endian. The frame's crc covers all that follows it and is seeded by the
//! segment, so what is left of an earlier use of the file never verifies. A change has a crc of its
//! own because a point read fetches it alone.

mod encoder;
#[cfg(feature = "fuzz")]
mod sealing;

pub(super) use encoder::Encoder;
#[cfg(feature = "fuzz")]
pub(super) use sealing::seal;

use bytes::Bytes;
use mvcc::{Position, Revision};

use super::wire::Fields;
use crate::{BatchId, Epoch, MetaChange};

const MAGIC: u32 = u32::from_le_bytes(*b"wFrm");
pub(super) const HEADER_BYTES: usize = 64;
/// Revision and number of changes before the changes of a record.
pub(super) const RECORD_HEADER_BYTES: usize = 12;
/// Sub, length and crc before every key-value.
pub(super) const CHANGE_HEADER_BYTES: usize = 12;
/// Frames begin at multiples of this, so that a search for them can skip the places between.
pub(super) const ALIGNMENT: usize = 8;
/// The largest frame: far above any batch, and small enough for 32-bit offsets in a segment.
pub(crate) const FRAME_BYTES_MAX: usize = 1 << 30;
const REMOVED: u32 = u32::MAX;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A batch: dense records, meta changes.
    Batch,
    /// A claim of the writer's role. Empty.
    Claim,
    /// The first frame of a log segment: all meta entries and marks, so that none before it counts.
    Start,
    /// Records with gaps: a piece of an image, or what survived in a rewritten segment.
    Sparse,
}

/// The fixed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Counts frames: over all log segments, or inside one rewritten segment.
    pub(super) sequence: u64,
    pub(super) id: BatchId,
    /// The durable revision once this frame is.
    pub(super) last: Revision,
}

/// Ties a frame's crc to the segment it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seed(pub(super) u32);

/// A frame whose crc was right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) header: Header,
    counts: Counts,
    payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    records: u32,
    meta: u32,
    marks: u32,
}

/// What a payload says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) changes: Vec<Span>,
    pub(super) records: u32,
    pub(super) meta: Vec<MetaChange>,
    /// The last batch of each of the last epochs.
    pub(super) marks: Vec<BatchId>,
}

/// Where a change is inside its frame: its header begins at `start`, `len` is the key-value's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) position: Position,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Why bytes are not a frame, or not a sound one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("no frame begins here")]
    NoMagic,
    #[error("the frame's length {len} leaves the segment")]
    Length { len: u64 },
    #[error("the frame's checksum is wrong")]
    Checksum,
    #[error("the frame has the unknown kind {kind}")]
    Kind { kind: u32 },
    #[error("the frame ends inside {part}")]
    Short { part: &'static str },
    #[error("position {position} does not follow the one before it")]
    Order { position: Position },
    #[error("the frame ends with {len} bytes that belong to nothing")]
    Excess { len: usize },
}

// === impl Kind ===

impl Kind {
    fn to_wire(self) -> u32 {
        match self {
            Self::Batch => 1,
            Self::Claim => 2,
            Self::Start => 3,
            Self::Sparse => 4,
        }
    }

    fn from_wire(kind: u32) -> Result<Self, Flaw> {
        match kind {
            1 => Ok(Self::Batch),
            2 => Ok(Self::Claim),
            3 => Ok(Self::Start),
            4 => Ok(Self::Sparse),
            _ => Err(Flaw::Kind { kind }),
        }
    }
}

// === impl Frame ===

impl<'a> Frame<'a> {
    /// The frame at the front of `bytes`, which reach to the end of the segment.
    pub(super) fn decode(bytes: &'a [u8], seed: Seed) -> Result<Self, Flaw> {
        let mut fields = Fields::new(bytes);
        let magic = fields.u32();
        let rest = fields;
        if magic != Some(MAGIC) {
            return Err(Flaw::NoMagic);
        }
        let header = Raw::read(rest).ok_or(Flaw::Short { part: "its header" })?;
        let len = HEADER_BYTES + header.payload_len as usize;
        if len > bytes.len() || len > FRAME_BYTES_MAX || !len.is_multiple_of(ALIGNMENT) {
            return Err(Flaw::Length { len: len as u64 });
        }
        if crc32c::crc32c_append(seed.0, &bytes[8..len]) != header.crc {
            return Err(Flaw::Checksum);
        }
        let kind = Kind::from_wire(header.kind)?;
        let Raw { sequence, id, last, counts, .. } = header;
        Ok(Self {
            header: Header { kind, sequence, id, last },
            counts,
            payload: &bytes[HEADER_BYTES..len],
        })
    }

    /// The bytes it takes in the segment.
    pub(super) fn len(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    pub(super) fn contents(&self) -> Result<Contents, Flaw> {
        let mut fields = Fields::new(self.payload);
        let mut contents = Contents { records: self.counts.records, ..Contents::default() };
        for _ in 0..self.counts.records {
            read_record(&mut fields, self.len(), &mut contents.changes)?;
        }
        for _ in 0..self.counts.meta {
            contents
                .meta
                .push(read_meta(&mut fields).ok_or(Flaw::Short { part: "a meta change" })?);
        }
        for _ in 0..self.counts.marks {
            contents.marks.push(read_mark(&mut fields).ok_or(Flaw::Short { part: "a mark" })?);
        }
        if fields.remaining() >= ALIGNMENT {
            return Err(Flaw::Excess { len: fields.remaining() });
        }
        Ok(contents)
    }
}

/// A header as it stands on the disk, before its checksum was looked at.
struct Raw {
    crc: u32,
    payload_len: u32,
    kind: u32,
    sequence: u64,
    id: BatchId,
    last: Revision,
    counts: Counts,
}

impl Raw {
    /// Reads what follows the magic.
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let (crc, payload_len, kind) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let sequence = fields.u64()?;
        let id = read_mark(&mut fields)?;
        let last = fields.revision()?;
        let counts = Counts { records: fields.u32()?, meta: fields.u32()?, marks: fields.u32()? };
        fields.u32()?;
        Some(Self { crc, payload_len, kind, sequence, id, last, counts })
    }
}

/// The sequence a header at the front of `bytes` claims, without any check of its checksum.
pub(super) fn claimed_sequence(bytes: &[u8]) -> Option<u64> {
    let mut fields = Fields::new(bytes);
    (fields.u32()? == MAGIC).then_some(())?;
    Raw::read(fields).map(|raw| raw.sequence)
}

/// Checks a change as a point read fetched it: `bytes` begin with the change's header.
pub(super) fn verified_change(position: Position, bytes: Bytes) -> Option<Bytes> {
    let mut fields = Fields::new(&bytes);
    let (sub, len, crc) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let encoded = fields.bytes(len as usize)?;
    let is_sound =
        sub == position.sub && fields.remaining() == 0 && change_crc(position, encoded) == crc;
    is_sound.then(|| bytes.slice(CHANGE_HEADER_BYTES..))
}

/// Covers the position too: a read that went to the wrong place does not verify.
fn change_crc(position: Position, encoded: &[u8]) -> u32 {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&position.revision.0.to_le_bytes());
    place[8..].copy_from_slice(&position.sub.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), encoded)
}

fn read_record(
    fields: &mut Fields<'_>,
    frame_len: usize,
    spans: &mut Vec<Span>,
) -> Result<(), Flaw> {
    let short = Flaw::Short { part: "a record" };
    let (Some(revision), Some(changes)) = (fields.revision(), fields.u32()) else {
        return Err(short);
    };
    for _ in 0..changes {
        let start = bounded(frame_len - fields.remaining());
        let span = read_change(fields, revision, start).ok_or(short.clone())?;
        if spans.last().is_some_and(|before| before.position >= span.position) {
            return Err(Flaw::Order { position: span.position });
        }
        spans.push(span);
    }
    Ok(())
}

fn read_change(fields: &mut Fields<'_>, revision: Revision, start: u32) -> Option<Span> {
    let (sub, len, _crc) = (fields.u32()?, fields.u32()?, fields.u32()?);
    fields.bytes(len as usize)?;
    Some(Span { position: Position::new(revision, sub), start, len })
}

fn read_meta(fields: &mut Fields<'_>) -> Option<MetaChange> {
    let (key_len, value_len) = (fields.u32()?, fields.u32()?);
    let key = Bytes::copy_from_slice(fields.bytes(key_len as usize)?);
    let value = match value_len {
        REMOVED => None,
        len => Some(Bytes::copy_from_slice(fields.bytes(len as usize)?)),
    };
    Some(MetaChange { key, value })
}

fn read_mark(fields: &mut Fields<'_>) -> Option<BatchId> {
    Some(BatchId { epoch: Epoch(fields.u64()?), number: fields.u64()? })
}

fn bounded(len: usize) -> u32 {
    u32::try_from(len).expect("every frame is measured against FRAME_BYTES_MAX before it is built")
}

#[cfg(test)]
mod tests;
