//! Sets of keys as merged intervals. Pure; knows neither users nor requests.
//!
//! A permission is for one key (empty `range_end`), for `[key, range_end)`, or for everything from
//! `key` on (`range_end` = `\0`). What a role opens is the union of its permissions, and what a user
//! may touch is the union over the roles:
//!
//! ```text
//! role 1:  [a, c)            reading [a, e) is allowed: the two meet at c
//! role 2:        [c, e)      reading [a, f) is not
//! ```

use std::mem;

use bytes::Bytes;
use etcd_api::authpb::{Permission, permission::Type};

/// The `range_end` that means "from the key on". As an end it would make every range empty.
const OPEN_END: &[u8] = b"\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    Read,
    Write,
}

/// What one role opens.
#[derive(Clone, Debug, Default)]
pub(super) struct Grants {
    read: Intervals,
    write: Intervals,
}

/// Disjoint intervals in order that do not touch each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals(Vec<Interval>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    begin: Bytes,
    end: End<Bytes>,
}

/// Where an interval ends. Larger reaches further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End<K> {
    Before(K),
    Never,
}

// === impl Grants ===

impl Grants {
    pub(super) fn new(permissions: &[Permission]) -> Self {
        // An unknown type grants nothing: `perm_type()` would read it as READ.
        let of = |types: [Type; 2]| {
            let granting = permissions
                .iter()
                .filter(|permission| types.iter().any(|kind| *kind as i32 == permission.perm_type));
            Intervals::new(granting.map(Interval::new))
        };
        Self { read: of([Type::Read, Type::Readwrite]), write: of([Type::Write, Type::Readwrite]) }
    }

    pub(super) fn of(&self, right: Right) -> &Intervals {
        match right {
            Right::Read => &self.read,
            Right::Write => &self.write,
        }
    }
}

// === impl Intervals ===

impl Intervals {
    fn new(intervals: impl Iterator<Item = Interval>) -> Self {
        let mut sorted: Vec<Interval> = intervals.collect();
        sorted.sort_by(|one, other| one.begin.cmp(&other.begin));
        let mut merged: Vec<Interval> = Vec::with_capacity(sorted.len());
        for next in sorted {
            match merged.last_mut() {
                Some(last) if last.end.as_slice() >= End::Before(&next.begin) => {
                    let end = mem::replace(&mut last.end, End::Never);
                    last.end = end.max(next.end);
                }
                _ => merged.push(next),
            }
        }
        Self(merged)
    }

    /// How far the set goes on without a gap from `key`, if `key` is in it.
    fn reach(&self, key: &[u8]) -> Option<End<&[u8]>> {
        let after = self.0.partition_point(|interval| &*interval.begin <= key);
        let interval = self.0.get(after.checked_sub(1)?)?;
        let end = interval.end.as_slice();
        (end > End::Before(key)).then_some(end)
    }
}

// === impl Interval ===

impl Interval {
    fn new(permission: &Permission) -> Self {
        let begin = permission.key.clone();
        let end = if permission.range_end.is_empty() {
            End::Before([&permission.key[..], b"\0"].concat().into())
        } else {
            End::of(permission.range_end.clone())
        };
        Self { begin, end }
    }
}

// === impl End ===

impl<K: AsRef<[u8]>> End<K> {
    /// The end that a non-empty `range_end` stands for.
    fn of(range_end: K) -> Self {
        if range_end.as_ref() == OPEN_END { Self::Never } else { Self::Before(range_end) }
    }

    fn as_slice(&self) -> End<&[u8]> {
        match self {
            Self::Before(key) => End::Before(key.as_ref()),
            Self::Never => End::Never,
        }
    }
}

/// Whether the union of `sets` holds every key that `key` and `range_end` of a request stand for.
///
/// A range without keys (`range_end` at or below `key`) counts as its first key.
pub(super) fn covers<'a>(
    sets: impl Iterator<Item = &'a Intervals> + Clone,
    key: &[u8],
    range_end: &[u8],
) -> bool {
    let furthest = |from: &[u8]| sets.clone().filter_map(|set| set.reach(from)).max();
    if range_end.is_empty() {
        return furthest(key).is_some();
    }
    let wanted = End::of(range_end);
    let mut at = key;
    // Each step ends at a later interval of some set, so their number bounds the steps.
    while let Some(reach) = furthest(at) {
        match reach {
            End::Before(next) if reach < wanted => at = next,
            _ => return true,
        }
    }
    false
}

/// Whether a permission may be granted for this range at all.
pub(super) fn is_grantable(key: &[u8], range_end: &[u8]) -> bool {
    !key.is_empty() && (range_end.is_empty() || End::Before(key) < End::of(range_end))
}
