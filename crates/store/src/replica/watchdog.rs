//! When a follower takes the role, and who counts as living. Only decides: looks come in from
//! outside, with the time of each.

use std::{collections::BTreeMap, time::Duration};

use journal::{Epoch, Member};
use tokio::time::Instant;

/// How long a holder may be silent: three of its beats. With the look that sees its last beat late, the
/// one that sees the silence end late, and the claim, writes go on within three seconds.
const SILENCE_MAX: Duration = Duration::from_millis(1500);
/// How long the role may be nobody's: a member that has just taken it has not told so yet.
const VACANCY_MAX: Duration = Duration::from_secs(1);
/// How much later each member tries than the one before it, so that they do not depose each other.
const STAGGER: Duration = Duration::from_millis(700);
/// The most that the time between two looks counts: where they are further apart, the grid is slow, or
/// this process stood still, and a holder that lives beats as seldom. So it takes as many looks to find
/// a silence long as it takes on a fast grid.
const BETWEEN_LOOKS_MAX: Duration = Duration::from_millis(500);
/// A member whose beat did not rise for so long is not listed.
const ABSENCE_MAX: Duration = Duration::from_secs(5);
/// A member that was absent for so long is taken off the list for good.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// Watches the holder through what can be seen of it.
#[derive(Debug, Default)]
pub(super) struct Watchdog {
    seen: Option<Seen>,
}

/// What can be seen of a holder: the epoch in force, and the beat of who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sign {
    pub(super) epoch: Epoch,
    pub(super) beat: Option<u64>,
}

#[derive(Debug)]
struct Seen {
    sign: Sign,
    /// For how long there has been no other.
    silence: Duration,
    last_look: Instant,
}

/// Who lives, told by beats that rise.
#[derive(Debug, Default)]
pub(super) struct Census {
    beats: BTreeMap<u64, (u64, Instant)>,
}

// === impl Watchdog ===

impl Watchdog {
    /// Whether to take the role, `rank` other members having the first try.
    pub(super) fn look(&mut self, sign: Sign, rank: u32, now: Instant) -> bool {
        let seen = match &mut self.seen {
            Some(seen) if seen.sign == sign => seen,
            seen => seen.insert(Seen { sign, silence: Duration::ZERO, last_look: now }),
        };
        seen.silence += now.duration_since(seen.last_look).min(BETWEEN_LOOKS_MAX);
        seen.last_look = now;
        let patience = if sign.beat.is_some() { SILENCE_MAX } else { VACANCY_MAX };
        seen.silence >= patience + STAGGER * rank
    }

    pub(super) fn forget(&mut self) {
        self.seen = None;
    }
}

// === impl Sign ===

impl Sign {
    pub(super) fn of(epoch: Epoch, members: &[Member]) -> Self {
        let holder = members.iter().find(|member| member.epoch == epoch);
        let beat = holder.filter(|_| epoch != Epoch(0)).map(|member| member.beat);
        Self { epoch, beat }
    }
}

// === impl Census ===

impl Census {
    /// Takes in a look at all members.
    pub(super) fn look(&mut self, members: &[Member], now: Instant) {
        self.beats.retain(|id, _| members.iter().any(|member| member.id == *id));
        for member in members {
            let seen = self.beats.entry(member.id).or_insert((member.beat, now));
            if seen.0 != member.beat {
                *seen = (member.beat, now);
            }
        }
    }

    pub(super) fn lives(&self, id: u64, now: Instant) -> bool {
        self.silence(id, now).is_some_and(|silence| silence < ABSENCE_MAX)
    }

    pub(super) fn is_gone(&self, id: u64, now: Instant) -> bool {
        self.silence(id, now).is_some_and(|silence| silence >= GONE_AFTER)
    }

