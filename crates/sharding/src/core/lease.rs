//! An instance's Lease: what was read of it, and what the sharder writes into it.

use std::time::Duration;

use jiff::Timestamp;

use super::names::InstanceId;
use super::object::Version;

/// Where a Lease says nothing.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(15);
/// Shorter, and one slow request ends a Lease; longer, and objects of a dead instance wait too long.
pub const DURATION_MIN: Duration = Duration::from_secs(1);
pub const DURATION_MAX: Duration = Duration::from_secs(600);
/// On a Lease that was given back the duration says nothing: client-go sets it to a second.
const HOLD_ON_RELEASED: Duration = Duration::from_secs(30);

pub const WEIGHT_DEFAULT: u32 = 100;
pub const WEIGHT_MAX: u32 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub namespace: String,
    pub id: InstanceId,
    pub version: Version,
    pub created: Timestamp,
    /// Nobody once it was given back.
    pub holder: Option<String>,
    pub duration_s: Option<i32>,
    /// The holder's clock: compared for equality, and read only to tell what is long forgotten.
    pub renewed: Option<Timestamp>,
    pub transitions: i32,
    /// The weight label as it stands there.
    pub weight: Option<String>,
    /// The state label, which the sharder keeps.
    pub state: Option<String>,
    pub marks: Marks,
}

/// The annotations. Those that cannot be read count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub incarnation: Option<String>,
    pub pod: Option<String>,
    pub hold: Option<Duration>,
    pub drain_epoch: u64,
    pub drain_seen: u64,
}

/// Who holds a Lease, as far as a ring cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Instance,
    Sharder,
    Nobody,
    /// Somebody who has no business here.
    Stranger,
}

/// How much an instance takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Stated(u32),
    /// The label is no number from 0 to 1000; the default counts.
    Unreadable,
}

// === impl Lease ===

impl Lease {
    #[must_use]
    pub fn held_by(&self, sharder: &str) -> Holder {
        match self.holder.as_deref() {
            None | Some("") => Holder::Nobody,
            Some(holder) if holder == self.id.as_str() => Holder::Instance,
            Some(holder) if holder == sharder => Holder::Sharder,
            Some(_) => Holder::Stranger,
        }
    }

    /// D: how long the instance asks others to wait for its next word. A Lease that the sharder
    /// holds has twice that.
    #[must_use]
    pub fn duration(&self, sharder: &str) -> Duration {
        let stated = self.stated_duration();
        let own = if self.held_by(sharder) == Holder::Sharder { stated / 2 } else { stated };
        own.clamp(DURATION_MIN, DURATION_MAX)
    }

    /// As it stands there.
    #[must_use]
    pub fn stated_duration(&self) -> Duration {
        let seconds = self.duration_s.and_then(|seconds| u64::try_from(seconds).ok());
        let stated = seconds.map_or(DURATION_DEFAULT, Duration::from_secs);
        stated.clamp(DURATION_MIN, DURATION_MAX * 2)
    }

    #[must_use]
    pub fn weight(&self) -> Weight {
        let Some(text) = &self.weight else { return Weight::Stated(WEIGHT_DEFAULT) };
        let number = text.parse().ok().filter(|number| *number <= WEIGHT_MAX);
        number.map_or(Weight::Unreadable, Weight::Stated)
    }

    /// The same Lease, held by the sharder for twice its duration; or held on, if it was already.
    #[must_use]
    pub fn acquired(mut self, sharder: &str, now: Timestamp) -> Self {
        let before = self.held_by(sharder);
        let held_for = match before {
            Holder::Sharder => self.stated_duration(),
            Holder::Nobody => HOLD_ON_RELEASED,
            Holder::Instance | Holder::Stranger => self.duration(sharder) * 2,
        };
        if before != Holder::Sharder {
            self.holder = Some(sharder.to_owned());
            self.transitions = self.transitions.saturating_add(1);
        }
        self.duration_s = Some(whole_seconds(held_for));
        self.renewed = Some(now);
        self.marks.hold = None;
        self
    }

