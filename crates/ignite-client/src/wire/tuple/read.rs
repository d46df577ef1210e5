//! Reads a tuple by the types of its columns.

use bytes::{Buf, Bytes};
use uuid::Uuid;

use super::{EMPTY_MARK, WIDTH_MASK};
use crate::value::{ColumnType, Date, Decimal, Period, Seconds, Time, Value};
use crate::wire::DecodeError;

/// A tuple of a known number of values.
#[derive(Clone, Debug)]
pub(crate) struct Tuple {
    bytes: Bytes,
    width: usize,
    values_at: usize,
}

// === impl Tuple ===

impl Tuple {
    pub(crate) fn new(bytes: Bytes, count: usize) -> Result<Self, DecodeError> {
        let first = bytes.first().ok_or(DecodeError::Short { what: "a row" })?;
        let width = 1 << (first & WIDTH_MASK);
        let values_at = 1 + width * count;
        if bytes.len() < values_at {
            return Err(DecodeError::Short { what: "the offsets of a row" });
        }
        Ok(Self { bytes, width, values_at })
    }

    fn end(&self, index: usize) -> usize {
        let mut entry = &self.bytes[1 + index * self.width..][..self.width];
        entry.get_uint_le(self.width) as usize
    }

    /// The bytes of one value; none for a null.
    fn raw(&self, index: usize) -> Result<Bytes, DecodeError> {
        let begin = if index == 0 { 0 } else { self.end(index - 1) };
        let end = self.end(index);
        if end < begin {
            return Err(DecodeError::Offsets);
        }
        if self.bytes.len() - self.values_at < end {
            return Err(DecodeError::Short { what: "the values of a row" });
        }
        Ok(self.bytes.slice(self.values_at + begin..self.values_at + end))
    }

    pub(crate) fn value(&self, index: usize, kind: ColumnType) -> Result<Value, DecodeError> {
        let bytes = self.raw(index)?;
        if bytes.is_empty() { Ok(Value::Null) } else { value(bytes, kind) }
    }
}

fn value(bytes: Bytes, kind: ColumnType) -> Result<Value, DecodeError> {
    Ok(match kind {
        ColumnType::Null => Value::Null,
        ColumnType::Bool => Value::Bool(narrow::<i8>(&bytes, "a boolean")? != 0),
        ColumnType::I8 => Value::I8(narrow(&bytes, "a number of one byte")?),
        ColumnType::I16 => Value::I16(narrow(&bytes, "a number of two bytes")?),
        ColumnType::I32 => Value::I32(narrow(&bytes, "a number of four bytes")?),
        ColumnType::I64 => Value::I64(number(&bytes, "a number of eight bytes")?),
        ColumnType::F32 => Value::F32(f32::from_le_bytes(exact(&bytes, "a float")?)),
        ColumnType::F64 => Value::F64(double(&bytes)?),
        ColumnType::Decimal => Value::Decimal(decimal(&bytes)?),
        ColumnType::Date => Value::Date(date(exact(&bytes, "a date")?)),
        ColumnType::Time => Value::Time(time(&bytes)?),
        ColumnType::DateTime => {
            let (day, clock) = bytes
                .split_first_chunk::<3>()
                .ok_or(DecodeError::Width { what: "a date and time", bytes: bytes.len() })?;
            Value::DateTime(date(*day), time(clock)?)
        }
        ColumnType::Timestamp => Value::Timestamp(seconds(&bytes, "a timestamp")?),
        ColumnType::Duration => Value::Duration(seconds(&bytes, "a duration")?),
        ColumnType::Uuid => {
            let mut both = &exact::<16>(&bytes, "a UUID")?[..];
            Value::Uuid(Uuid::from_u64_pair(both.get_u64_le(), both.get_u64_le()))
        }
        ColumnType::String => {
            let text = String::from_utf8(unmarked(bytes).to_vec());
            Value::String(text.map_err(|_bytes| DecodeError::NotUtf8)?)
        }
        ColumnType::Bytes => Value::Bytes(unmarked(bytes)),
        ColumnType::Period => Value::Period(period(&bytes)?),
    })
}

