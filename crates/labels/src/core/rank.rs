//! Who goes first. Every replica can do all the work; ranks only let one of them be early, so that
//! the others find it done.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// A replica's place among the living ones for one subject; 0 goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u32);

/// How long a replica leaves to the better ones.
#[derive(Clone, Copy, Debug)]
pub struct HeadStart {
    /// By how much it lets the next better one go ahead: the usual time of the work, and of the
    /// watch that tells that it is done.
    pub step: Duration,
    /// Nobody waits longer, however many replicas there are: the better ones may all be dead.
    pub max: Duration,
}

// === impl Rank ===

impl Rank {
    pub const FIRST: Self = Self(0);
    #[cfg(test)]
    pub(crate) const THIRD: Self = Self(2);

    /// The place of `me` in the rendezvous order of `members` for `subject`. Different subjects have
    /// different orders, and who joins or leaves changes nobody's place relative to another.
    #[must_use]
    pub fn of<'a>(
        subject: impl AsRef<[u8]>,
        me: &str,
        members: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let subject = subject.as_ref();
        let mine = weight(subject, me);
        let others = members.into_iter().filter(|member| *member != me);
        let better = others.filter(|member| weight(subject, member) > mine).count();
        Self(u32::try_from(better).unwrap_or(u32::MAX))
    }

    /// How long to wait for the better ones.
    #[must_use]
    pub fn wait(self, head_start: HeadStart) -> Duration {
        head_start.step.saturating_mul(self.0).min(head_start.max)
    }

    /// How long to wait, where the work may wait for seconds.
    #[must_use]
    pub fn seconds(self) -> Duration {
        Duration::from_secs(self.0.into())
    }
}

/// The member's name decides between equal hashes, so that the order is total.
fn weight<'a>(subject: &[u8], member: &'a str) -> ([u8; 32], &'a str) {
    let hash = Sha256::new().chain_update(subject).chain_update([0]).chain_update(member);
    (hash.finalize().into(), member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

    fn order(subject: &str, members: &[&'static str]) -> Vec<&'static str> {
        let mut order = members.to_vec();
        order.sort_by_key(|me| Rank::of(subject, me, members.iter().copied()));
        order
    }

    #[test]
    fn ranks_are_different_and_dense() {
        for subject in 0..100 {
            let subject = format!("node-{subject}");
            let mut ranks = MEMBERS.map(|me| Rank::of(&subject, me, MEMBERS));
            ranks.sort();
            assert_eq!(ranks, [Rank(0), Rank(1), Rank(2), Rank(3)], "{subject}");
        }
    }

    #[test]
    fn first_places_are_spread() {
        let first = |me: &str| {
            let subjects = (0..1000).map(|subject| format!("node-{subject}"));
            subjects.filter(|subject| Rank::of(subject, me, MEMBERS) == Rank::FIRST).count()
        };
        for member in MEMBERS {
            assert!((150..350).contains(&first(member)), "{member}: {}", first(member));
        }
    }

    #[test]
    fn who_leaves_changes_no_order_among_the_others() {
        for subject in 0..100 {
            let subject = format!("node-{subject}");
            let mut before = order(&subject, &MEMBERS);
            before.retain(|member| *member != "b");
            assert_eq!(before, order(&subject, &["a", "c", "d"]), "{subject}");
        }
    }

    #[test]
    fn who_is_not_listed_yet_has_a_place() {
        assert_eq!(Rank::of("node", "a", []), Rank::FIRST);
        assert_eq!(Rank::of("node", "a", ["a"]), Rank::FIRST);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let head_start =
            HeadStart { step: Duration::from_millis(150), max: Duration::from_millis(600) };
        let waits = [0, 1, 3, 4, 5, u32::MAX].map(|rank| Rank(rank).wait(head_start).as_millis());
        assert_eq!(waits, [0, 150, 450, 600, 600, 600]);
    }
}
