//! The named conditions of being alive and of being ready.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Everything that has to hold. Clones speak of the same process.
#[derive(Clone, Debug, Default)]
pub struct Health {
    live: Arc<Mutex<Vec<Check>>>,
    ready: Arc<Mutex<Vec<Check>>>,
}

/// One condition, in the hands of who knows about it. It fails until it was first said to hold.
#[derive(Clone, Debug)]
pub struct Check {
    name: &'static str,
    state: Arc<Mutex<State>>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether the process makes progress; if not, it should be restarted.
    Live,
    /// Whether it can do its work now.
    Ready,
}

/// What the conditions say together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) is_well: bool,
    /// One line per condition.
    pub(super) lines: String,
}

#[derive(Clone, Debug)]
enum State {
    Passing,
    /// Passing for as long as somebody keeps saying so.
    PassingUntil {
        until: Instant,
        within: Duration,
    },
    Failing {
        reason: String,
    },
    /// Failing for as long as somebody keeps saying so.
    FailingUntil {
        until: Instant,
        reason: String,
    },
}

// === impl Health ===

impl Health {
    /// A new condition of being alive.
    #[must_use]
    pub fn live(&self, name: &'static str) -> Check {
        add(&self.live, name)
    }

    /// A new condition of being ready.
    #[must_use]
    pub fn ready(&self, name: &'static str) -> Check {
        add(&self.ready, name)
    }

    /// What keeps the process from being ready, a line for each condition; nothing if it is ready.
    #[must_use]
    pub fn lack(&self) -> Option<String> {
        let report = self.report(Question::Ready, None, Instant::now())?;
        (!report.is_well).then_some(report.lines)
    }

    /// Asks one condition, or all.
    pub(super) fn report(
        &self,
        question: Question,
        only: Option<&str>,
        now: Instant,
    ) -> Option<Report> {
        let checks = match question {
            Question::Live => self.live.lock(),
            Question::Ready => self.ready.lock(),
        };
        let mut asked = checks.iter().filter(|check| only.is_none_or(|name| check.name == name));
        let mut report = Report { is_well: true, lines: String::new() };
        if let Some(first) = asked.next() {
            report.add(first, now);
        } else if only.is_some() {
            return None;
        }
        asked.for_each(|check| report.add(check, now));
        Some(report)
    }
}

fn add(checks: &Mutex<Vec<Check>>, name: &'static str) -> Check {
    let reason = "not yet known".to_owned();
    let check = Check { name, state: Arc::new(Mutex::new(State::Failing { reason })) };
    checks.lock().push(check.clone());
    check
}

// === impl Check ===

impl Check {
    pub fn pass(&self) {
        *self.state.lock() = State::Passing;
    }

    /// Passes for this long, unless said again. For what must keep happening.
    pub fn pass_for(&self, within: Duration) {
        *self.state.lock() = State::PassingUntil { until: Instant::now() + within, within };
    }

    pub fn fail(&self, reason: impl Into<String>) {
        *self.state.lock() = State::Failing { reason: reason.into() };
    }

    /// Fails for this long, unless said again. For what is tried again and again: when nobody says
    /// so any more, nobody has anything left to try, because others were faster or it is gone.
    pub fn fail_for(&self, within: Duration, reason: impl Into<String>) {
        let until = Instant::now() + within;
        *self.state.lock() = State::FailingUntil { until, reason: reason.into() };
    }

    fn verdict(&self, now: Instant) -> Result<(), String> {
        match &*self.state.lock() {
            State::Passing => Ok(()),
            State::PassingUntil { until, .. } if now < *until => Ok(()),
            State::PassingUntil { until, within } => {
                let silent = now.duration_since(*until) + *within;
                Err(format!("silent for {} s", silent.as_secs()))
            }
            State::FailingUntil { until, .. } if now >= *until => Ok(()),
            State::FailingUntil { reason, .. } | State::Failing { reason } => Err(reason.clone()),
        }
    }
}

// === impl Report ===

impl Report {
    fn add(&mut self, check: &Check, now: Instant) {
        let name = check.name;
        let written = match check.verdict(now) {
            Ok(()) => writeln!(self.lines, "[+]{name} ok"),
            Err(reason) => {
                self.is_well = false;
                writeln!(self.lines, "[-]{name} failed: {reason}")
            }
        };
        written.expect("writing to a string cannot fail");
    }
}
