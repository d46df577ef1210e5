//! One attempt on a runtime, a step at a time. Waits for nothing and knows no clock: whoever drives it
//! does, be it the poll loop of a shim or virtual time.

use std::time::Duration;

use crate::{
    AttemptId, Boottime, Exit, Medium, Outcome, Runtime, Spec, Usage,
    runtime::{Error, Stdio, Wake},
    shim::{chain, supervisor::Supervisor},
};

/// How often scratch files on a disk are measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub(crate) struct Session {
    runtime: Box<dyn Runtime>,
    id: AttemptId,
    spec: Spec,
    supervisor: Supervisor,
    /// When to measure scratch files next.
    measure_at: Boottime,
}

/// What the attempt came to, its last process gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(runtime: Box<dyn Runtime>, id: AttemptId, spec: &Spec) -> Self {
        Self {
            runtime,
            id,
            spec: spec.clone(),
            // Until the command starts there is nothing to time.
            supervisor: Supervisor::new(None, spec.grace, Boottime::default()),
            measure_at: Boottime::NEVER,
        }
    }

    pub(crate) fn prepare(&mut self, stdio: Stdio) -> Result<(), Error> {
        self.runtime.prepare(self.id, &self.spec, stdio)
    }

    /// Somebody wants it to end, maybe before it has begun.
    pub(crate) fn on_stop(&mut self, grace: Duration, now: Boottime) {
        self.supervisor.on_stop(grace, now);
    }

    /// Starts the command, unless it is to be stopped already. Tells if that was all.
    pub(crate) fn start(
        &mut self,
        now: Boottime,
        deadline: &dyn Fn() -> Boottime,
    ) -> Result<Option<Over>, Error> {
        if self.supervisor.due(now, deadline()).is_some() {
            self.clean_up()?;
            let outcome = Outcome::StoppedBeforeStart;
            return Ok(Some(Over { outcome, usage: Usage::default() }));
        }
        if let Err(error) = self.runtime.start(deadline) {
            self.clean_up()?;
            let outcome = Outcome::NeverStarted { reason: chain(&error) };
            return Ok(Some(Over { outcome, usage: Usage::default() }));
        }
        self.supervisor = Supervisor::new(self.spec.timeout, self.spec.grace, now);
        if self.spec.limits.scratch_medium == Medium::Disk {
            self.measure_at = now + MEASURE_EVERY;
        }
        Ok(None)
    }

    /// Does what is due. Tells when it is over.
    pub(crate) fn turn(
        &mut self,
        now: Boottime,
        deadline: Boottime,
    ) -> Result<Option<Over>, Error> {
        if let Some(exit) = self.runtime.exit()? {
            return self.finish(exit).map(Some);
        }
        if now >= self.measure_at {
            self.measure(now)?;
        }
        if let Some(signal) = self.supervisor.due(now, deadline) {
            self.runtime.signal(signal)?;
        }
        Ok(None)
    }

    /// When the next turn is due, if nothing else happens.
    pub(crate) fn wake_at(&self, deadline: Boottime) -> Boottime {
        self.supervisor.wake_at(deadline).min(self.measure_at)
    }

    /// When the runtime may have something to tell.
    pub(crate) fn wake(&self) -> Wake<'_> {
        self.runtime.wake()
    }

    pub(crate) fn clean_up(&mut self) -> Result<(), Error> {
        self.runtime.cleanup(self.id)
    }

    fn finish(&mut self, exit: Exit) -> Result<Over, Error> {
        let stats = self.runtime.stats()?;
        self.clean_up()?;
        let outcome = self.supervisor.outcome(exit, stats.is_oom_killed);
        Ok(Over { outcome, usage: stats.usage })
    }

    fn measure(&mut self, now: Boottime) -> Result<(), Error> {
        let scratch_bytes = self.runtime.stats()?.scratch_bytes;
        if scratch_bytes.is_some_and(|bytes| bytes > self.spec.limits.scratch_bytes) {
            self.supervisor.on_scratch_exceeded(now);
        }
        self.measure_at = now + MEASURE_EVERY;
        Ok(())
    }
}
