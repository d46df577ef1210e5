//! Durations in Go's notation, as etcd's flags take them: `1h30m`, `1.5s`, `300ms`, `0`.

use std::time::Duration;

const NANOS_PER_SECOND: f64 = 1e9;

/// Longest first, so that `ms` is not read as minutes.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3), // U+00B5
    ("μs", 1e3), // U+03BC
    ("ms", 1e6),
    ("s", NANOS_PER_SECOND),
    ("m", 60.0 * NANOS_PER_SECOND),
    ("h", 3600.0 * NANOS_PER_SECOND),
];

/// The duration `text` stands for, if it is one that is not negative.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (part, remainder) = take_part(rest)?;
        total = total.checked_add(part)?;
        rest = remainder;
    }
    Some(total)
}

/// Reads one number and its unit off the front.
fn take_part(text: &str) -> Option<(Duration, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(number_end);
    let (unit, nanos) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
    let value: f64 = number.parse().ok()?;
    let part = Duration::try_from_secs_f64(value * nanos / NANOS_PER_SECOND).ok()?;
    Some((part, &rest[unit.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        for (text, expected) in [
            ("0", Some(Duration::ZERO)),
            ("0s", Some(Duration::ZERO)),
            ("10m", Some(Duration::from_secs(600))),
            ("1h30m", Some(Duration::from_secs(5400))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("300ms", Some(Duration::from_millis(300))),
            ("7us", Some(Duration::from_micros(7))),
            ("+1s", Some(Duration::from_secs(1))),
            ("", None),
            ("+", None),
            ("10", None),
            ("-1s", None),
            ("1d", None),
            ("s", None),
            ("1.2.3s", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
