//! How a log file looks, byte by byte. Reads and writes no file.
//!
//! ```text
//! file     magic (8), logical offset of the first record (8), checksum (4), records
//! record   checksum (4), length of the payload (4), stream (1), kind (1), time in ns (8), payload
//! ```
//!
//! Numbers are little-endian. A checksum is CRC32C over all that follows it in a record, and over all
//! that precedes it in a file header.

use std::time::Duration;

use super::Stream;

const MAGIC: [u8; 8] = *b"wTaskLog";
pub(super) const FILE_HEADER_BYTES: usize = 20;
pub(super) const RECORD_HEADER_BYTES: usize = 18;
/// The payload of one record: what a pipe holds by default.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

const KIND_DATA: u8 = 1;
const KIND_GAP: u8 = 2;
const KIND_END: u8 = 3;
const STREAM_NONE: u8 = 0;
const STREAM_STDOUT: u8 = 1;
const STREAM_STDERR: u8 = 2;

/// One record, its payload where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) time: Duration,
    pub(super) body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    Data(Stream, &'a [u8]),
    Gap(u64),
    End,
}

/// What the bytes at some place are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded<'a> {
    /// A record that takes this many bytes.
    Record(Record<'a>, usize),
    /// The beginning of one, maybe.
    Incomplete,
    /// No record of ours.
    Damaged,
}

// === impl Record ===

impl Record<'_> {
    /// What goes before and after the payload, which is written from where it lies.
    pub(super) fn encode(&self) -> ([u8; RECORD_HEADER_BYTES], Payload<'_>) {
        let (stream, kind, payload) = match self.body {
            Body::Data(stream, bytes) => (code(stream), KIND_DATA, Payload::Lent(bytes)),
            Body::Gap(bytes) => (STREAM_NONE, KIND_GAP, Payload::Number(bytes.to_le_bytes())),
            Body::End => (STREAM_NONE, KIND_END, Payload::Lent(&[])),
        };
        let length = u32::try_from(payload.bytes().len()).expect("payloads are bounded");
        let time = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        let mut header = [0; RECORD_HEADER_BYTES];
        header[4..8].copy_from_slice(&length.to_le_bytes());
        header[8] = stream;
        header[9] = kind;
        header[10..].copy_from_slice(&time.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[4..]), payload.bytes());
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        (header, payload)
    }

    /// How far it moves the offset.
    pub(super) fn advance(&self) -> u64 {
        match self.body {
            Body::Data(_, bytes) => bytes.len() as u64,
            Body::Gap(bytes) => bytes,
            Body::End => 0,
        }
    }
}

/// The part of a record after its header.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'a> {
    Lent(&'a [u8]),
    Number([u8; 8]),
}

// === impl Payload ===

impl Payload<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Number(bytes) => bytes,
        }
    }
}

/// What the bytes begin with.
pub(super) fn decode(bytes: &[u8]) -> Decoded<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>() else {
        return Decoded::Incomplete;
    };
    let length = u32_at(header, 4) as usize;
    if length > RECORD_BYTES_MAX {
        return Decoded::Damaged;
    }
    let Some(payload) = rest.get(..length) else { return Decoded::Incomplete };
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[4..]), payload);
    if checksum != u32_at(header, 0) {
        return Decoded::Damaged;
    }
    let Some(body) = body(header[8], header[9], payload) else { return Decoded::Damaged };
    let time = Duration::from_nanos(u64_at(header, 10));
    Decoded::Record(Record { time, body }, RECORD_HEADER_BYTES + length)
}

fn body(stream: u8, kind: u8, payload: &[u8]) -> Option<Body<'_>> {
    match (kind, stream) {
        (KIND_DATA, STREAM_STDOUT) => Some(Body::Data(Stream::Stdout, payload)),
        (KIND_DATA, STREAM_STDERR) => Some(Body::Data(Stream::Stderr, payload)),
        (KIND_GAP, STREAM_NONE) => Some(Body::Gap(u64::from_le_bytes(payload.try_into().ok()?))),
        (KIND_END, STREAM_NONE) => payload.is_empty().then_some(Body::End),
        _ => None,
    }
}

fn code(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => STREAM_STDOUT,
        Stream::Stderr => STREAM_STDERR,
    }
}

pub(super) fn encode_file_header(start: u64) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&start.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The logical offset at which the file begins; `None` if this is no header of ours.
pub(super) fn decode_file_header(header: &[u8; FILE_HEADER_BYTES]) -> Option<u64> {
    let is_ours = header.starts_with(&MAGIC) && crc32c::crc32c(&header[..16]) == u32_at(header, 16);
    is_ours.then(|| u64_at(header, 8))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
