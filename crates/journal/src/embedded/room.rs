//! How much of what the medium has left upkeep may take. Pure.
//!
//! A write that finds no room stops the journal, and only upkeep can give room back. So upkeep never
//! takes the last of it: half is left when space is given back, and what merely makes things faster
//! is left undone long before that.

/// A rewrite takes this part of what is free, at most. Its sources take more than the copy, so each
/// rewrite leaves more than there was.
const COPY_PART: u64 = 2;
/// Spares and indexes leave this many segments' worth: what a rewrite of any segment needs, and as
/// much for writes meanwhile.
const AMPLE_SEGMENTS: u64 = 4;

/// What is free, and the size of the largest segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    available_bytes: u64,
    segment_bytes: u64,
}

// === impl Room ===

impl Room {
    pub(super) fn new(available_bytes: u64, segment_bytes: u64) -> Self {
        Self { available_bytes, segment_bytes }
    }

    pub(super) fn available_bytes(self) -> u64 {
        self.available_bytes
    }

    /// With this much free, any segment can be rewritten.
    pub(super) fn upkeep_bytes(self) -> u64 {
        self.segment_bytes * COPY_PART
    }

    /// What one rewrite may take.
    pub(super) fn copy_bytes(self) -> u64 {
        self.available_bytes / COPY_PART
    }

    /// Whether `bytes` may be taken for what the journal can do without.
    pub(super) fn is_ample_beside(self, bytes: u64) -> bool {
        self.available_bytes >= (self.segment_bytes * AMPLE_SEGMENTS).saturating_add(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spare_leaves_is_enough_for_a_rewrite() {
        let segment_bytes = 64;
        let at_least = (0..1000)
            .map(|available| Room::new(available, segment_bytes))
            .find(|room| room.is_ample_beside(segment_bytes))
            .expect("some room is ample");
        let left = Room::new(at_least.available_bytes - segment_bytes, segment_bytes);
        assert!(left.available_bytes > left.upkeep_bytes());
        assert!(Room::new(left.upkeep_bytes(), segment_bytes).copy_bytes() >= segment_bytes);
    }
}
