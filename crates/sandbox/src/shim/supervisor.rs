//! When to send which signal, and what the end then means. Decides only: time, deadline and exits are
//! arguments.

use std::time::Duration;

use rustix::process::Signal;

use crate::{Boottime, Exit, Outcome};

/// A killed attempt that is not gone is killed again after this long: it may have forked meanwhile.
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Watches over one attempt that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    grace: Duration,
    timeout_at: Boottime,
    stopping: Option<Stopping>,
}

/// The attempt is to end.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    /// The first reason; later ones only make it sooner.
    reason: Reason,
    kill_at: Boottime,
    is_terminated: bool,
    /// From here on it is only killed again.
    is_killed: bool,
}

/// Why an attempt is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Asked,
    DeadlinePassed,
    TimedOut,
    ScratchExceeded,
}

// === impl Supervisor ===

impl Supervisor {
    /// `now` is when the command may begin to run.
    pub(crate) fn new(timeout: Option<Duration>, grace: Duration, now: Boottime) -> Self {
        let timeout_at = timeout.map_or(Boottime::NEVER, |timeout| now + timeout);
        Self { grace, timeout_at, stopping: None }
    }

    /// Somebody asked. May come again; the grace that ends first counts.
    pub(crate) fn on_stop(&mut self, grace: Duration, now: Boottime) {
        self.stop(Reason::Asked, now + grace);
    }

    pub(crate) fn on_scratch_exceeded(&mut self, now: Boottime) {
        self.stop(Reason::ScratchExceeded, now);
    }

    fn stop(&mut self, reason: Reason, kill_at: Boottime) {
        let fresh = Stopping { reason, kill_at, is_terminated: false, is_killed: false };
        let stopping = self.stopping.get_or_insert(fresh);
        if !stopping.is_killed {
            stopping.kill_at = stopping.kill_at.min(kill_at);
        }
    }

    /// What to send now, if anything.
    pub(crate) fn due(&mut self, now: Boottime, deadline: Boottime) -> Option<Signal> {
        if now >= deadline {
            self.stop(Reason::DeadlinePassed, now);
        }
        if now >= self.timeout_at {
            self.stop(Reason::TimedOut, now + self.grace);
            self.timeout_at = Boottime::NEVER;
        }
        let stopping = self.stopping.as_mut()?;
        if now >= stopping.kill_at {
            stopping.kill_at = now + KILL_AGAIN_AFTER;
            stopping.is_killed = true;
            stopping.is_terminated = true;
            return Some(Signal::KILL);
        }
        let is_due = !std::mem::replace(&mut stopping.is_terminated, true);
        is_due.then_some(Signal::TERM)
    }

    /// When [`due`](Self::due) may have another answer.
    pub(crate) fn wake_at(&self, deadline: Boottime) -> Boottime {
        match self.stopping {
            Some(stopping) if stopping.is_killed => stopping.kill_at,
            Some(stopping) => stopping.kill_at.min(deadline),
            None => self.timeout_at.min(deadline),
        }
    }

