//! Writes a tuple value by value.

use bytes::{BufMut, Bytes, BytesMut};

use super::EMPTY_MARK;
use crate::value::{Date, Decimal, Period, Seconds, Time, Value};

/// Gathers values; offsets are as wide as the whole needs, which is known at the end.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    ends: Vec<usize>,
    values: BytesMut,
}

// === impl Builder ===

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn finish(self) -> Bytes {
        let width_code: u8 = match self.values.len() {
            0..=0xff => 0,
            0x100..=0xffff => 1,
            _ => 2,
        };
        let width = 1_usize << width_code;
        let mut out = BytesMut::with_capacity(1 + self.ends.len() * width + self.values.len());
        out.put_u8(width_code);
        for end in self.ends {
            out.put_uint_le(end as u64, width);
        }
        out.put_slice(&self.values);
        out.freeze()
    }

    pub(crate) fn null(&mut self) {
        self.ends.push(self.values.len());
    }

    /// An argument brings its type along: type, scale, value.
    pub(crate) fn argument(&mut self, value: &Value) {
        if *value == Value::Null {
            self.null();
            self.null();
        } else {
            let scale = if let Value::Decimal(decimal) = value { decimal.scale } else { 0 };
            self.value(&Value::I32(value.column_type() as i32));
            self.value(&Value::I32(i32::from(scale)));
        }
        self.value(value);
    }

    pub(crate) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(value) => self.values.put_u8(u8::from(*value)),
            Value::I8(value) => self.values.put_i8(*value),
            Value::I16(value) => self.number(i64::from(*value)),
            Value::I32(value) => self.number(i64::from(*value)),
            Value::I64(value) => self.number(*value),
            Value::F32(value) => self.values.put_f32_le(*value),
            Value::F64(value) => self.float(*value),
            Value::Decimal(value) => self.decimal(*value),
            Value::Date(value) => self.date(*value),
            Value::Time(value) => self.time(*value),
            Value::DateTime(date, time) => {
                self.date(*date);
                self.time(*time);
            }
            Value::Timestamp(value) | Value::Duration(value) => self.seconds(*value),
            Value::Uuid(value) => {
                let (high, low) = value.as_u64_pair();
                self.values.put_u64_le(high);
                self.values.put_u64_le(low);
            }
            Value::String(value) => self.marked(value.as_bytes()),
            Value::Bytes(value) => self.marked(value),
            Value::Period(value) => self.period(*value),
        }
        self.null();
    }

    fn number(&mut self, value: i64) {
        if let Ok(value) = i8::try_from(value) {
            self.values.put_i8(value);
        } else if let Ok(value) = i16::try_from(value) {
            self.values.put_i16_le(value);
        } else if let Ok(value) = i32::try_from(value) {
            self.values.put_i32_le(value);
        } else {
            self.values.put_i64_le(value);
        }
    }

    /// Four bytes where they say the same as eight.
    fn float(&mut self, value: f64) {
        let short = value as f32;
        if f64::from(short) == value {
            self.values.put_f32_le(short);
        } else {
            self.values.put_f64_le(value);
        }
    }

    fn marked(&mut self, bytes: &[u8]) {
        if bytes.first().is_none_or(|first| *first == EMPTY_MARK) {
            self.values.put_u8(EMPTY_MARK);
        }
        self.values.put_slice(bytes);
    }

    /// The scale, then the digits with their highest byte first, both without what is superfluous.
    fn decimal(&mut self, Decimal { mut unscaled, mut scale }: Decimal) {
        if unscaled == 0 {
            scale = 0;
        }
        while unscaled != 0 && unscaled % 10 == 0 && scale > i16::MIN {
            unscaled /= 10;
            scale -= 1;
        }
        self.values.put_i16_le(scale);
        let bytes = unscaled.to_be_bytes();
        let sign = if unscaled < 0 { 0xff } else { 0 };
        let is_superfluous = |pair: &[u8]| pair[0] == sign && (pair[1] & 0x80) == (sign & 0x80);
        let skipped = bytes.windows(2).take_while(|pair| is_superfluous(pair)).count();
        self.values.put_slice(&bytes[skipped..]);
    }

    fn date(&mut self, Date { year, month, day }: Date) {
        let date = (year << 9) | (i32::from(month) << 5) | i32::from(day);
        self.values.put_int_le(i64::from(date), 3);
    }

    /// As fine as it has to be: milliseconds, microseconds or nanoseconds.
    fn time(&mut self, Time { hour, minute, second, nanos }: Time) {
        let (bits, fraction, bytes) = match nanos {
            _ if nanos % 1_000 != 0 => (30, nanos, 6),
            _ if nanos % 1_000_000 != 0 => (20, nanos / 1_000, 5),
            _ => (10, nanos / 1_000_000, 4),
        };
        let clock = (u64::from(hour) << 12) | (u64::from(minute) << 6) | u64::from(second);
        self.values.put_uint_le((clock << bits) | u64::from(fraction), bytes);
    }

    fn seconds(&mut self, Seconds { seconds, nanos }: Seconds) {
        self.values.put_i64_le(seconds);
        if nanos != 0 {
            self.values.put_i32_le(nanos);
        }
    }

    fn period(&mut self, Period { years, months, days }: Period) {
        let parts = [years, months, days];
        let width = if parts.iter().all(|part| i8::try_from(*part).is_ok()) {
            1
        } else if parts.iter().all(|part| i16::try_from(*part).is_ok()) {
            2
        } else {
            4
        };
        for part in parts {
            self.values.put_int_le(i64::from(part), width);
        }
    }
}
