//! How a node leaves: it takes nothing more, waits for what runs, stops what does not end, and goes.

use std::time::Duration;

use super::time::Boottime;

/// How long what runs may go on by itself.
pub const DRAIN_WAIT: Duration = Duration::from_mins(10);

/// A node that is leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    since: Boottime,
    wait: Duration,
}

/// What a leaving node does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Let what runs go on until then.
    Wait(Boottime),
    /// Stop what still runs; each has its grace.
    Stop,
    /// Nothing is left: give up the lease.
    Leave,
}

// === impl Drain ===

impl Drain {
    #[must_use]
    pub fn new(since: Boottime) -> Self {
        Self { since, wait: DRAIN_WAIT }
    }

    /// What runs is not waited for.
    #[must_use]
    pub fn at_once(since: Boottime) -> Self {
        Self { since, wait: Duration::ZERO }
    }

    /// `is_empty`: nothing runs, nothing is claimed, and every end is recorded.
    #[must_use]
    pub fn duty(&self, now: Boottime, is_empty: bool) -> Duty {
        let stop_at = self.since + self.wait;
        if is_empty {
            Duty::Leave
        } else if now < stop_at {
            Duty::Wait(stop_at)
        } else {
            Duty::Stop
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_leaves_when_empty_and_stops_tasks_after_waiting() {
        let drain = Drain::new(Boottime(Duration::from_secs(5)));
        let duty = |seconds, is_empty| drain.duty(Boottime(Duration::from_secs(seconds)), is_empty);
        let stop_at = Boottime(Duration::from_secs(605));
        assert_eq!(duty(5, true), Duty::Leave);
        assert_eq!(duty(5, false), Duty::Wait(stop_at));
        assert_eq!(duty(604, false), Duty::Wait(stop_at));
        assert_eq!(duty(605, false), Duty::Stop);
        assert_eq!(duty(700, true), Duty::Leave);
        let hurried = Drain::at_once(Boottime(Duration::from_secs(5)));
        assert_eq!(hurried.duty(Boottime(Duration::from_secs(5)), false), Duty::Stop);
    }
}
