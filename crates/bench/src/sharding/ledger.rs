//! Whose each object was, one change after the other, and what that says about moves. Only remembers
//! what it is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

/// What a change of hands took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) at: Instant,
    /// How long it was nobody's; nothing if it was taken at once.
    pub(super) gap: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) struct Ledger {
    objects: BTreeMap<String, Standing>,
    moves: Vec<Moved>,
    /// When a label last changed.
    changed_at: Instant,
}

#[derive(Clone, Debug, Default)]
struct Standing {
    shard: Option<String>,
    is_draining: bool,
    /// Whose it was before, and since when it is nobody's.
    left: Option<(String, Instant)>,
}

/// How objects lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Settled,
    /// And why not.
    Unsettled(String),
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn new(now: Instant) -> Self {
        Self { objects: BTreeMap::new(), moves: Vec::new(), changed_at: now }
    }

    pub(super) fn on_seen(
        &mut self,
        now: Instant,
        name: &str,
        shard: Option<&str>,
        is_draining: bool,
    ) {
        let standing = self.objects.entry(name.to_owned()).or_default();
        if standing.shard.as_deref() == shard && standing.is_draining == is_draining {
            return;
        }
        self.changed_at = now;
        standing.is_draining = is_draining;
        if standing.shard.as_deref() == shard {
            return;
        }
        let before = std::mem::replace(&mut standing.shard, shard.map(ToOwned::to_owned));
        match (before, shard) {
            (Some(before), None) => standing.left = Some((before, now)),
            (Some(_), Some(_)) => self.moves.push(Moved { at: now, gap: None }),
            (None, Some(shard)) => {
                let left = standing.left.take().filter(|(before, _)| before != shard);
                let gap = left.map(|(_, since)| now - since);
                self.moves.extend(gap.map(|gap| Moved { at: now, gap: Some(gap) }));
            }
            (None, None) => {}
        }
    }

    pub(super) fn on_gone(&mut self, name: &str) {
        self.objects.remove(name);
    }

    pub(super) fn changed_at(&self) -> Instant {
        self.changed_at
    }

    /// Those since a moment.
    pub(super) fn moves_since(&self, since: Instant) -> Vec<Moved> {
        self.moves.iter().filter(|moved| moved.at >= since).cloned().collect()
    }

    /// Whether so many objects are all these instances', each has some, and none is to be given up.
    pub(super) fn rest(&self, count: usize, members: &BTreeSet<String>) -> Rest {
        let owners = self.objects.values().map(|it| it.shard.clone().unwrap_or_default());
        let owners: BTreeSet<String> = owners.collect();
        let draining = self.objects.values().filter(|it| it.is_draining).count();
        if self.objects.len() == count && owners == *members && draining == 0 {
            return Rest::Settled;
        }
        let found = self.objects.len();
        Rest::Unsettled(format!("{found} objects of {owners:?}, {draining} to be given up"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn members(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_graceful_move_has_a_gap_and_a_takeover_has_none() {
        let begin = Instant::now();
        let mut ledger = Ledger::new(begin);
        ledger.on_seen(begin, "x", Some("a"), false);
        ledger.on_seen(begin, "y", Some("a"), false);
        ledger.on_seen(begin + MS, "x", Some("a"), true);
        ledger.on_seen(begin + 2 * MS, "x", None, false);
        ledger.on_seen(begin + 5 * MS, "x", Some("b"), false);
        ledger.on_seen(begin + 6 * MS, "y", Some("b"), false);
        let gaps: Vec<_> = ledger.moves_since(begin).into_iter().map(|it| it.gap).collect();
        assert_eq!(gaps, [Some(3 * MS), None]);
        assert_eq!(ledger.moves_since(begin + 6 * MS).len(), 1);
        assert_eq!(ledger.changed_at(), begin + 6 * MS);
    }

    #[test]
    fn what_returns_has_not_moved_and_what_is_seen_again_has_not_changed() {
        let begin = Instant::now();
        let mut ledger = Ledger::new(begin);
        ledger.on_seen(begin, "x", Some("a"), false);
        ledger.on_seen(begin + MS, "x", None, false);
        ledger.on_seen(begin + 2 * MS, "x", Some("a"), false);
        ledger.on_seen(begin + 9 * MS, "x", Some("a"), false);
        assert_eq!(ledger.moves_since(begin), []);
        assert_eq!(ledger.changed_at(), begin + 2 * MS);
    }

    #[test]
    fn at_rest_all_objects_are_the_members_and_none_is_draining() {
        let begin = Instant::now();
        let mut ledger = Ledger::new(begin);
        ledger.on_seen(begin, "x", Some("a"), false);
        ledger.on_seen(begin, "y", Some("b"), true);
        ledger.on_seen(begin, "z", None, false);
        assert!(matches!(ledger.rest(3, &members(&["a", "b"])), Rest::Unsettled(_)));
        ledger.on_gone("z");
        ledger.on_seen(begin, "y", Some("b"), false);
        assert_eq!(ledger.rest(2, &members(&["a", "b"])), Rest::Settled);
        assert!(matches!(ledger.rest(2, &members(&["a"])), Rest::Unsettled(_)));
        assert!(matches!(ledger.rest(3, &members(&["a", "b"])), Rest::Unsettled(_)));
    }
}
