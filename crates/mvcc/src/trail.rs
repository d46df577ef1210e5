//! The older versions of one key, as places in the journal.
//!
//! A trail is immutable from outside: views of different revisions share its chunks. Chunk sizes
//! grow geometrically towards the past, so adding a version copies O(log n) places on average and
//! a lookup touches O(log n) chunks, even for a key that is written a million times between two
//! compactions.

use std::sync::Arc;

use crate::{Position, Revision};

/// Chunks below this size are extended by copying instead of opening a new one.
const TAIL_LEN: usize = 8;

/// One superseded version. Its content is read back from the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) position: Position,
    pub(crate) is_tombstone: bool,
}

/// Superseded versions in order, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    chunks: Vec<Arc<[Past]>>,
}

// === impl Trail ===

impl Trail {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The trail with one more version, newer than all it has.
    pub(crate) fn pushed(&self, past: Past) -> Self {
        debug_assert!(self.newest().is_none_or(|newest| newest.position < past.position));
        let mut chunks = self.chunks.clone();
        match chunks.last_mut() {
            Some(tail) if tail.len() < TAIL_LEN => *tail = join(tail, &[past]),
            _ => chunks.push(Arc::new([past])),
        }
        while let [.., left, right] = chunks.as_slice()
            && right.len() >= TAIL_LEN
            && left.len() <= right.len()
        {
            let joined = join(left, right);
            chunks.truncate(chunks.len() - 2);
            chunks.push(joined);
        }
        Self { chunks }
    }

    /// The newest version at or before `at`.
    pub(crate) fn at(&self, at: Revision) -> Option<Past> {
        let chunk = self.chunks.iter().rev().find(|chunk| chunk[0].position.revision <= at)?;
        let after = chunk.partition_point(|past| past.position.revision <= at);
        chunk.get(after.checked_sub(1)?).copied()
    }

    /// Splits into what a compaction keeps and what it drops. Of the versions at or before
    /// `compacted` only the newest stays, and not even that if it is a tombstone from before.
    pub(crate) fn split_at(&self, compacted: Revision) -> (Self, Vec<Past>) {
        let all: Vec<Past> = self.iter().collect();
        let after = all.partition_point(|past| past.position.revision <= compacted);
        let dropped = match after.checked_sub(1).map(|newest| all[newest]) {
            Some(past) if past.is_tombstone && past.position.revision < compacted => after,
            Some(_) => after - 1,
            None => 0,
        };
        let (gone, kept) = all.split_at(dropped);
        (kept.iter().copied().collect(), gone.to_vec())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Past> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied())
    }

    fn newest(&self) -> Option<Past> {
        self.chunks.last().and_then(|chunk| chunk.last().copied())
    }
}

impl FromIterator<Past> for Trail {
    fn from_iter<I: IntoIterator<Item = Past>>(pasts: I) -> Self {
        let chunk: Arc<[Past]> = pasts.into_iter().collect();
        Self { chunks: if chunk.is_empty() { Vec::new() } else { vec![chunk] } }
    }
}

fn join(left: &[Past], right: &[Past]) -> Arc<[Past]> {
    left.iter().chain(right).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(revision: i64) -> Past {
        Past { position: Position::first_of(Revision(revision)), is_tombstone: false }
    }

    /// A trail of the even revisions 2, 4, … 2n.
    fn evens(n: i64) -> Trail {
        (1..=n).fold(Trail::default(), |trail, i| trail.pushed(past(2 * i)))
    }

    #[test]
    fn finds_the_newest_at_or_before() {
        for n in [0, 1, 7, 8, 9, 100, 1000] {
            let trail = evens(n);
            for at in 0..=2 * n + 3 {
                let expected = (at.min(2 * n) / 2 * 2 >= 2).then(|| past(at.min(2 * n) / 2 * 2));
                assert_eq!(trail.at(Revision(at)), expected, "n {n}, at {at}");
            }
        }
    }

    #[test]
    fn chunks_stay_few() {
        assert!(evens(10_000).chunks.len() <= 14);
    }

    #[test]
    fn split_keeps_the_newest_at_or_before() {
        let (kept, gone) = evens(20).split_at(Revision(11));
        assert_eq!(kept.iter().next(), Some(past(10)));
        assert_eq!(gone, (1..=4).map(|i| past(2 * i)).collect::<Vec<_>>());
    }

    #[test]
    fn split_keeps_a_tombstone_only_at_its_own_revision() {
        let tombstone = Past { is_tombstone: true, ..past(4) };
        let trail = evens(1).pushed(tombstone).pushed(past(6));
        let oldest_at = |compacted| trail.split_at(Revision(compacted)).0.iter().next();
        assert_eq!(oldest_at(4), Some(tombstone));
        assert_eq!(oldest_at(5), Some(past(6)));
    }
}