    /// The same Lease, free for the instance to take.
    #[must_use]
    pub fn given_back(mut self, sharder: &str, now: Timestamp) -> Self {
        self.duration_s = Some(whole_seconds(self.duration(sharder)));
        self.holder = None;
        self.renewed = Some(now);
        self
    }

    /// In place of one that was deleted, so that the instance finds it taken.
    #[must_use]
    pub fn recreated(
        id: InstanceId,
        namespace: String,
        (sharder, duration): (&str, Duration),
        now: Timestamp,
    ) -> Self {
        Self {
            namespace,
            id,
            version: Version(String::new()),
            created: now,
            holder: Some(sharder.to_owned()),
            duration_s: Some(whole_seconds(duration * 2)),
            renewed: Some(now),
            transitions: 0,
            weight: None,
            state: None,
            marks: Marks::default(),
        }
    }
}

// === impl Weight ===

impl Weight {
    #[must_use]
    pub fn value(self) -> u32 {
        match self {
            Self::Stated(weight) => weight,
            Self::Unreadable => WEIGHT_DEFAULT,
        }
    }
}

/// Leases count whole seconds; rounded up, lest others take over too early.
fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1000)).expect("durations are clamped to minutes")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDER: &str = "windlass-sharder";

    fn lease(holder: Option<&str>, duration_s: Option<i32>) -> Lease {
        let id: InstanceId = "a-0".parse().unwrap();
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let recreated = Lease::recreated(id, "shop".to_owned(), (SHARDER, DURATION_DEFAULT), at);
        Lease { holder: holder.map(ToOwned::to_owned), duration_s, ..recreated }
    }

    fn seconds(duration: Duration) -> u64 {
        assert_eq!(duration.subsec_nanos(), 0);
        duration.as_secs()
    }

    #[test]
    fn durations_are_clamped_and_halved_where_the_sharder_holds() {
        for (holder, stated, expected) in [
            (Some("a-0"), None, 15),
            (Some("a-0"), Some(5), 5),
            (Some("a-0"), Some(0), 1),
            (Some("a-0"), Some(-4), 15),
            (Some("a-0"), Some(10_000), 600),
            (Some(SHARDER), Some(30), 15),
            (Some(SHARDER), Some(1200), 600),
            (Some(SHARDER), Some(1), 1),
            (None, Some(1), 1),
        ] {
            let duration = lease(holder, stated).duration(SHARDER);
            assert_eq!(seconds(duration), expected, "{holder:?} {stated:?}");
        }
    }

    #[test]
    fn taking_giving_back_and_taking_again_keeps_the_duration() {
        let now = Timestamp::from_second(1_700_000_100).unwrap();
        let taken = lease(Some("a-0"), Some(5)).acquired(SHARDER, now);
        assert_eq!((taken.duration_s, taken.transitions), (Some(10), 1));
        assert_eq!(taken.held_by(SHARDER), Holder::Sharder);
        let held_on = taken.clone().acquired(SHARDER, now);
        assert_eq!(held_on, taken, "a renewal is no transition");
        let free = taken.given_back(SHARDER, now);
        assert_eq!((free.held_by(SHARDER), free.duration_s), (Holder::Nobody, Some(5)));
    }

    #[test]
    fn a_released_lease_is_held_for_thirty_seconds_whatever_it_says() {
        let now = Timestamp::from_second(1_700_000_100).unwrap();
        let taken = lease(None, Some(1)).acquired(SHARDER, now);
        assert_eq!(taken.duration_s, Some(30));
        assert_eq!(seconds(taken.duration(SHARDER)), 15);
    }

    #[test]
    fn weights_are_read_strictly() {
        for (text, expected) in [
            (None, Weight::Stated(100)),
            (Some("0"), Weight::Stated(0)),
            (Some("1000"), Weight::Stated(1000)),
            (Some("1001"), Weight::Unreadable),
            (Some("-1"), Weight::Unreadable),
            (Some("many"), Weight::Unreadable),
            (Some(""), Weight::Unreadable),
        ] {
            let weight = text.map(ToOwned::to_owned);
            assert_eq!(Lease { weight, ..lease(None, None) }.weight(), expected, "{text:?}");
        }
        assert_eq!(Weight::Unreadable.value(), 100);
    }
}
