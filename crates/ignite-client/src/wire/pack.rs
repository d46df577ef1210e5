//! MessagePack, the writing half: only what the protocol uses, each number in its shortest form.

use bytes::{BufMut, Bytes, BytesMut};

/// The extension that carries a set of bits.
const EXTENSION_BITS: u8 = 8;
const NIL: u8 = 0xc0;
const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;
const BINARY_8: u8 = 0xc4;
const BINARY_16: u8 = 0xc5;
const BINARY_32: u8 = 0xc6;
const EXTENSION_8: u8 = 0xc7;
const UNSIGNED_8: u8 = 0xcc;
const UNSIGNED_16: u8 = 0xcd;
const UNSIGNED_32: u8 = 0xce;
const UNSIGNED_64: u8 = 0xcf;
const SIGNED_8: u8 = 0xd0;
const SIGNED_16: u8 = 0xd1;
const SIGNED_32: u8 = 0xd2;
const SIGNED_64: u8 = 0xd3;
const FIXED_EXTENSION_1: u8 = 0xd4;
const STRING_FIXED: u8 = 0xa0;
const STRING_8: u8 = 0xd9;
const STRING_16: u8 = 0xda;
const STRING_32: u8 = 0xdb;

/// Writes values one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    out: BytesMut,
}

// === impl Packer ===

impl Packer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn finish(self) -> Bytes {
        self.out.freeze()
    }

    pub(crate) fn nil(&mut self) -> &mut Self {
        self.out.put_u8(NIL);
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.out.put_u8(if value { TRUE } else { FALSE });
        self
    }

    pub(crate) fn int(&mut self, value: i64) -> &mut Self {
        if value < 0 {
            self.negative(value)
        } else {
            self.natural(value.unsigned_abs())
        }
        self
    }

    /// A length or a count.
    pub(crate) fn len(&mut self, value: usize) -> &mut Self {
        self.natural(value as u64);
        self
    }

    pub(crate) fn optional(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.int(value),
            None => self.nil(),
        }
    }

    fn natural(&mut self, value: u64) {
        if let Ok(value) = u8::try_from(value) {
            if value > 0x7f {
                self.out.put_u8(UNSIGNED_8);
            }
            self.out.put_u8(value);
        } else if let Ok(value) = u16::try_from(value) {
            self.out.put_u8(UNSIGNED_16);
            self.out.put_u16(value);
        } else if let Ok(value) = u32::try_from(value) {
            self.out.put_u8(UNSIGNED_32);
            self.out.put_u32(value);
        } else {
            self.out.put_u8(UNSIGNED_64);
            self.out.put_u64(value);
        }
    }

    fn negative(&mut self, value: i64) {
        if let Ok(value) = i8::try_from(value) {
            if value < -32 {
                self.out.put_u8(SIGNED_8);
            }
            self.out.put_i8(value);
        } else if let Ok(value) = i16::try_from(value) {
            self.out.put_u8(SIGNED_16);
            self.out.put_i16(value);
        } else if let Ok(value) = i32::try_from(value) {
            self.out.put_u8(SIGNED_32);
            self.out.put_i32(value);
        } else {
            self.out.put_u8(SIGNED_64);
            self.out.put_i64(value);
        }
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        let len = text.len();
        if len < 32 {
            self.out.put_u8(STRING_FIXED | len as u8);
        } else {
            self.header(len, [STRING_8, STRING_16, STRING_32]);
        }
        self.out.put_slice(text.as_bytes());
        self
    }

    pub(crate) fn binary(&mut self, bytes: &[u8]) -> &mut Self {
        self.header(bytes.len(), [BINARY_8, BINARY_16, BINARY_32]);
        self.out.put_slice(bytes);
        self
    }

    /// A code for a length of one, two or four bytes, and the length. Frames are bounded far below
    /// what four bytes can say.
    fn header(&mut self, len: usize, [one, two, four]: [u8; 3]) {
        if let Ok(len) = u8::try_from(len) {
            self.out.put_u8(one);
            self.out.put_u8(len);
        } else if let Ok(len) = u16::try_from(len) {
            self.out.put_u8(two);
            self.out.put_u16(len);
        } else {
            self.out.put_u8(four);
            self.out.put_u32(u32::try_from(len).expect("frames are below 4 GiB"));
        }
    }

    /// A set of bits, the lowest first, without zero bytes at its end.
    pub(crate) fn bits(&mut self, set: &[usize]) -> &mut Self {
        let mut bytes = vec![0_u8; set.iter().map(|bit| bit / 8 + 1).max().unwrap_or(0)];
        for bit in set {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
        match bytes.len() {
            // One, two, four, eight and sixteen bytes have codes of their own.
            len @ (1 | 2 | 4 | 8 | 16) => {
                self.out.put_u8(FIXED_EXTENSION_1 + len.trailing_zeros() as u8);
            }
            len => {
                self.out.put_u8(EXTENSION_8);
                self.out.put_u8(u8::try_from(len).expect("tables have few columns"));
            }
        }
        self.out.put_u8(EXTENSION_BITS);
        self.out.put_slice(&bytes);
        self
    }
}
