//! MessagePack, the reading half. Whatever the bytes are, the answer is a value or an error, and
//! nothing is allocated because of a length that was only claimed.

use bytes::{Buf, Bytes};
use uuid::Uuid;

use super::DecodeError;

const EXTENSION_UUID: u8 = 3;
const UUID_BYTES: usize = 16;

/// Reads values one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Unpacker {
    rest: Bytes,
}

// === impl Unpacker ===

impl Unpacker {
    pub(crate) fn new(message: Bytes) -> Self {
        Self { rest: message }
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, DecodeError> {
        if self.rest.is_empty() { Err(DecodeError::Short { what }) } else { Ok(self.rest.get_u8()) }
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<Bytes, DecodeError> {
        if self.rest.len() < len {
            return Err(DecodeError::Short { what });
        }
        Ok(self.rest.split_to(len))
    }

    /// An unsigned number of `len` bytes, the highest first.
    fn number(&mut self, len: usize, what: &'static str) -> Result<u64, DecodeError> {
        let bytes = self.take(len, what)?;
        Ok(bytes.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    }

    /// True, and the nil is consumed, if a nil comes next.
    pub(crate) fn is_nil(&mut self) -> bool {
        let is_nil = self.rest.first() == Some(&0xc0);
        if is_nil {
            self.rest.advance(1);
        }
        is_nil
    }

    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.byte(what)? {
            0xc2 => Ok(false),
            0xc3 => Ok(true),
            found => Err(DecodeError::Unexpected { what, found }),
        }
    }

    pub(crate) fn long(&mut self, what: &'static str) -> Result<i64, DecodeError> {
        let code = self.byte(what)?;
        Ok(match code {
            0x00..=0x7f => i64::from(code),
            0xe0..=0xff => i64::from(code as i8),
            0xcc => self.number(1, what)? as i64,
            0xcd => self.number(2, what)? as i64,
            0xce => self.number(4, what)? as i64,
            0xcf => {
                let number = self.number(8, what)?;
                i64::try_from(number).map_err(|_above| DecodeError::Range { what })?
            }
            0xd0 => i64::from(self.number(1, what)? as u8 as i8),
            0xd1 => i64::from(self.number(2, what)? as u16 as i16),
            0xd2 => i64::from(self.number(4, what)? as u32 as i32),
            0xd3 => self.number(8, what)? as i64,
            found => return Err(DecodeError::Unexpected { what, found }),
        })
    }

    pub(crate) fn int(&mut self, what: &'static str) -> Result<i32, DecodeError> {
        let number = self.long(what)?;
        i32::try_from(number).map_err(|_outside| DecodeError::Range { what })
    }

    /// How many of something follow. Each takes a byte at least, so more than there are bytes left
    /// cannot be true.
    pub(crate) fn count(&mut self, what: &'static str) -> Result<usize, DecodeError> {
        let number = self.long(what)?;
        let count = usize::try_from(number).map_err(|_negative| DecodeError::Range { what })?;
        if count > self.rest.len() { Err(DecodeError::Short { what }) } else { Ok(count) }
    }

    pub(crate) fn string(&mut self, what: &'static str) -> Result<String, DecodeError> {
        let len = match self.byte(what)? {
            code @ 0xa0..=0xbf => u64::from(code & 0x1f),
            0xd9 => self.number(1, what)?,
            0xda => self.number(2, what)?,
            0xdb => self.number(4, what)?,
            found => return Err(DecodeError::Unexpected { what, found }),
        };
        let bytes = self.take(len as usize, what)?;
        String::from_utf8(bytes.to_vec()).map_err(|_bytes| DecodeError::NotUtf8)
    }

    pub(crate) fn string_or_nil(
        &mut self,
        what: &'static str,
    ) -> Result<Option<String>, DecodeError> {
        if self.is_nil() { Ok(None) } else { self.string(what).map(Some) }
    }

    pub(crate) fn binary(&mut self, what: &'static str) -> Result<Bytes, DecodeError> {
        let len = match self.byte(what)? {
            0xc4 => self.number(1, what)?,
            0xc5 => self.number(2, what)?,
            0xc6 => self.number(4, what)?,
            found => return Err(DecodeError::Unexpected { what, found }),
        };
        self.take(len as usize, what)
    }

    /// Two numbers of eight bytes each, both with their lowest byte first.
    pub(crate) fn uuid(&mut self, what: &'static str) -> Result<Uuid, DecodeError> {
        match self.byte(what)? {
            0xd8 => {}
            found => return Err(DecodeError::Unexpected { what, found }),
        }
        match self.byte(what)? {
            EXTENSION_UUID => {}
            found => return Err(DecodeError::Unexpected { what, found }),
        }
        let mut bytes = self.take(UUID_BYTES, what)?;
        Ok(Uuid::from_u64_pair(bytes.get_u64_le(), bytes.get_u64_le()))
    }

    /// Passes over one value of a kind this client does not know.
    pub(crate) fn skip(&mut self) -> Result<(), DecodeError> {
        let what = "a value to skip";
        let len = match self.byte(what)? {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => 0,
            code @ 0xa0..=0xbf => u64::from(code & 0x1f),
            0xcc | 0xd0 => 1,
            0xcd | 0xd1 => 2,
            0xce | 0xd2 | 0xca => 4,
            0xcf | 0xd3 | 0xcb => 8,
            0xc4 | 0xd9 => self.number(1, what)?,
            0xc5 | 0xda => self.number(2, what)?,
            0xc6 | 0xdb => self.number(4, what)?,
            code @ 0xd4..=0xd8 => 1 + (1_u64 << (code - 0xd4)),
            0xc7 => 1 + self.number(1, what)?,
            0xc8 => 1 + self.number(2, what)?,
            0xc9 => 1 + self.number(4, what)?,
            found => return Err(DecodeError::Unexpected { what, found }),
        };
        self.take(len as usize, what).map(drop)
    }
}