    /// What it means that the command ended like this. By itself, if no signal was sent before.
    pub(crate) fn outcome(&self, exit: Exit, is_oom_killed: bool) -> Outcome {
        let sent = self.stopping.filter(|stopping| stopping.is_terminated);
        match sent.map(|stopping| stopping.reason) {
            None => Outcome::Exited { exit, is_oom_killed },
            Some(Reason::Asked | Reason::DeadlinePassed) => Outcome::Stopped,
            Some(Reason::TimedOut) => Outcome::TimedOut,
            Some(Reason::ScratchExceeded) => Outcome::ScratchExceeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Boottime = Boottime::NEVER;

    fn at(seconds: u64) -> Boottime {
        Boottime(Duration::from_secs(seconds))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn exited(supervisor: &Supervisor) -> Outcome {
        supervisor.outcome(Exit::Code(0), false)
    }

    #[test]
    fn what_nobody_stops_runs_and_exits() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        assert_eq!(supervisor.due(at(1_000_000), FAR), None);
        assert_eq!(supervisor.wake_at(FAR), FAR);
        let exit = Exit::Signal(11);
        let outcome = Outcome::Exited { exit, is_oom_killed: true };
        assert_eq!(supervisor.outcome(exit, true), outcome);
    }

    #[test]
    fn a_stop_is_term_then_kill_until_it_is_gone() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        supervisor.on_stop(seconds(5), at(2));
        assert_eq!(supervisor.due(at(2), FAR), Some(Signal::TERM));
        assert_eq!((supervisor.due(at(3), FAR), supervisor.wake_at(FAR)), (None, at(7)));
        assert_eq!(supervisor.due(at(7), FAR), Some(Signal::KILL));
        assert_eq!(supervisor.due(at(7), FAR), None);
        assert_eq!(supervisor.due(at(8), FAR), Some(Signal::KILL), "again");
        assert_eq!(exited(&supervisor), Outcome::Stopped);
    }

    /// A command that had ended when the wish to stop it came was said to be stopped: a node that left
    /// called failed what was complete.
    #[test]
    fn what_ended_before_any_signal_ended_by_itself() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        supervisor.on_stop(seconds(5), at(2));
        let ended = Outcome::Exited { exit: Exit::Code(0), is_oom_killed: false };
        assert_eq!(exited(&supervisor), ended);
        assert_eq!(supervisor.due(at(2), FAR), Some(Signal::TERM));
        assert_eq!(exited(&supervisor), Outcome::Stopped);
    }

    #[test]
    fn less_grace_counts_and_more_does_not() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        supervisor.on_stop(seconds(60), at(2));
        assert_eq!(supervisor.due(at(2), FAR), Some(Signal::TERM));
        supervisor.on_stop(seconds(100), at(3));
        assert_eq!(supervisor.wake_at(FAR), at(62));
        supervisor.on_stop(seconds(0), at(4));
        assert_eq!(supervisor.due(at(4), FAR), Some(Signal::KILL));
    }

    #[test]
    fn no_grace_is_kill_at_once() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        supervisor.on_stop(seconds(0), at(2));
        assert_eq!(supervisor.due(at(2), FAR), Some(Signal::KILL));
    }

    #[test]
    fn a_timeout_grants_its_grace() {
        let mut supervisor = Supervisor::new(Some(seconds(3)), seconds(10), at(1));
        assert_eq!((supervisor.due(at(3), FAR), supervisor.wake_at(FAR)), (None, at(4)));
        assert_eq!(supervisor.due(at(4), FAR), Some(Signal::TERM));
        assert_eq!(supervisor.due(at(14), FAR), Some(Signal::KILL));
        assert_eq!(exited(&supervisor), Outcome::TimedOut);
    }

    #[test]
    fn the_deadline_grants_nothing_and_may_move() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        assert_eq!((supervisor.due(at(4), at(5)), supervisor.wake_at(at(5))), (None, at(5)));
        assert_eq!((supervisor.due(at(5), at(8)), supervisor.wake_at(at(8))), (None, at(8)));
        assert_eq!(supervisor.due(at(8), at(8)), Some(Signal::KILL));
        assert_eq!(supervisor.due(at(8), at(8)), None, "a killed attempt is left to die");
        assert!(supervisor.wake_at(at(8)) > at(8), "and looked at again only later");
        assert_eq!(exited(&supervisor), Outcome::Stopped);
    }

    #[test]
    fn the_deadline_cuts_a_grace_short_and_the_first_reason_stays() {
        let mut supervisor = Supervisor::new(Some(seconds(1)), seconds(600), at(1));
        assert_eq!(supervisor.due(at(2), at(9)), Some(Signal::TERM));
        assert_eq!(supervisor.wake_at(at(9)), at(9));
        assert_eq!(supervisor.due(at(9), at(9)), Some(Signal::KILL));
        assert_eq!(exited(&supervisor), Outcome::TimedOut);
    }

    #[test]
    fn too_much_scratch_is_killed() {
        let mut supervisor = Supervisor::new(None, seconds(10), at(1));
        supervisor.on_scratch_exceeded(at(5));
        assert_eq!(supervisor.due(at(5), FAR), Some(Signal::KILL));
        assert_eq!(exited(&supervisor), Outcome::ScratchExceeded);
    }
}
