//! Binary tuples: a byte that says how wide offsets are, the end of each value as an offset, then the
//! values. A null takes no bytes, so an empty string or array is told from it by a mark.
//!
//! Numbers have their lowest byte first and are as short as they can be.

mod read;
mod write;

pub(crate) use read::Tuple;
pub(crate) use write::Builder;

/// Before an empty value, and before one that begins with this very byte.
const EMPTY_MARK: u8 = 0x80;
const WIDTH_MASK: u8 = 0b11;

#[cfg(test)]
mod tests;
