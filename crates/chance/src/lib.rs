//! Chance that can be repeated, for simulations and random stories: SplitMix64. A seed tells all that
//! follows; nothing of the machine or the moment comes in.

use std::ops::Range;
use std::time::Duration;

/// See the crate.
#[derive(Clone, Debug)]
pub struct Chance(u64);

// === impl Chance ===

impl Chance {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`.
    ///
    /// # Panics
    ///
    /// If nothing is less.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a length is no more than 64 bits");
        usize::try_from(self.number() % bound).expect("it is less than a length")
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// # Panics
    ///
    /// If there is none.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A time within the range, in microseconds.
    pub fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.within(range))
    }

    /// A time within the range, in milliseconds.
    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.number() % (range.end - range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_tells_all_that_follows() {
        let drawn = |seed| {
            let mut chance = Chance::new(seed);
            [chance.number(), chance.number(), chance.number()]
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut chance = Chance::new(1);
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| chance.below(5)).collect();
        assert_eq!(drawn, (0..5).collect());
        let times = (0..200).map(|_| chance.millis(3..6).as_millis());
        assert!(times.into_iter().all(|time| (3..6).contains(&time)));
    }
}
