//! The autoscaler's own loop in the simulation: its iterations, its writes and its calls, and its death
//! before or after any of them.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use autoscaler::cluster::State;
use autoscaler::core::Memory;
use autoscaler::options::Options;
use autoscaler::{Parts, Recorder, Stepped, TermError};
use jiff::Timestamp;
use parking_lot::Mutex;
use registry::Registry;
use simcloud::handle::Handle;

use super::Sim;
use super::cluster::{Shared, SharedCluster};
use super::provider::Machines;

/// Looks at removals between two iterations.
const DRAIN_STEPS: usize = 3;

/// A process of the autoscaler, and what it shares with the rest of the world while it does something.
pub(crate) struct Process {
    stepped: Stepped<Machines, SharedCluster>,
    handle: Handle,
    shared: Arc<Mutex<Shared>>,
    now: Arc<Mutex<Timestamp>>,
}

/// The process is no more.
#[derive(Debug)]
pub(crate) struct Killed;

/// What outlives the process, and how often it was written.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) state: State,
    pub(crate) version: u64,
}

// === impl Kept ===

impl Kept {
    /// Of a cluster that has been looked after: without a state, everything would be taken for begun.
    pub(crate) fn nothing_under_way() -> Self {
        let registry = Registry::new(registry::Config::default()).save();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a state is JSON");
        let plans = text(Memory::new().save());
        Self { state: State { registry: text(registry), plans }, version: 1 }
    }
}

// === impl Process ===

impl Process {
    fn new(sim: &Sim, recorder: Option<Recorder>) -> Self {
        let now = Arc::new(Mutex::new(sim.now));
        let read = now.clone();
        let clock: autoscaler::Clock = Arc::new(move || *read.lock());
        let handle = Handle::new(sim.cloud.clone(), clock.clone());
        let shared = Arc::new(Mutex::new(Shared::default()));
        let provider = Machines { handle: handle.clone(), shared: shared.clone() };
        let cluster = Arc::new(SharedCluster(shared.clone()));
        let parts = Parts { provider, cluster, clock, recorder };
        Self { stepped: Stepped::new(sim.options(), parts), handle, shared, now }
    }
}

// === impl Sim ===

impl Sim {
    /// One iteration of the autoscaler, and steps of its removals; or death and rebirth.
    pub(crate) fn iterate(&mut self) {
        if self.restarts_always {
            self.restart();
        }
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::new(self, self.recorder.clone()),
        };
        self.enter(&mut process);
        let lived = live(&mut process);
        self.leave(&mut process);
        match lived {
            Ok(()) => self.process = Some(process),
            Err(Killed) => {
                self.dies_at = None;
                self.restart();
            }
        }
    }

    /// As the process is told.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options {
            is_elected: false,
            registry: self.rules.clone(),
            plans: self.config.clone(),
            ..Options::new("simulated".to_owned())
        };
        (self.told)(&mut options);
        options
    }

    /// What the process answers whoever asks.
    pub(crate) fn explain(&self, name: &str) -> String {
        let process = self.process.as_ref().expect("it runs");
        process.stepped.explain(name).unwrap_or_default()
    }

    /// A new process will find what was saved.
    pub(crate) fn restart(&mut self) {
        self.process = None;
        if self.loses_state {
            self.saved = None;
        }
    }

    /// The process sees the world as it is.
    fn enter(&mut self, process: &mut Process) {
        *process.now.lock() = self.now;
        process.handle.with(|cloud, _| cloud.clone_from(&self.cloud));
        let mut shared = process.shared.lock();
        shared.at = self.elapsed();
        shared.now = self.now;
        shared.is_fenced = self.is_fenced;
        (shared.points, shared.dies_at) = (self.points, self.dies_at);
        shared.saved = self.saved.take();
        std::mem::swap(&mut shared.kube, &mut self.kube);
    }

    /// The world is as the process has left it.
    fn leave(&mut self, process: &mut Process) {
        process.handle.with(|cloud, _| self.cloud.clone_from(cloud));
        let mut shared = process.shared.lock();
        self.points = shared.points;
        self.saved = shared.saved.take();
        self.calls.append(&mut shared.calls);
        self.events.append(&mut shared.events);
        std::mem::swap(&mut shared.kube, &mut self.kube);
        if let Some(registry) = process.stepped.registry() {
            self.registry = registry.clone();
        }
        if let Some(memory) = process.stepped.memory() {
            self.memory = memory.clone();
        }
        self.account = process.stepped.account().unwrap_or_default();
    }
}

fn live(process: &mut Process) -> Result<(), Killed> {
    let Process { stepped, shared, .. } = process;
    finish(shared, stepped.iterate())?;
    for _ in 0..DRAIN_STEPS {
        if stepped.memory().is_some_and(|memory| !memory.drains.is_empty()) {
            finish(shared, stepped.step_drains())?;
        }
    }
    Ok(())
}

/// Runs to the end, or to the point at which the process dies. Nothing here waits for time or for others,
/// so whoever is not done has only let others have their turn.
fn finish(
    shared: &Mutex<Shared>,
    work: impl Future<Output = Result<(), TermError>>,
) -> Result<(), Killed> {
    let mut work = std::pin::pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match work.as_mut().poll(&mut context) {
            // An iteration that could not look, or save, is tried again by the next.
            Poll::Ready(_) => return Ok(()),
            Poll::Pending if shared.lock().is_dead() => return Err(Killed),
            Poll::Pending => {}
        }
    }
}