    fn silence(&self, id: u64, now: Instant) -> Option<Duration> {
        self.beats.get(&id).map(|(_, since)| now.duration_since(*since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(500);

    /// After how many looks in a row at `sign` the role is taken.
    fn looks_until_claim(watchdog: &mut Watchdog, sign: Sign, rank: u32, now: &mut Instant) -> u32 {
        let mut looks = 0;
        loop {
            *now += EVERY;
            looks += 1;
            assert!(looks < 100, "never");
            if watchdog.look(sign, rank, *now) {
                return looks;
            }
        }
    }

    fn sign(epoch: u64, beat: Option<u64>) -> Sign {
        Sign { epoch: Epoch(epoch), beat }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_holder_is_replaced_and_a_beating_one_is_not() {
        let mut now = Instant::now();
        let mut watchdog = Watchdog::default();
        for beat in 0..50 {
            now += EVERY;
            assert!(!watchdog.look(sign(1, Some(beat)), 0, now), "{beat}");
        }
        assert_eq!(looks_until_claim(&mut watchdog, sign(1, Some(50)), 0, &mut now), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_vacant_role_is_taken_sooner_and_in_turn() {
        let mut now = Instant::now();
        let first = looks_until_claim(&mut Watchdog::default(), sign(4, None), 0, &mut now);
        let second = looks_until_claim(&mut Watchdog::default(), sign(4, None), 1, &mut now);
        assert_eq!((first, second), (3, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_nobody_looked_is_hardly_held_against_the_holder() {
        let mut now = Instant::now();
        let mut watchdog = Watchdog::default();
        assert!(!watchdog.look(sign(1, Some(1)), 0, now));
        now += Duration::from_secs(60);
        assert!(!watchdog.look(sign(1, Some(1)), 0, now));
        assert_eq!(looks_until_claim(&mut watchdog, sign(1, Some(1)), 0, &mut now), 2);
    }

    /// From the death of the holder right after a beat to the first claim.
    #[tokio::test(start_paused = true)]
    async fn the_role_is_claimed_well_within_three_seconds() {
        let mut now = Instant::now();
        let looks = looks_until_claim(&mut Watchdog::default(), sign(1, Some(1)), 0, &mut now);
        assert!(EVERY * looks <= Duration::from_millis(2500), "{looks} looks");
    }

    #[tokio::test(start_paused = true)]
    async fn a_grid_that_is_slow_for_all_costs_nobody_the_role() {
        let mut now = Instant::now();
        let mut watchdog = Watchdog::default();
        for look in 0..20 {
            now += EVERY * 3;
            // Its beats are as slow, and some are seen a look late.
            assert!(!watchdog.look(sign(1, Some(look / 3)), 0, now), "{look}");
        }
    }

    /// Looks that were more than a second apart began the silence anew, so on a busy machine a dead
    /// holder was never replaced.
    #[tokio::test(start_paused = true)]
    async fn a_grid_that_is_slow_for_all_keeps_no_dead_holder() {
        let mut now = Instant::now();
        let mut watchdog = Watchdog::default();
        let mut is_claimed = false;
        for _ in 0..4 {
            now += EVERY * 3;
            is_claimed = watchdog.look(sign(1, Some(1)), 0, now);
        }
        assert!(is_claimed);
    }

    #[tokio::test(start_paused = true)]
    async fn members_without_beats_fade() {
        let now = Instant::now();
        let member = |beat| Member {
            id: 1,
            name: String::new(),
            peer_urls: Vec::new(),
            client_urls: Vec::new(),
            epoch: Epoch(0),
            beat,
        };
        let mut census = Census::default();
        census.look(&[member(1)], now);
        assert!(census.lives(1, now) && !census.lives(2, now));
        census.look(&[member(2)], now + ABSENCE_MAX);
        assert!(census.lives(1, now + ABSENCE_MAX));
        census.look(&[member(2)], now + ABSENCE_MAX * 2);
        assert!(!census.lives(1, now + ABSENCE_MAX * 2));
        assert!(census.is_gone(1, now + ABSENCE_MAX + GONE_AFTER));
        census.look(&[], now + ABSENCE_MAX * 2);
        assert!(!census.is_gone(1, now + GONE_AFTER * 2));
    }
}
