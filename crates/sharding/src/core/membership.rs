//! Who is there: each instance's state, from its Lease and from how long that has not changed before
//! our own eyes. Never compares an instance's clock with ours, but to tell what is long forgotten.

mod roster;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;

use super::lease::{Holder, Lease};
use super::time::{later, until};

pub use roster::{Member, Roster, Suspect};

/// A Lease that nobody keeps is removed after ten durations, but not sooner than this.
const ORPHAN_AFTER_MIN: Duration = Duration::from_secs(60);
const ORPHAN_AFTER_DURATIONS: u32 = 10;

/// D is the Lease's duration; *silent* counts from when we first saw holder and renewal as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Holds its Lease, silent for less than D. Gets new objects. Silence ends it.
    Ready,
    /// Silent for D or longer, or its Lease has vanished. Keeps what it has and gets nothing new. A
    /// renewal makes it ready; at 2 D the sharder takes its Lease.
    Unknown,
    /// Ended in order and said it would be back. Keeps what it has. A renewal without the mark makes
    /// it ready; when the time is over the sharder takes its Lease.
    Restarting,
    /// The sharder holds its Lease: everything it had is moved. It may come back once that is done.
    Dead,
    /// Gave its Lease back. If it has objects left, the sharder takes the Lease and moves them.
    Released,
    /// Another Lease in another namespace had the id first. Gets nothing until that is gone.
    Conflict,
    /// Dead or released, and forgotten for so long that the Lease is removed.
    Orphan,
}

/// What the sharder is to do about a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Take it, once; success proves that the API server can be reached, and only then is it dead.
    Acquire,
    Delete,
}

/// What one look at a Lease comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: State,
    pub due: Option<Due>,
    /// When it becomes something else if nothing is heard.
    pub changes_in: Option<Duration>,
}

/// A Lease, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    pub lease: &'a Lease,
    /// Who the sharder is in a holder's place.
    pub sharder: &'a str,
    /// How long we have seen holder and renewal unchanged.
    pub silent_for: Duration,
    pub wall: Timestamp,
    pub hold_max: Duration,
    /// Whether no older Lease has the same id.
    pub is_eldest: bool,
}

#[must_use]
pub fn judge(sight: &Sight<'_>) -> Standing {
    if !sight.is_eldest {
        return Standing { state: State::Conflict, due: None, changes_in: None };
    }
    match sight.lease.held_by(sight.sharder) {
        Holder::Instance => match sight.lease.marks.hold {
            Some(hold) => judge_restarting(sight, hold.min(sight.hold_max)),
            None => judge_live(sight),
        },
        Holder::Stranger => judge_silent(sight),
        Holder::Sharder => judge_gone(sight, State::Dead),
        Holder::Nobody => judge_gone(sight, State::Released),
    }
}

fn judge_live(sight: &Sight<'_>) -> Standing {
    let duration = sight.lease.duration(sight.sharder);
    if sight.silent_for < duration {
        let changes_in = Some(duration - sight.silent_for);
        return Standing { state: State::Ready, due: None, changes_in };
    }
    judge_silent(sight)
}

/// Not to be relied on, whoever holds it.
fn judge_silent(sight: &Sight<'_>) -> Standing {
    let limit = sight.lease.duration(sight.sharder) * 2;
    waiting(State::Unknown, sight.silent_for, limit)
}

fn judge_restarting(sight: &Sight<'_>, limit: Duration) -> Standing {
    waiting(State::Restarting, sight.silent_for, limit)
}

/// In `state` until the limit; from then on the Lease is to be taken.
pub(super) fn waiting(state: State, silent_for: Duration, limit: Duration) -> Standing {
    if silent_for < limit {
        return Standing { state, due: None, changes_in: Some(limit - silent_for) };
    }
    Standing { state: State::Unknown, due: Some(Due::Acquire), changes_in: None }
}

fn judge_gone(sight: &Sight<'_>, state: State) -> Standing {
    let duration = sight.lease.duration(sight.sharder);
    let forgotten_after = (duration * ORPHAN_AFTER_DURATIONS).max(ORPHAN_AFTER_MIN);
    let by_own_eyes = duration.saturating_sub(sight.silent_for);
    let by_its_word = match sight.lease.renewed {
        Some(renewed) => until(sight.wall, later(renewed, forgotten_after)),
        None => forgotten_after.saturating_sub(sight.silent_for),
    };
    let remaining = by_own_eyes.max(by_its_word);
    if remaining.is_zero() {
        return Standing { state: State::Orphan, due: Some(Due::Delete), changes_in: None };
    }
    Standing { state, due: None, changes_in: Some(remaining) }
}

// === impl State ===

impl State {
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Unknown,
        Self::Restarting,
        Self::Dead,
        Self::Released,
        Self::Conflict,
        Self::Orphan,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unknown => "unknown",
            Self::Restarting => "restarting",
            Self::Dead => "dead",
            Self::Released => "released",
            Self::Conflict => "conflict",
            Self::Orphan => "orphan",
        }
    }

    /// Whether its objects stay with it.
    #[must_use]
    pub fn keeps_objects(self) -> bool {
        matches!(self, Self::Ready | Self::Unknown | Self::Restarting)
    }

    /// Whether it has nothing to say about its objects any more.
    #[must_use]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Dead | Self::Released | Self::Orphan)
    }
}
