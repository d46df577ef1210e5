//! Resource versions: the order of everything that happens to one kind of object.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What is left of a ConfigMap's name of 253 characters after 64 of hash and a dot.
pub const RV_DIGITS_MAX: usize = 188;

/// A number of 1 to 188 digits without leading zero, ordered by value.
///
/// Kept as text and never parsed to an integer: it may exceed every integer type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceVersion(String);

/// Why a text is no resource version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RvError {
    #[error("the resource version is empty")]
    Empty,
    #[error("the resource version {0:?} is not a number")]
    NotDigits(String),
    #[error("the resource version {0:?} starts with a zero")]
    LeadingZero(String),
    #[error("the resource version has {0} digits, more than {RV_DIGITS_MAX}")]
    TooLong(usize),
}

// === impl ResourceVersion ===

impl ResourceVersion {
    /// The place of a version that nobody wrote down: below all that the API server gives out.
    #[must_use]
    pub fn lowest() -> Self {
        Self("1".to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The next number; none after the longest.
    #[must_use]
    pub fn successor(&self) -> Option<Self> {
        let kept = self.0.trim_end_matches('9');
        let zeros = "0".repeat(self.0.len() - kept.len());
        let text = match kept.split_at_checked(kept.len().wrapping_sub(1)) {
            None => format!("1{zeros}"),
            Some((head, last)) => {
                let last = char::from(last.as_bytes()[0] + 1);
                format!("{head}{last}{zeros}")
            }
        };
        text.parse().ok()
    }
}

impl Ord for ResourceVersion {
    /// Without leading zeros the longer number is the greater one.
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for ResourceVersion {
    type Err = RvError;

    fn from_str(text: &str) -> Result<Self, RvError> {
        match text.as_bytes() {
            [] => Err(RvError::Empty),
            digits if !digits.iter().all(u8::is_ascii_digit) => {
                Err(RvError::NotDigits(text.to_owned()))
            }
            [b'0', ..] => Err(RvError::LeadingZero(text.to_owned())),
            digits if digits.len() > RV_DIGITS_MAX => Err(RvError::TooLong(digits.len())),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ResourceVersion {
    type Error = RvError;

    fn try_from(text: String) -> Result<Self, RvError> {
        text.parse()
    }
}

impl From<ResourceVersion> for String {
    fn from(rv: ResourceVersion) -> Self {
        rv.0
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rv(text: &str) -> ResourceVersion {
        text.parse().unwrap()
    }

    #[test]
    fn reg02_rv_9_before_10() {
        assert!(rv("9") < rv("10"));
        assert!(rv("99") < rv("100"));
        assert!(rv("10") < rv("11"));
        assert_eq!(rv("10").cmp(&rv("10")), Ordering::Equal);
    }

    #[test]
    fn rv_of_188_digits_is_above_every_integer() {
        let longest = rv(&"9".repeat(RV_DIGITS_MAX));
        assert!(longest > rv(&u64::MAX.to_string()));
        assert!(longest > rv(&format!("1{}", "0".repeat(RV_DIGITS_MAX - 1))));
    }

    #[test]
    fn the_successor_is_one_more() {
        for (of, is) in [("1", "2"), ("8", "9"), ("9", "10"), ("129", "130"), ("1999", "2000")] {
            assert_eq!(rv(of).successor(), Some(rv(is)), "{of}");
        }
        assert_eq!(rv(&"9".repeat(RV_DIGITS_MAX)).successor(), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let error = |text: &str| text.parse::<ResourceVersion>().unwrap_err();
        assert_eq!(error(""), RvError::Empty);
        assert_eq!(error("12a"), RvError::NotDigits("12a".to_owned()));
        assert_eq!(error("-1"), RvError::NotDigits("-1".to_owned()));
        assert_eq!(error("٣"), RvError::NotDigits("٣".to_owned()));
        assert_eq!(error("0"), RvError::LeadingZero("0".to_owned()));
        assert_eq!(error("012"), RvError::LeadingZero("012".to_owned()));
        assert_eq!(error(&"1".repeat(189)), RvError::TooLong(189));
    }
}
