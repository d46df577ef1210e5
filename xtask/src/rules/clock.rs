//! Absence 5: no core reads a clock or a random source.

use super::Finding;
use super::source::{Ban, Scope, SourceFile};

pub(super) const RULE: &str = "clock";

const CLOCK: &str = "take `now` as an argument; the shell owns the clock";
const RANDOM: &str = "take ids and randomness as arguments; the shell draws them";

const BAN: Ban = Ban {
    rule: RULE,
    scope: Scope::Product,
    names: &[
        ("SystemTime::now", CLOCK),
        ("Instant::now", CLOCK),
        ("Timestamp::now", CLOCK),
        ("Zoned::now", CLOCK),
        ("rand", RANDOM),
        ("getrandom", RANDOM),
        ("Uuid::new_v4", RANDOM),
        ("Uuid::now_v7", RANDOM),
        ("RandomState", "a random hasher makes order differ between runs; use a fixed one"),
    ],
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if file.is_core() { BAN.check(file) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&SourceFile::new(path, text)).len()
    }

    #[test]
    fn time_and_chance_are_arguments() {
        assert_eq!(count("crates/mvcc/src/a.rs", "let now = std::time::Instant::now();"), 1);
        assert_eq!(count("crates/fit/src/a.rs", "let x: u8 = rand::random();"), 1);
        assert_eq!(count("crates/mvcc/src/a.rs", "fn f(now: Instant, operand: u8) {}"), 0);
        assert_eq!(count("crates/store/src/a.rs", "let now = Instant::now();"), 0);
    }
}
