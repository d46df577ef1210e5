//! The autoscaler's own loop in the simulation: its iterations, its writes and its calls, and its death
//! before or after any of them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use autoscaler::cluster::State;
use autoscaler::core::Memory;
use autoscaler::options::Options;
use autoscaler::{Parts, Recorder, Stepped};
use jiff::Timestamp;
use parking_lot::Mutex;
use registry::Registry;
use simcloud::handle::Handle;

use super::Sim;
use super::cluster::{Shared, SharedCluster};
use super::provider::Machines;

/// Looks at removals between two iterations.
const DRAIN_STEPS: usize = 3;

/// A process of the autoscaler.
pub(crate) struct Process {
    stepped: Stepped<Machines, SharedCluster>,
    common: Common,
}

/// What a process and the rest of the world share while it does something.
struct Common {
    handle: Handle,
    shared: Arc<Mutex<Shared>>,
    now: Arc<Mutex<Timestamp>>,
    leads: Arc<AtomicBool>,
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
        let leads = Arc::new(AtomicBool::new(true));
        let shared = Arc::new(Mutex::new(Shared { leads: leads.clone(), ..Shared::default() }));
        let asked = leads.clone();
        let parts = Parts {
            provider: Machines { handle: handle.clone(), shared: shared.clone() },
            cluster: Arc::new(SharedCluster(shared.clone())),
            clock,
            leads: Arc::new(move || asked.load(Ordering::Relaxed)),
            recorder,
        };
        let common = Common { handle, shared, now, leads };
        let stepped = Stepped::new(sim.options(), parts);
        common.shared.lock().stop = stepped.stop();
        Self { stepped, common }
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
        self.enter(&process.common);
        let lived = finish(&process.common, std::pin::pin!(live(&mut process.stepped)));
        self.leave(&process.common);
        self.look_into(&process);
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

    /// One iteration that stops at a point; then others go on without it, one of whom leads, until it
    /// wakes and does what is left. False if it never came to that point.
    pub(crate) fn iterate_asleep(
        &mut self,
        point: usize,
        meanwhile: impl FnOnce(&mut Self),
    ) -> bool {
        let mut sleeper = match self.process.take() {
            Some(process) => process,
            None => Process::new(self, None),
        };
        self.dies_at = Some(point);
        self.enter(&sleeper.common);
        let Process { stepped, common } = &mut sleeper;
        let mut work = std::pin::pin!(live(stepped));
        let slept = finish(common, work.as_mut()).is_err();
        self.leave(common);
        self.dies_at = None;
        if slept {
            common.leads.store(false, Ordering::Relaxed);
            meanwhile(self);
            self.enter(common);
            finish(common, work).expect("it does not stop again");
            self.leave(common);
        }
        slept
    }

    /// Whether a process that sleeps at this point calls the provider as soon as it wakes.
    pub(crate) fn is_before_a_call(&self, point: usize) -> bool {
        self.calling.contains(&point)
    }

    /// The process sees the world as it is.
    fn enter(&mut self, common: &Common) {
        *common.now.lock() = self.now;
        common.handle.with(|cloud, _| cloud.clone_from(&self.cloud));
        let mut shared = common.shared.lock();
        shared.at = self.elapsed();
        shared.now = self.now;
        shared.is_fenced = self.is_fenced;
        (shared.points, shared.dies_at) = (self.points, self.dies_at);
        (shared.reads, shared.interruption) = (self.reads, self.interruption);
        shared.saved = self.saved.take();
        std::mem::swap(&mut shared.kube, &mut self.kube);
    }

    /// The world is as the process has left it.
    fn leave(&mut self, common: &Common) {
        common.handle.with(|cloud, _| self.cloud.clone_from(cloud));
        let mut shared = common.shared.lock();
        (self.points, self.reads) = (shared.points, shared.reads);
        self.saved = shared.saved.take();
        self.calls.append(&mut shared.calls);
        self.events.append(&mut shared.events);
        self.calling.append(&mut shared.calling);
        std::mem::swap(&mut shared.kube, &mut self.kube);
    }

    /// What the process thinks.
    fn look_into(&mut self, process: &Process) {
        if let Some(registry) = process.stepped.registry() {
            self.registry = registry.clone();
        }
        if let Some(memory) = process.stepped.memory() {
            self.memory = memory.clone();
        }
        self.account = process.stepped.account().unwrap_or_default();
    }
}

async fn live(stepped: &mut Stepped<Machines, SharedCluster>) {
    // An iteration that could not look, or save, is tried again by the next.
    drop(stepped.iterate().await);
    for _ in 0..DRAIN_STEPS {
        if stepped.memory().is_some_and(|memory| !memory.drains.is_empty()) {
            drop(stepped.step_drains().await);
        }
    }
}

/// Runs to the end, or to the point at which the process dies. Nothing here waits for time or for others,
/// so whoever is not done has only let others have their turn.
fn finish(common: &Common, mut work: Pin<&mut impl Future<Output = ()>>) -> Result<(), Killed> {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(()) => return Ok(()),
            Poll::Pending if common.shared.lock().is_dead() => return Err(Killed),
            Poll::Pending => {}
        }
    }
}
