//! One file of the log: its header on the disk, and what is known of it in memory.
//!
//! A *log* segment is written by appends and ends where the next one begins. A *rewritten* segment
//! replaces a run of older ones by what survived in them; it is complete before it gets its name.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::{Bytes, BytesMut};
use etcd_api::mvccpb::KeyValue;
use mvcc::{Position, Revision};
use parking_lot::RwLock;
use uuid::Uuid;

use super::{
    disk::DiskFile,
    frame::{self, Seed, Span},
    index::Index,
    wire::{Fields, PutFields},
};
use crate::{Error, error::At};

const MAGIC: [u8; 8] = *b"wSegment";
/// A page of its own, so that no append ever writes to the sector that holds the header.
pub(super) const HEADER_BYTES: usize = 4096;
const KIND_LOG: u32 = 1;
const KIND_REWRITTEN: u32 = 2;

/// The first page of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The journal it belongs to.
    pub(super) identity: Uuid,
    /// Unique in the journal. Of two segments that cover the same frames the larger id counts.
    pub(super) id: u64,
    /// The number of its first frame; for a rewritten segment, of the first frame it stands for.
    pub(super) first_sequence: u64,
    /// The last revision before it.
    pub(super) base: Revision,
    pub(super) extent: Extent,
}

/// How far a segment reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// As far as its frames do.
    Log,
    /// Known from the start: it stands for all frames before `next_sequence`, that is up to
    /// `last`, with `frames` frames of its own counted from 0.
    Rewritten { next_sequence: u64, last: Revision, frames: u32 },
}

/// A segment in use.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) header: Header,
    pub(super) filled: RwLock<Filled>,
    /// Where it is full. Only the newest one may have room left.
    pub(super) capacity: u64,
    has_sidecar: AtomicBool,
}

/// The durable part of a segment. Only the newest one grows.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub(super) index: Index,
    /// Where the next frame would begin.
    pub(super) end: u64,
    pub(super) next_sequence: u64,
    pub(super) last: Revision,
}

// === impl Header ===

impl Header {
    pub(super) fn file_name(&self) -> String {
        format!("{:016x}-{:08x}.seg", self.first_sequence, self.id)
    }

    /// Ties frames to this journal and this use of the file.
    pub(super) fn seed(&self) -> Seed {
        Seed(crc32c::crc32c_append(
            crc32c::crc32c(self.identity.as_bytes()),
            &self.id.to_le_bytes(),
        ))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, next_sequence, last, frames) = match self.extent {
            Extent::Log => (KIND_LOG, 0, Revision(0), 0),
            Extent::Rewritten { next_sequence, last, frames } => {
                (KIND_REWRITTEN, next_sequence, last, frames)
            }
        };
        let mut page = Vec::with_capacity(HEADER_BYTES);
        page.extend_from_slice(&MAGIC);
        page.put_u32(kind);
        page.put_u32(frames);
        page.extend_from_slice(self.identity.as_bytes());
        page.put_u64(self.id);
        page.put_u64(self.first_sequence);
        page.put_u64(next_sequence);
        page.put_revision(self.base);
        page.put_revision(last);
        page.resize(HEADER_BYTES - 4, 0);
        page.put_u32(crc32c::crc32c(&page));
        page
    }

    /// `None` if the page is not the sound header of a segment.
    pub(super) fn decode(page: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(page.get(..HEADER_BYTES)?);
        let body = fields.bytes(HEADER_BYTES - 4)?;
        (fields.u32()? == crc32c::crc32c(body)).then_some(())?;
        let mut fields = Fields::new(body);
        (fields.array()? == MAGIC).then_some(())?;
        let (kind, frames) = (fields.u32()?, fields.u32()?);
        let identity = Uuid::from_bytes(fields.array()?);
        let (id, first_sequence, next_sequence) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (base, last) = (fields.revision()?, fields.revision()?);
        let extent = match kind {
            KIND_LOG => Extent::Log,
            KIND_REWRITTEN => Extent::Rewritten { next_sequence, last, frames },
            _ => return None,
        };
        Some(Self { identity, id, first_sequence, base, extent })
    }
}

// === impl Segment ===

impl Segment {
    pub(super) fn new(
        path: PathBuf,
        file: Arc<dyn DiskFile>,
        header: Header,
        filled: Filled,
    ) -> Self {
        let capacity = filled.end;
        let (filled, has_sidecar) = (RwLock::new(filled), AtomicBool::new(false));
        Self { path, file, header, filled, capacity, has_sidecar }
    }

    /// The segment to be written, full at `capacity`.
    pub(super) fn with_capacity(self, capacity: u64) -> Self {
        Self { capacity, ..self }
    }

    pub(super) fn has_sidecar(&self) -> bool {
        self.has_sidecar.load(Ordering::Relaxed)
    }

    pub(super) fn note_sidecar(&self) {
        self.has_sidecar.store(true, Ordering::Relaxed);
    }

    /// One change as it stands in the file, checked.
    pub(super) fn read(&self, span: Span) -> Result<KeyValue, Error> {
        let len = frame::CHANGE_HEADER_BYTES + span.len as usize;
        let bytes = read_range(&self.file, &self.path, span.start.into(), len)?;
        key_value(span.position, bytes).ok_or_else(|| damaged_change(&self.path, span))
    }
}

// === impl Filled ===

impl Filled {
    /// Where the next frame begins, and its number.
    pub(super) fn tail(&self) -> (u64, u64) {
        (self.end, self.next_sequence)
    }

    /// Takes in a frame that became durable.
    pub(super) fn grow(&mut self, spans: &[Span], frame_bytes: u64, last: Revision) {
        let start = u32::try_from(self.end).expect("segments are smaller than 4 GiB");
        self.index.extend(spans, start);
        self.end += frame_bytes;
        self.next_sequence += 1;
        self.last = last;
    }
}

/// A change whose checksum is right and that is what it should be: the check after the read.
pub(super) fn key_value(position: Position, bytes: Bytes) -> Option<KeyValue> {
    let encoded = frame::verified_change(position, bytes)?;
    let kv = KeyValue::try_from_encoded(encoded).ok()?;
    (kv.mod_revision() == position.revision.0).then_some(kv)
}

pub(super) fn damaged_change(path: &Path, span: Span) -> Error {
    let what = format!("the change at {} does not verify", span.position);
    Error::Corrupt { path: path.to_owned(), offset: span.start.into(), what }
}

pub(super) fn read_range(
    file: &Arc<dyn DiskFile>,
    path: &Path,
    offset: u64,
    len: usize,
) -> Result<Bytes, Error> {
    let mut bytes = BytesMut::zeroed(len);
    file.read_at(&mut bytes, offset).at("cannot read", path)?;
    Ok(bytes.freeze())
}

/// The whole file. Segments are bounded, so this is too.
pub(super) fn read_all(file: &Arc<dyn DiskFile>, path: &Path) -> Result<Bytes, Error> {
    let len = file.size().at("cannot measure", path)?;
    read_range(file, path, 0, usize::try_from(len).expect("files fit the address space"))
}
