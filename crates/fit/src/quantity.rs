//! Kubernetes' quantities, `1500m` or `2Gi`: exact while they are added up, rounded up once when they
//! are compared, as the scheduler does.

use std::ops::Add;

use thiserror::Error;

const NANOS: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// An exponent beyond this says more than any quantity can hold.
const EXPONENT_MAX: u32 = 18;

/// A decimal number, kept in billionths; what is finer is rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    #[error("`{0}` is no number with a known suffix")]
    Format(String),
    #[error("`{0}` is out of range")]
    Range(String),
}

/// What a suffix multiplies by.
struct Scale {
    multiply: i128,
    divide: i128,
}

// === impl Quantity ===

impl Quantity {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let format = || Error::Format(text.to_owned());
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'));
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let scale = Scale::of(suffix).ok_or_else(format)?;
        let (is_negative, digits) = match number.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return Err(format());
        }
        let nanos = scale.nanos(whole, fraction).ok_or_else(|| Error::Range(text.to_owned()))?;
        Ok(Self(if is_negative { -nanos } else { nanos }))
    }

    /// In whole units, rounded up.
    #[must_use]
    pub fn units(self) -> i64 {
        ceil(self.0, NANOS)
    }

    /// In thousandths, rounded up.
    #[must_use]
    pub fn millis(self) -> i64 {
        ceil(self.0, NANOS_PER_MILLI)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

// === impl Scale ===

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        let up = |multiply| Some(Self { multiply, divide: 1 });
        match suffix {
            "n" => Some(Self { multiply: 1, divide: NANOS }),
            "u" => Some(Self { multiply: 1, divide: 1_000_000 }),
            "m" => Some(Self { multiply: 1, divide: 1_000 }),
            "" => up(1),
            "k" => up(1_000),
            "M" => up(1_000_000),
            "G" => up(1_000_000_000),
            "T" => up(1_000_000_000_000),
            "P" => up(1_000_000_000_000_000),
            "E" => up(1_000_000_000_000_000_000),
            "Ki" => up(1 << 10),
            "Mi" => up(1 << 20),
            "Gi" => up(1 << 30),
            "Ti" => up(1 << 40),
            "Pi" => up(1 << 50),
            "Ei" => up(1 << 60),
            exponent => Self::of_exponent(exponent),
        }
    }

    fn of_exponent(suffix: &str) -> Option<Self> {
        let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        let power =
            10_i128.pow(Some(exponent.unsigned_abs()).filter(|each| *each <= EXPONENT_MAX)?);
        let (multiply, divide) = if exponent < 0 { (1, power) } else { (power, 1) };
        Some(Self { multiply, divide })
    }

    fn nanos(&self, whole: &str, fraction: &str) -> Option<i128> {
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let places = u32::try_from(fraction.len()).ok()?;
        let divide = 10_i128.checked_pow(places)?.checked_mul(self.divide)?;
        let multiplied = digits.checked_mul(self.multiply)?.checked_mul(NANOS)?;
        Some(div_ceil(multiplied, divide))
    }
}

fn ceil(nanos: i128, unit: i128) -> i64 {
    let rounded = div_ceil(nanos, unit);
    i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
}

fn div_ceil(number: i128, by: i128) -> i128 {
    number.div_euclid(by) + i128::from(number.rem_euclid(by) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suffix_is_known_and_rounding_goes_up() {
        let table = [
            ("0", 0, 0),
            ("1", 1, 1_000),
            ("100m", 1, 100),
            ("1500m", 2, 1_500),
            ("0.5", 1, 500),
            (".5", 1, 500),
            ("1.", 1, 1_000),
            ("1n", 1, 1),
            ("999u", 1, 1),
            ("2k", 2_000, 2_000_000),
            ("1.5G", 1_500_000_000, 1_500_000_000_000),
            ("1Ki", 1_024, 1_024_000),
            ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
            ("12e6", 12_000_000, 12_000_000_000),
            ("1E3", 1_000, 1_000_000),
            ("5e-1", 1, 500),
            ("1E", 1_000_000_000_000_000_000, i64::MAX),
            ("8Ei", i64::MAX, i64::MAX),
            ("-1500m", -1, -1_500),
            ("+2", 2, 2_000),
        ];
        for (text, units, millis) in table {
            let quantity = Quantity::parse(text).unwrap();
            assert_eq!((quantity.units(), quantity.millis()), (units, millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_told() {
        for text in ["", "m", "1x", "1.2.3", "1 Gi", "--1", "1e", "1e99", "Ki", "."] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
        let long = "9".repeat(60);
        assert_eq!(Quantity::parse(&long), Err(Error::Range(long.clone())));
    }

    #[test]
    fn sums_are_exact_before_they_are_rounded() {
        let half = Quantity::parse("0.5").unwrap();
        assert_eq!((half + half).units(), 1);
    }
}
