//! Amounts as people write them: bytes with a unit, processors with a fraction.

/// Longest first, so that `MiB` is not read as bytes.
const UNITS: [(&str, u64); 13] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

const MILLIS_PER_CPU: f64 = 1000.0;

/// Bytes: `64MiB`, `1.5GiB`, `500MB`, `1024`.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let refused = || "write `64MiB`, `1.5GiB` or a number of bytes".to_owned();
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, factor) = unit
        .map_or((text, 1), |(unit, factor)| (text[..text.len() - unit.len()].trim_end(), *factor));
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(refused);
    }
    scaled(number, factor).ok_or_else(refused)
}

/// Thousandths of a processor: `0.5`, `2`, `500m`.
pub(crate) fn parse_cpus(text: &str) -> Result<u64, String> {
    let refused = || "write `0.5`, `2` or `500m`".to_owned();
    match text.strip_suffix('m') {
        Some(millis) => millis.parse().or(Err(refused())),
        None => scaled(text, MILLIS_PER_CPU as u64).ok_or_else(refused),
    }
}

/// For people: the largest unit in which it is at least one.
pub(crate) fn show(bytes: u64) -> String {
    let units = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) if bytes.is_multiple_of(*factor) => {
            format!("{}{unit}", bytes / factor)
        }
        Some((unit, factor)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*factor);
            format!("{}.{}{unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes}B"),
    }
}

/// Processors, from thousandths.
pub(crate) fn show_cpus(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A decimal fraction of so many; not below nothing, and not more than can be counted.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked: not negative, and below 2^53"
)]
fn scaled(number: &str, factor: u64) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_decimal = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = number.parse::<f64>().ok().filter(|_| is_decimal)? * factor as f64;
    (0.0..EXACT_MAX).contains(&value).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("64MiB", Some(64 << 20)),
            ("64 MiB", Some(64 << 20)),
            ("1.5GiB", Some(3 << 29)),
            ("500MB", Some(500_000_000)),
            ("8Gi", Some(8 << 30)),
            ("1024", Some(1024)),
            ("7B", Some(7)),
            ("0", Some(0)),
            ("", None),
            ("MiB", None),
            ("-1MiB", None),
            ("64m", None),
            ("1e3", None),
            ("inf", None),
            ("99999999999999TiB", None),
        ] {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn processors_are_read() {
        for (text, expected) in [
            ("0.5", Some(500)),
            ("2", Some(2000)),
            ("500m", Some(500)),
            ("0.0004", Some(0)),
            ("m", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(parse_cpus(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_in_their_unit() {
        for (bytes, expected) in [
            (0, "0B"),
            (1023, "1023B"),
            (64 << 20, "64MiB"),
            (3 << 29, "1.5GiB"),
            ((1 << 30) + 1, "1.0GiB"),
            (u64::MAX, "16777215.9TiB"),
        ] {
            assert_eq!(show(bytes), expected);
        }
        assert_eq!([100, 500, 2000, 1250].map(show_cpus), ["0.1", "0.5", "2", "1.25"]);
    }
}
