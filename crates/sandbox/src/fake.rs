//! A machine on which nothing runs: attempts exist in memory and end when their time has come, on a
//! clock that tests move. For tests of what uses a [`Host`](crate::Host), and of the suite itself.
//!
//! A command is a list of steps in its argv, taken in order:
//!
//! | step | meaning |
//! |---|---|
//! | `exit CODE`, `signal NUMBER` | ends like this; nothing said: `exit 0` |
//! | `sleep SECONDS` | runs that long |
//! | `stubborn` | ignores TERM |
//! | `print TEXT`, `complain TEXT` | writes a line to its output, to its errors |
//! | `cat` | writes its input |
//! | `show env NAME`, `show workdir`, `show user` | writes what it was given |
//! | `oom` | is killed for want of memory |
//! | `unpreparable`, `unstartable` | fails at that step |

mod script;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::time::Instant;

use crate::{
    AttemptId, Boottime, Exit, Runtime, Spec, Usage,
    runtime::{Error, Stats, Stdio, Wake},
};
use script::Script;

/// What every fake attempt is said to have taken.
const PEAK_MEMORY_BYTES: u64 = 1 << 20;

/// The machine; clones are the same one. It survives hosts, as attempts survive daemons.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What the clock showed when the machine was made.
    start: (Instant, Boottime),
    attempts: Arc<Mutex<BTreeMap<AttemptId, Attempt>>>,
}

/// How far an attempt is.
#[derive(Clone, Copy, Debug)]
enum Attempt {
    /// Waits for `start`.
    Prepared,
    /// Waits for its time, or for a signal that ends it.
    Running(Run),
    /// Waits for `cleanup`.
    Over(Run),
}

#[derive(Clone, Copy, Debug)]
struct Run {
    since: Boottime,
    ends_at: Boottime,
    exit: Exit,
    is_stubborn: bool,
    is_oom_killed: bool,
}

/// The runtime of one attempt.
struct Fake {
    machine: Machine,
    own: Option<AttemptId>,
    ready: Option<Ready>,
}

/// What a prepared command holds.
struct Ready {
    script: Script,
    spec: Spec,
    stdio: Stdio,
}

/// What goes wrong on a machine without processes.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("no such step: {0:?}")]
    NoSuchStep(Vec<String>),
    #[error("the command says so")]
    AsAsked,
    #[error("the attempt exists already")]
    Exists,
    #[error("no attempt is prepared")]
    NotPrepared,
    #[error("cannot use the streams")]
    Streams(#[source] io::Error),
}

// === impl Machine ===

impl Machine {
    /// On tokio's clock, which now shows `at`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if its clock is paused.
    #[must_use]
    pub fn new(at: Boottime) -> Self {
        Self { start: (Instant::now(), at), attempts: Arc::default() }
    }

    /// What its clock shows; deadlines are in this time.
    #[must_use]
    pub fn now(&self) -> Boottime {
        let (since, at) = self.start;
        at + since.elapsed()
    }

    /// Attempts that are not cleaned up.
    #[must_use]
    pub fn attempts(&self) -> Vec<AttemptId> {
        self.attempts.lock().keys().copied().collect()
    }

    /// A runtime on it, as a shim or a daemon has one.
    #[must_use]
    pub fn runtime(&self) -> Box<dyn Runtime> {
        Box::new(Fake { machine: self.clone(), own: None, ready: None })
    }
}

// === impl Fake ===

impl Fake {
    fn own(&self) -> Result<AttemptId, Cause> {
        self.own.ok_or(Cause::NotPrepared)
    }

    /// Moves the attempt on to where it is by now.
    fn look(&self) -> Result<Attempt, Cause> {
        let (id, now) = (self.own()?, self.machine.now());
        let mut attempts = self.machine.attempts.lock();
        let attempt = attempts.get_mut(&id).ok_or(Cause::NotPrepared)?;
        if let Attempt::Running(run) = *attempt
            && now >= run.ends_at
        {
            *attempt = Attempt::Over(run);
        }
        Ok(*attempt)
    }

