//! Durations as people type them.

use std::time::Duration;

use crate::config::duration;

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// As everywhere (`1h30m`), or in whole days (`30d`).
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    days.and_then(|days| days.checked_mul(SECONDS_PER_DAY))
        .map(Duration::from_secs)
        .or_else(|| duration::parse(text))
        .ok_or_else(|| "write `30d`, `10m` or `1m30s`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_durations_too() {
        assert_eq!(parse("30d"), Ok(Duration::from_secs(30 * SECONDS_PER_DAY)));
        assert_eq!(parse("10m"), Ok(Duration::from_secs(600)));
        assert!(parse("1.5d").is_err());
        assert!(parse("99999999999999999d").is_err());
        assert!(parse("soon").is_err());
    }
}
