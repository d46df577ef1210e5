//! How long something takes: always the same, or somewhere between two times.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, de};

/// Written as `20s` or `20s..40s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: Duration,
    to: Duration,
}

// === impl Span ===

impl Span {
    #[must_use]
    pub const fn always(span: Duration) -> Self {
        Self { from: span, to: span }
    }

    /// Where `drawn`, which may be any number, falls into it.
    #[must_use]
    pub fn pick(self, drawn: u64) -> Duration {
        let width = u64::try_from((self.to - self.from).as_nanos()).unwrap_or(u64::MAX);
        self.from + Duration::from_nanos(drawn % width.saturating_add(1).max(1))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (parse_duration(from)?, parse_duration(to)?);
        if from > to {
            return Err(format!("`{text}` ends before it begins"));
        }
        Ok(Self { from, to })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.trim().parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(span).map_err(|_negative| format!("`{text}` is less than nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_one_time_or_two() {
        let second = Duration::from_secs(1);
        assert_eq!(Span::parse("1s"), Ok(Span::always(second)));
        assert_eq!(Span::parse("1s..2s"), Ok(Span { from: second, to: 2 * second }));
        assert!(Span::parse("2s..1s").is_err());
        assert!(Span::parse("soon").is_err());
        assert!(Span::parse("-1s").is_err());
    }

    #[test]
    fn whatever_is_drawn_lies_between() {
        let span = Span::parse("1s..2s").unwrap();
        for drawn in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, u64::MAX] {
            let picked = span.pick(drawn);
            assert!((span.from..=span.to).contains(&picked), "{drawn}: {picked:?}");
        }
        assert_eq!(Span::always(span.to).pick(u64::MAX), span.to);
    }
}
