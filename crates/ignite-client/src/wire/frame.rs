//! Messages in frames: four bytes of length, the highest first, then the message. Before the first
//! frame of each side stand four letters.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{DecodeError, pack::Packer, unpack::Unpacker};
use crate::error::ServerError;

pub(crate) const MAGIC: [u8; 4] = *b"IGNI";
const LENGTH_BYTES: usize = 4;
/// What the number of a request takes at most, with which an answer begins.
const ID_BYTES_MAX: usize = 9;

const FLAG_ASSIGNMENT_CHANGED: i32 = 1;
const FLAG_NOTIFICATION: i32 = 2;
const FLAG_ERROR: i32 = 4;

/// The frame claims to be longer than this client takes or sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) bytes: usize,
    /// The request that it answers, if it is an answer.
    pub(crate) id: Option<i64>,
}

/// A message of the server that answers a request, or tells something unasked.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: i64,
    pub(crate) is_notification: bool,
    /// The server's clock after what was done: a snapshot at it sees all of that.
    pub(crate) observable: i64,
    pub(crate) outcome: Result<Unpacker, ServerError>,
}

pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(LENGTH_BYTES + message.len());
    out.put_u32(u32::try_from(message.len()).expect("frames are bounded below 4 GiB"));
    out.put_slice(message);
    out.freeze()
}

/// A request as it goes onto the wire.
pub(crate) fn request(op: i32, id: i64, payload: &[u8]) -> Bytes {
    let mut head = Packer::new();
    head.int(i64::from(op)).int(id);
    let head = head.finish();
    let len = u32::try_from(head.len() + payload.len()).expect("frames are bounded below 4 GiB");
    let mut out = BytesMut::with_capacity(LENGTH_BYTES + head.len() + payload.len());
    out.put_u32(len);
    out.put_slice(&head);
    out.put_slice(payload);
    out.freeze()
}

/// The next whole message of `buffer`, if it is there already.
pub(crate) fn next(buffer: &mut BytesMut, bytes_max: usize) -> Result<Option<Bytes>, TooLong> {
    let Some(length) = buffer.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let bytes = u32::from_be_bytes(*length) as usize;
    if bytes > bytes_max {
        let Some(begin) = buffer[LENGTH_BYTES..].first_chunk::<ID_BYTES_MAX>() else {
            return Ok(None);
        };
        let id = Unpacker::new(Bytes::copy_from_slice(begin)).long("a request's number").ok();
        return Err(TooLong { bytes, id });
    }
    if buffer.len() < LENGTH_BYTES + bytes {
        // Growing once for the whole message spares copies on the way.
        buffer.reserve(LENGTH_BYTES + bytes - buffer.len());
        return Ok(None);
    }
    buffer.advance(LENGTH_BYTES);
    Ok(Some(buffer.split_to(bytes).freeze()))
}

pub(crate) fn answer(message: Bytes) -> Result<Answer, DecodeError> {
    let mut unpacker = Unpacker::new(message);
    let id = unpacker.long("a request's number")?;
    let flags = unpacker.int("flags")?;
    if flags & FLAG_ASSIGNMENT_CHANGED != 0 {
        // When the primaries of partitions changed; this client leaves routing to the server.
        unpacker.long("a time")?;
    }
    let observable = unpacker.long("the observable time")?;
    let is_error = flags & FLAG_ERROR != 0;
    let outcome = if is_error { Err(server_error(&mut unpacker)?) } else { Ok(unpacker) };
    Ok(Answer { id, is_notification: flags & FLAG_NOTIFICATION != 0, observable, outcome })
}

pub(crate) fn server_error(unpacker: &mut Unpacker) -> Result<ServerError, DecodeError> {
    let trace_id = unpacker.uuid("a trace id")?;
    let code = unpacker.int("an error code")?;
    let class = unpacker.string("the class of an error")?;
    let message = unpacker.string_or_nil("the message of an error")?.unwrap_or_default();
    // The stack trace; servers send one only when told to, and it is for them.
    unpacker.string_or_nil("a stack trace")?;
    let extensions = if unpacker.is_nil() { 0 } else { unpacker.count("extensions")? };
    let mut schema_expected = None;
    for _ in 0..extensions {
        match unpacker.string("the name of an extension")?.as_str() {
            "expected-schema-ver" => schema_expected = Some(unpacker.int("a schema version")?),
            "sql-update-counters" => {
                for _ in 0..unpacker.count("update counters")? {
                    unpacker.long("an update counter")?;
                }
            }
            _ => unpacker.skip()?,
        }
    }
    Ok(ServerError { code: code.into(), trace_id, class, message, schema_expected })
}