fn exact<const LEN: usize>(bytes: &[u8], what: &'static str) -> Result<[u8; LEN], DecodeError> {
    bytes.try_into().map_err(|_len| DecodeError::Width { what, bytes: bytes.len() })
}

fn number(mut bytes: &[u8], what: &'static str) -> Result<i64, DecodeError> {
    match bytes.len() {
        width @ (1 | 2 | 4 | 8) => Ok(bytes.get_int_le(width)),
        width => Err(DecodeError::Width { what, bytes: width }),
    }
}

fn narrow<T: TryFrom<i64>>(bytes: &[u8], what: &'static str) -> Result<T, DecodeError> {
    T::try_from(number(bytes, what)?).map_err(|_outside| DecodeError::Range { what })
}

fn double(bytes: &[u8]) -> Result<f64, DecodeError> {
    if bytes.len() == 4 {
        return Ok(f64::from(f32::from_le_bytes(exact(bytes, "a float")?)));
    }
    Ok(f64::from_le_bytes(exact(bytes, "a double")?))
}

fn decimal(bytes: &[u8]) -> Result<Decimal, DecodeError> {
    let width = DecodeError::Width { what: "a decimal", bytes: bytes.len() };
    let Some((scale, digits)) = bytes.split_first_chunk::<2>() else { return Err(width) };
    let Some(first) = digits.first() else { return Err(width) };
    if digits.len() > size_of::<i128>() {
        return Err(width);
    }
    let sign = if first & 0x80 != 0 { -1 } else { 0 };
    let unscaled = digits.iter().fold(sign, |sum: i128, byte| (sum << 8) | i128::from(*byte));
    Ok(Decimal { unscaled, scale: i16::from_le_bytes(*scale) })
}

fn date(bytes: [u8; 3]) -> Date {
    let date = (&bytes[..]).get_int_le(3) as i32;
    Date { year: date >> 9, month: (date >> 5 & 15) as u8, day: (date & 31) as u8 }
}

fn time(mut bytes: &[u8]) -> Result<Time, DecodeError> {
    let (bits, scale) = match bytes.len() {
        4 => (10, 1_000_000),
        5 => (20, 1_000),
        6 => (30, 1),
        width => return Err(DecodeError::Width { what: "a time", bytes: width }),
    };
    let time = bytes.get_uint_le(bytes.len());
    let nanos = (time & ((1 << bits) - 1)) as u32;
    let nanos = nanos.checked_mul(scale).ok_or(DecodeError::Range { what: "a time" })?;
    let clock = time >> bits;
    let part = |shift: u32, mask: u64| (clock >> shift & mask) as u8;
    Ok(Time { hour: part(12, 31), minute: part(6, 63), second: part(0, 63), nanos })
}

fn seconds(bytes: &[u8], what: &'static str) -> Result<Seconds, DecodeError> {
    let width = DecodeError::Width { what, bytes: bytes.len() };
    let Some((seconds, rest)) = bytes.split_first_chunk::<8>() else { return Err(width) };
    let nanos = match rest.len() {
        0 => 0,
        4 => i32::from_le_bytes(exact(rest, what)?),
        _ => return Err(width),
    };
    Ok(Seconds { seconds: i64::from_le_bytes(*seconds), nanos })
}

fn period(mut bytes: &[u8]) -> Result<Period, DecodeError> {
    let width = match bytes.len() {
        len @ (3 | 6 | 12) => len / 3,
        len => return Err(DecodeError::Width { what: "a period", bytes: len }),
    };
    let mut part = || bytes.get_int_le(width) as i32;
    Ok(Period { years: part(), months: part(), days: part() })
}

fn unmarked(mut bytes: Bytes) -> Bytes {
    if bytes.first() == Some(&EMPTY_MARK) {
        bytes.advance(1);
    }
    bytes
}
