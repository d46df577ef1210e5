//! How long a node may believe that it is registered. Time is the time since boot, given by the
//! caller; nothing here waits.
//!
//! Everything is counted from the moment the last acknowledged keep-alive was *sent*, the latest
//! moment from which the store can have begun to count:
//!
//! | default | |
//! |---|---|
//! | 3.3 s | the next keep-alive; after a failure again each second |
//! | 6.7 s | the deadline: no more claims, everything is killed |
//! | 7.7 s | the last process is gone |
//! | 10 s | the lease can end, and others take the tasks |

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::time::Boottime;

/// Shorter, and one lost packet ends a lease.
pub const TTL_MIN: Duration = Duration::from_secs(5);
/// Longer, and the tasks of a lost node wait for minutes.
pub const TTL_MAX: Duration = Duration::from_mins(5);
pub const TTL_DEFAULT: Duration = Duration::from_secs(10);
/// After a keep-alive that was not answered.
pub const RETRY_EVERY: Duration = Duration::from_secs(1);
/// From the deadline to the death of the last process.
pub const KILL_WITHIN: Duration = Duration::from_secs(1);

/// The times of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a lease of {} s is not between 5 s and 300 s", .0.as_secs_f64())]
pub struct TtlError(pub Duration);

/// One registration's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    timing: Timing,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for the next acknowledgement, which moves the deadline. The deadline moves it on to
    /// `Fenced`, or the store's word that the lease is gone.
    Held {
        /// When the last acknowledged keep-alive was sent.
        acknowledged: Boottime,
        next_send: Boottime,
    },
    /// Nothing more is claimed or started; all that runs is being killed. Waits for the last process
    /// to be gone; then the node registers anew, under another id. Nothing moves it back.
    Fenced { since: Boottime },
}

/// What the lease demands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    SendKeepAlive,
    /// Nothing until then.
    Wait(Boottime),
    /// Kill everything.
    Fence,
}

// === impl Timing ===

impl Timing {
    pub fn new(ttl: Duration) -> Result<Self, TtlError> {
        if (TTL_MIN..=TTL_MAX).contains(&ttl) { Ok(Self { ttl }) } else { Err(TtlError(ttl)) }
    }

    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    #[must_use]
    pub fn keep_alive_every(&self) -> Duration {
        self.ttl / 3
    }

    #[must_use]
    pub fn deadline_after(&self) -> Duration {
        self.ttl * 2 / 3
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self { ttl: TTL_DEFAULT }
    }
}

// === impl Lease ===

impl Lease {
    /// A lease whose grant was asked for at `sent`.
    #[must_use]
    pub fn granted(timing: Timing, sent: Boottime) -> Self {
        let next_send = sent + timing.keep_alive_every();
        Self { timing, state: State::Held { acknowledged: sent, next_send } }
    }

    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// When everything must be dead or dying; also told to the processes beside each attempt.
    #[must_use]
    pub fn deadline(&self) -> Boottime {
        match self.state {
            State::Held { acknowledged, .. } => acknowledged + self.timing.deadline_after(),
            State::Fenced { since } => since,
        }
    }

    /// Whether anything may be claimed or started.
    #[must_use]
    pub fn is_held(&self, now: Boottime) -> bool {
        matches!(self.state, State::Held { .. }) && now < self.deadline()
    }

    /// What to do now. Fences itself when the deadline has passed.
    #[must_use]
    pub fn duty(&mut self, now: Boottime) -> Duty {
        if !self.is_held(now) {
            self.fence(now);
            return Duty::Fence;
        }
        match self.state {
            State::Held { next_send, .. } if now < next_send => {
                Duty::Wait(next_send.min(self.deadline()))
            }
            _ => Duty::SendKeepAlive,
        }
    }

    /// A keep-alive went out; unless it is acknowledged, the next one follows soon.
    pub fn on_sent(&mut self, now: Boottime) {
        if let State::Held { next_send, .. } = &mut self.state {
            *next_send = now + RETRY_EVERY;
        }
    }

    /// The store has answered the keep-alive of `sent`. A remaining time of 0 means that the lease
    /// is gone. What comes after the deadline comes too late: everything is being killed.
    pub fn on_acknowledged(&mut self, now: Boottime, sent: Boottime, remaining: Duration) {
        if remaining.is_zero() || !self.is_held(now) {
            return self.fence(now);
        }
        self.move_to(sent);
    }

    /// The word of whoever keeps the lease: the keep-alive of `sent` was answered in time, and the
    /// deadline of all that runs was moved. That is as true when it is heard late, by a part of the node
    /// that was held up; only when the deadline that follows from it has passed, it is of no use.
    pub fn on_kept(&mut self, now: Boottime, sent: Boottime, remaining: Duration) {
        if remaining.is_zero() {
            return self.fence(now);
        }
        self.move_to(sent);
    }

    fn move_to(&mut self, sent: Boottime) {
        if let State::Held { acknowledged, next_send } = &mut self.state
            && sent > *acknowledged
        {
            *acknowledged = sent;
            *next_send = sent + self.timing.keep_alive_every();
        }
    }

    pub fn fence(&mut self, now: Boottime) {
        if matches!(self.state, State::Held { .. }) {
            self.state = State::Fenced { since: now };
        }
    }

    /// Whether killing takes longer than it may. The node stays fenced and says so.
    #[must_use]
    pub fn is_overdue(&self, now: Boottime) -> bool {
        matches!(self.state, State::Fenced { since } if now.since(since) > KILL_WITHIN)
    }
}