    fn run(&mut self) -> Result<Run, Cause> {
        let ready = self.ready.take().ok_or(Cause::NotPrepared)?;
        let script = ready.script;
        if script.is_unstartable {
            return Err(Cause::AsAsked);
        }
        let (mut stdout, mut stderr) =
            (File::from(ready.stdio.stdout), File::from(ready.stdio.stderr));
        let mut input = Vec::new();
        File::from(ready.stdio.stdin).read_to_end(&mut input).map_err(Cause::Streams)?;
        script.write(&ready.spec, &input, &mut stdout, &mut stderr).map_err(Cause::Streams)?;
        let since = self.machine.now();
        Ok(Run {
            since,
            ends_at: since + script.duration,
            exit: script.exit,
            is_stubborn: script.is_stubborn,
            is_oom_killed: script.is_oom_killed,
        })
    }
}

impl Runtime for Fake {
    fn prepare(&mut self, id: AttemptId, spec: &Spec, stdio: Stdio) -> Result<(), Error> {
        let on_cause = |cause: Cause| Error::Prepare(cause.into());
        let script = Script::parse(&spec.argv).map_err(|argv| on_cause(Cause::NoSuchStep(argv)))?;
        if script.is_unpreparable {
            return Err(on_cause(Cause::AsAsked));
        }
        if self.machine.attempts.lock().insert(id, Attempt::Prepared).is_some() {
            return Err(on_cause(Cause::Exists));
        }
        self.own = Some(id);
        self.ready = Some(Ready { script, spec: spec.clone(), stdio });
        Ok(())
    }

    fn start(&mut self, _deadline: &dyn Fn() -> Boottime) -> Result<(), Error> {
        let mut start = || {
            let (id, run) = (self.own()?, self.run()?);
            self.machine.attempts.lock().insert(id, Attempt::Running(run));
            Ok(())
        };
        start().map_err(|cause: Cause| Error::Start(cause.into()))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        let send = || {
            if let Attempt::Running(run) = self.look()?
                && (signal == Signal::KILL || !run.is_stubborn)
            {
                let exit = Exit::Signal(signal.as_raw());
                let over = Run { ends_at: self.machine.now(), exit, ..run };
                self.machine.attempts.lock().insert(self.own()?, Attempt::Over(over));
            }
            Ok(())
        };
        send().map_err(|cause: Cause| Error::Signal(cause.into()))
    }

    fn exit(&mut self) -> Result<Option<Exit>, Error> {
        match self.look().map_err(|cause| Error::Exit(cause.into()))? {
            Attempt::Over(run) => Ok(Some(run.exit)),
            Attempt::Prepared | Attempt::Running(_) => Ok(None),
        }
    }

    fn wake(&self) -> Wake<'_> {
        Wake::At(match self.look() {
            Ok(Attempt::Running(run) | Attempt::Over(run)) => run.ends_at,
            Ok(Attempt::Prepared) | Err(_) => Boottime::NEVER,
        })
    }

    fn stats(&mut self) -> Result<Stats, Error> {
        let now = self.machine.now();
        let attempt = self.look().map_err(|cause| Error::Stats(cause.into()))?;
        let (Attempt::Running(run) | Attempt::Over(run)) = attempt else {
            return Ok(Stats::default());
        };
        let cpu = run.since.until(run.ends_at.min(now));
        let usage = Usage { peak_memory_bytes: PEAK_MEMORY_BYTES, cpu };
        Ok(Stats { usage, is_oom_killed: run.is_oom_killed, scratch_bytes: None })
    }

    fn cleanup(&mut self, id: AttemptId) -> Result<(), Error> {
        self.machine.attempts.lock().remove(&id);
        if self.own == Some(id) {
            self.ready = None;
        }
        Ok(())
    }

    fn list_orphans(&self) -> Result<Vec<AttemptId>, Error> {
        Ok(self.machine.attempts())
    }
}
