//! How large segments are. Pure.
//!
//! Space in the segment that is being written cannot be given back until it is full, and room for
//! the next one is written twice: as zeros, then as frames. Both are a matter of proportion, so a
//! small journal has small segments.

/// The size of segments as long as the journal is small. Rotating takes a few syncs, so it should
/// not come more often than a few times a second under the heaviest load.
const SMALL_SEGMENT_BYTES: u64 = 8 << 20;
/// Later ones take this part of the journal,
const SEGMENT_PART: u64 = 8;
/// and a file for reuse may be smaller than the next segment should be by this factor, so that a
/// journal whose size swings does not throw files away and make new ones all the time.
const SMALLER_BY_MAX: u64 = 2;

/// The bounds of a segment's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    smallest: u64,
    largest: u64,
}

// === impl Sizes ===

impl Sizes {
    pub(super) fn up_to(largest: u64) -> Self {
        Self { smallest: SMALL_SEGMENT_BYTES.min(largest), largest }
    }

    /// Also the size of a segment that had to begin before there was room for it: it grows as it is
    /// written, which makes its syncs slower, and by its end a spare should be ready.
    pub(super) fn smallest(self) -> u64 {
        self.smallest
    }

    /// The size of the next segment of a journal that takes `total_bytes`. Powers of two, so that
    /// the files of a journal that keeps its size can be used again.
    pub(super) fn next(self, total_bytes: u64) -> u64 {
        let part = (total_bytes / SEGMENT_PART).max(1);
        (1 << part.ilog2()).clamp(self.smallest, self.largest)
    }

    /// `bytes` as the size of a segment; only one that holds a huge batch is larger.
    pub(super) fn bounded(self, bytes: u64) -> u64 {
        bytes.clamp(self.smallest, self.largest)
    }

    /// Whether a file of `file_bytes` can be the next segment of a journal that takes `total_bytes`.
    pub(super) fn is_fit(self, file_bytes: u64, total_bytes: u64) -> bool {
        (self.next(total_bytes) / SMALLER_BY_MAX..=self.largest).contains(&file_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SIZES: Sizes = Sizes { smallest: 8 * MIB, largest: 64 * MIB };

    #[test]
    fn segments_grow_with_the_journal() {
        let next = |total_mib: u64| SIZES.next(total_mib * MIB) / MIB;
        assert_eq!([0, 1, 64, 127, 128, 511, 512].map(next), [8, 8, 8, 8, 16, 32, 64]);
        assert_eq!(next(100_000), 64);
    }

    #[test]
    fn a_file_is_used_again_unless_it_is_far_too_small_or_too_large() {
        let is_fit = |file_mib: u64, total_mib: u64| SIZES.is_fit(file_mib * MIB, total_mib * MIB);
        assert!(is_fit(4, 0) && is_fit(64, 0) && is_fit(32, 600));
        assert!(!is_fit(3, 0) && !is_fit(65, 0) && !is_fit(31, 600));
    }

    #[test]
    fn a_bound_below_the_small_size_is_the_size() {
        let sizes = Sizes::up_to(16 << 10);
        assert_eq!((sizes.smallest(), sizes.next(1 << 30)), (16 << 10, 16 << 10));
        assert!(sizes.is_fit(16 << 10, 0) && !sizes.is_fit(17 << 10, 0));
    }
}
