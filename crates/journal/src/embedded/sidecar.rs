//! The index of a sealed segment in a file of its own, so that opening a journal and building the
//! store's index read no values.
//!
//! Derived data: what is missing or damaged here is read from the segment again. That it exists
//! proves one thing, though: a later segment was durable before it was written.
//!
//! ```text
//! places  magic | seed u32 | changes u32 | end u64 | next sequence u64 | last revision i64 | heads u64
//!         | per change: revision i64, sub u32, start u32, length u32 | crc u32
//! heads   per change: length u32, key-value without its value | crc u32
//! ```

use std::path::Path;

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use mvcc::{Position, Revision};

use super::{
    disk::{Disk, DiskFile},
    folder::{self, Folder},
    frame::Span,
    index::Index,
    segment::{self, Filled, Header, Segment},
    wire::{Fields, PutFields},
};
use crate::{Error, Head, error::At};

const MAGIC: [u8; 8] = *b"wSidecar";
const FIXED_BYTES: usize = 48;
const PLACE_BYTES: usize = 20;
const CRC_BYTES: usize = 4;

/// Gathers heads in order of position; the other half of a sidecar is in the segment's index.
#[derive(Debug, Default)]
pub(super) struct Heads {
    bytes: Vec<u8>,
}

/// The fixed front of a sidecar.
struct Fixed {
    changes: usize,
    heads_len: usize,
    end: u64,
    next_sequence: u64,
    last: Revision,
}

// === impl Heads ===

impl Heads {
    pub(super) fn push(&mut self, kv: &KeyValue) {
        let kv = kv.without_value();
        self.bytes.put_u32(u32::try_from(kv.encoded().len()).expect("shorter than its change"));
        self.bytes.extend_from_slice(kv.encoded());
    }
}

// === impl Fixed ===

impl Fixed {
    /// `None` unless it is the front of the sidecar of this very segment.
    fn read(bytes: &[u8], header: &Header) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        (fields.array()? == MAGIC && fields.u32()? == header.seed().0).then_some(())?;
        let changes = fields.u32()? as usize;
        let (end, next_sequence, last) = (fields.u64()?, fields.u64()?, fields.revision()?);
        let heads_len = usize::try_from(fields.u64()?).ok()?;
        Some(Self { changes, heads_len, end, next_sequence, last })
    }

    fn places_len(&self) -> usize {
        FIXED_BYTES + self.changes * PLACE_BYTES + CRC_BYTES
    }
}

/// An upper bound of the sidecar's size, for which nothing is read.
pub(super) fn bytes_max(filled: &Filled) -> u64 {
    let places = FIXED_BYTES + filled.index.spans().len() * PLACE_BYTES + 2 * CRC_BYTES;
    // A head and its length take no more than a change with its header.
    places as u64 + filled.end
}

/// Writes the sidecar that belongs to the segment at `segment_path`, through the file `unfinished`.
pub(super) fn write(
    folder: &Folder,
    (segment_path, header): (&Path, &Header),
    filled: &Filled,
    heads: &Heads,
    unfinished: &Path,
) -> Result<(), Error> {
    let bytes = encode(header, filled, heads);
    write_file(folder, &bytes, unfinished)
        .and_then(|()| folder.rename(unfinished, &folder::sidecar_of(segment_path)))
        .inspect_err(|_| folder.discard(unfinished))
}

fn write_file(folder: &Folder, bytes: &[u8], path: &Path) -> Result<(), Error> {
    let file = folder.disk.create(path).at("cannot create", path)?;
    file.write_at(bytes, 0).at("cannot write", path)?;
    file.sync().at("cannot sync", path)
}

/// What the sidecar says of the segment, if there is a sound one.
pub(super) fn load(disk: &dyn Disk, segment: &Path, header: &Header) -> Option<Filled> {
    let path = folder::sidecar_of(segment);
    if !path.exists() {
        return None;
    }
    let filled = disk.open(&path).ok().and_then(|file| read_places(&*file, header));
    if filled.is_none() {
        tracing::warn!(path = %path.display(), "damaged index is rebuilt from its segment");
    }
    filled
}

