//! The canonical protobuf form: fields in ascending order, each at most once, proto3 defaults left
//! out, varints as short as they can be. It is what etcd's own marshaller writes. Owns reading and
//! writing single fields of that form; never decodes anything else (prost does).

use bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

/// A varint carries 7 bits per byte, so 64 bits need at most 10 bytes.
const VARINT_LEN_MAX: usize = 10;

/// Tags below 16 need one byte; all tags of this package are.
const KEY_LEN: usize = 1;

/// Reads fields that the caller asks for in ascending order of their tags. Each method gives `None`
/// when the bytes are not canonical, and the default when the field is not there.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

// === impl Reader ===

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn new(encoded: &'a [u8]) -> Self {
        Self { rest: encoded }
    }

    #[inline]
    pub(super) fn int64(&mut self, tag: u32) -> Option<i64> {
        if !self.skip_key(tag, WireType::Varint) {
            return Some(0);
        }
        let value = self.varint()?;
        (value != 0).then_some(value.cast_signed())
    }

    /// Negative enum values are sign-extended to 64 bits on the wire.
    #[inline]
    pub(super) fn int32(&mut self, tag: u32) -> Option<i32> {
        i32::try_from(self.int64(tag)?).ok()
    }

    #[inline]
    pub(super) fn bytes(&mut self, tag: u32) -> Option<&'a [u8]> {
        match self.message(tag)? {
            None => Some(&[]),
            Some([]) => None,
            Some(bytes) => Some(bytes),
        }
    }

    /// Unlike an empty byte string, an empty message is written: its presence is information.
    #[inline]
    pub(super) fn message(&mut self, tag: u32) -> Option<Option<&'a [u8]>> {
        if !self.skip_key(tag, WireType::LengthDelimited) {
            return Some(None);
        }
        let len = usize::try_from(self.varint()?).ok()?;
        let (message, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(Some(message))
    }

    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    fn skip_key(&mut self, tag: u32, wire_type: WireType) -> bool {
        match self.rest {
            [key, rest @ ..] if u32::from(*key) == (tag << 3) | wire_type as u32 => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().copied().take(VARINT_LEN_MAX).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                let is_shortest = byte != 0 || index == 0;
                // The last byte that can come has room for the 64th bit only.
                let fits = byte <= 1 || index + 1 < VARINT_LEN_MAX;
                return (is_shortest && fits).then_some(value);
            }
        }
        None
    }
}

#[inline]
pub(super) fn int64_len(value: i64) -> usize {
    if value == 0 { 0 } else { KEY_LEN + encoded_len_varint(value.cast_unsigned()) }
}

#[inline]
pub(super) fn bytes_len(value: &[u8]) -> usize {
    if value.is_empty() { 0 } else { message_len(value) }
}

#[inline]
pub(super) fn message_len(message: &[u8]) -> usize {
    KEY_LEN + encoded_len_varint(message.len() as u64) + message.len()
}

#[inline]
pub(super) fn put_int64(tag: u32, value: i64, buf: &mut Vec<u8>) {
    if value != 0 {
        encode_key(tag, WireType::Varint, buf);
        encode_varint(value.cast_unsigned(), buf);
    }
}

#[inline]
pub(super) fn put_bytes(tag: u32, value: &[u8], buf: &mut Vec<u8>) {
    if !value.is_empty() {
        put_message(tag, value, buf);
    }
}

#[inline]
pub(super) fn put_message(tag: u32, message: &[u8], buf: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, buf);
    encode_varint(message.len() as u64, buf);
    buf.put_slice(message);
}
