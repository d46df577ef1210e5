//! What stands in a column.

use bytes::Bytes;
use uuid::Uuid;

/// One value of a row, or one argument of a statement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    Null,
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Decimal(Decimal),
    Date(Date),
    Time(Time),
    DateTime(Date, Time),
    Timestamp(Seconds),
    Uuid(Uuid),
    String(String),
    Bytes(Bytes),
    Period(Period),
    Duration(Seconds),
}

/// The type of a column, with Ignite's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    Null = 0,
    Bool = 1,
    I8 = 2,
    I16 = 3,
    I32 = 4,
    I64 = 5,
    F32 = 6,
    F64 = 7,
    Decimal = 8,
    Date = 9,
    Time = 10,
    DateTime = 11,
    Timestamp = 12,
    Uuid = 13,
    String = 15,
    Bytes = 16,
    Period = 17,
    Duration = 18,
}

/// `unscaled` divided by ten to the power of `scale`. Ignite's own go further; what does not fit
/// is an error, never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub unscaled: i128,
    pub scale: i16,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: i32,
    pub month: u8,
    pub day: u8,
}

/// A time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub nanos: u32,
}

/// Seconds, since 1970 for a timestamp, and nanoseconds above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds {
    pub seconds: i64,
    pub nanos: i32,
}

/// A span by the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub years: i32,
    pub months: i32,
    pub days: i32,
}

const COLUMN_TYPES: [ColumnType; 18] = [
    ColumnType::Null,
    ColumnType::Bool,
    ColumnType::I8,
    ColumnType::I16,
    ColumnType::I32,
    ColumnType::I64,
    ColumnType::F32,
    ColumnType::F64,
    ColumnType::Decimal,
    ColumnType::Date,
    ColumnType::Time,
    ColumnType::DateTime,
    ColumnType::Timestamp,
    ColumnType::Uuid,
    ColumnType::String,
    ColumnType::Bytes,
    ColumnType::Period,
    ColumnType::Duration,
];

// === impl Value ===

impl Value {
    #[must_use]
    pub fn column_type(&self) -> ColumnType {
        match self {
            Self::Null => ColumnType::Null,
            Self::Bool(_) => ColumnType::Bool,
            Self::I8(_) => ColumnType::I8,
            Self::I16(_) => ColumnType::I16,
            Self::I32(_) => ColumnType::I32,
            Self::I64(_) => ColumnType::I64,
            Self::F32(_) => ColumnType::F32,
            Self::F64(_) => ColumnType::F64,
            Self::Decimal(_) => ColumnType::Decimal,
            Self::Date(_) => ColumnType::Date,
            Self::Time(_) => ColumnType::Time,
            Self::DateTime(..) => ColumnType::DateTime,
            Self::Timestamp(_) => ColumnType::Timestamp,
            Self::Uuid(_) => ColumnType::Uuid,
            Self::String(_) => ColumnType::String,
            Self::Bytes(_) => ColumnType::Bytes,
            Self::Period(_) => ColumnType::Period,
            Self::Duration(_) => ColumnType::Duration,
        }
    }

    /// The number, if it is a whole one of any width.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::I8(number) => Some(i64::from(*number)),
            Self::I16(number) => Some(i64::from(*number)),
            Self::I32(number) => Some(i64::from(*number)),
            Self::I64(number) => Some(*number),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_bytes(&self) -> Option<&Bytes> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Bytes> for Value {
    fn from(value: Bytes) -> Self {
        Self::Bytes(value)
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(value))
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

// === impl ColumnType ===

impl ColumnType {
    pub(crate) fn from_id(id: i32) -> Option<Self> {
        COLUMN_TYPES.into_iter().find(|each| *each as i32 == id)
    }
}