/// The heads of all changes of the segment that are kept, if there is a sound sidecar.
pub(super) fn heads(disk: &dyn Disk, segment: &Segment) -> Result<Option<Vec<Head>>, Error> {
    let path = folder::sidecar_of(&segment.path);
    // A rewrite may have removed it meanwhile; the segment itself stays readable.
    let Ok(file) = disk.open(&path) else { return Ok(None) };
    let bytes = segment::read_all(&file, &path)?;
    let heads = sound_heads(&bytes, &segment.header);
    Ok(heads.and_then(|heads| kept_heads(heads, &segment.filled.read().index)))
}

fn kept_heads(heads: &[u8], index: &Index) -> Option<Vec<Head>> {
    let mut fields = Fields::new(heads);
    let mut kept = Vec::with_capacity(index.spans().len());
    for span in index.kept() {
        let len = fields.u32()?;
        let encoded = fields.bytes(len as usize)?;
        if let Some(Span { position, len, .. }) = span {
            let kv = KeyValue::try_from_encoded(Bytes::copy_from_slice(encoded)).ok()?;
            kept.push(Head { position, kv, encoded_len: len });
        }
    }
    Some(kept)
}

fn encode(header: &Header, filled: &Filled, heads: &Heads) -> Vec<u8> {
    let spans = filled.index.spans();
    let mut bytes = Vec::with_capacity(FIXED_BYTES + spans.len() * PLACE_BYTES + heads.bytes.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.put_u32(header.seed().0);
    bytes.put_u32(u32::try_from(spans.len()).expect("fewer changes than bytes"));
    bytes.put_u64(filled.end);
    bytes.put_u64(filled.next_sequence);
    bytes.put_revision(filled.last);
    bytes.put_u64(heads.bytes.len() as u64);
    for span in spans {
        bytes.put_revision(span.position.revision);
        bytes.put_u32(span.position.sub);
        bytes.put_u32(span.start);
        bytes.put_u32(span.len);
    }
    bytes.put_u32(crc32c::crc32c(&bytes));
    bytes.extend_from_slice(&heads.bytes);
    bytes.put_u32(crc32c::crc32c_append(header.seed().0, &heads.bytes));
    bytes
}

fn read_places(file: &dyn DiskFile, header: &Header) -> Option<Filled> {
    let mut front = [0; FIXED_BYTES];
    file.read_at(&mut front, 0).ok()?;
    let fixed = Fixed::read(&front, header)?;
    let len = fixed.places_len();
    (len as u64 <= file.size().ok()?).then_some(())?;
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0).ok()?;
    let (places, crc) = bytes.split_last_chunk()?;
    (crc32c::crc32c(places) == u32::from_le_bytes(*crc)).then_some(())?;
    let mut fields = Fields::new(&places[FIXED_BYTES..]);
    let spans = (0..fixed.changes).map(|_| read_span(&mut fields)).collect::<Option<Vec<_>>>()?;
    let Fixed { end, next_sequence, last, .. } = fixed;
    Some(Filled { index: Index::new(spans), end, next_sequence, last })
}

fn read_span(fields: &mut Fields<'_>) -> Option<Span> {
    let position = Position::new(fields.revision()?, fields.u32()?);
    Some(Span { position, start: fields.u32()?, len: fields.u32()? })
}

fn sound_heads<'a>(bytes: &'a [u8], header: &Header) -> Option<&'a [u8]> {
    let fixed = Fixed::read(bytes, header)?;
    let begin = fixed.places_len();
    let heads = bytes.get(begin..)?.get(..fixed.heads_len)?;
    let crc = bytes.get(begin + fixed.heads_len..)?.first_chunk()?;
    let is_sound = crc32c::crc32c_append(header.seed().0, heads) == u32::from_le_bytes(*crc);
    is_sound.then_some(heads)
}
