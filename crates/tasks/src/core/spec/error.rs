//! Why a spec is refused.

/// A refused spec. Its text names the field, since the one who reads it wrote the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// As in the message, with the part of a map or list that is meant.
    pub field: String,
    pub problem: Problem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not a spec: {0}")]
    Unreadable(prost::DecodeError),
    #[error("must not be empty")]
    Empty,
    #[error("has {bytes} bytes; at most {max} are allowed")]
    TooLong { bytes: usize, max: usize },
    #[error("has {count} entries; at most {max} are allowed")]
    TooMany { count: usize, max: usize },
    #[error("is {value}; at least {min} is needed")]
    TooSmall { value: u64, min: u64 },
    #[error("is {value}; at most {max} is allowed")]
    TooLarge { value: u64, max: u64 },
    #[error("is {0}, not between -100 and 100")]
    Priority(i32),
    #[error("has a zero byte")]
    ZeroByte,
    #[error("{0:?} has `=` in its name")]
    EqualsSign(String),
    #[error("{0:?} is not an absolute path in its shortest form")]
    NotNormalised(String),
    #[error("{0:?} is not a number, or two joined by `:`")]
    NotNumeric(String),
    #[error("{0:?} has characters other than letters, digits, `.`, `_` and `-`")]
    NotAName(String),
    #[error("{0} is unknown")]
    Unknown(i32),
}

// === impl SpecError ===

impl SpecError {
    pub(super) fn new(field: impl Into<String>, problem: Problem) -> Self {
        Self { field: field.into(), problem }
    }

    pub(super) fn unreadable(error: prost::DecodeError) -> Self {
        Self::new("spec", Problem::Unreadable(error))
    }
}
