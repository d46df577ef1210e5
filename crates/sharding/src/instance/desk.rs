//! Where everything about an instance comes together: the core that decides, the reconciles that run,
//! and the commands that wait to be carried out. Sends nothing and waits for nothing.
//!
//! The core is behind a lock, for it is asked before every poll of every reconcile, on whatever thread;
//! a message to an owner could not be answered there. Nothing is awaited, and nobody woken, while the
//! lock is held.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::assignments::Assignments;
use super::kind::Subject;
use super::leash::{Leash, Run};
use super::metrics::{Cause, Metrics};
use crate::core::instance::{Command, Event, Instance};
use crate::core::object::{Object, ObjectName};
use crate::core::time::{Moment, Now};

/// Where the time comes from.
pub(super) type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// A wait shorter than this is not worth a timer.
const WAIT_MIN: Duration = Duration::from_millis(1);

pub(super) struct Desk {
    clock: Clock,
    metrics: Metrics,
    /// The policy by which the API server refuses what is not ours.
    fence: String,
    state: Mutex<State>,
    /// There may be something to carry out.
    bell: Notify,
}

struct State {
    engine: Instance,
    /// At most one about the Lease, and a few for each object that is to be given up.
    outbox: Vec<Command>,
    /// Several controllers of one process may work on an object; the core counts them as one.
    runs: BTreeMap<ObjectName, Vec<Arc<Leash>>>,
    /// The kinds that are worked on here. They only grow in number.
    subjects: Vec<Subject>,
    assignments: Assignments,
    /// When whoever carries commands out looks next by itself.
    looks_at: Moment,
    /// Nobody carries commands out any more.
    is_over: bool,
}

// === impl Desk ===

impl Desk {
    pub(super) fn new(
        engine: Instance,
        clock: Clock,
        metrics: Metrics,
        fence: String,
    ) -> Arc<Self> {
        let state = State {
            engine,
            outbox: Vec::new(),
            runs: BTreeMap::new(),
            subjects: Vec::new(),
            assignments: Assignments::default(),
            looks_at: Moment(Duration::ZERO),
            is_over: false,
        };
        Arc::new(Self { clock, metrics, fence, state: Mutex::new(state), bell: Notify::new() })
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn now(&self) -> Moment {
        (self.clock)().mono
    }

    pub(super) fn tell(&self, event: Event) {
        let now = (self.clock)();
        let is_due = {
            let mut state = self.state.lock();
            state.tell(now, event);
            state.is_due(now.mono)
        };
        self.ring_if(is_due);
    }

    /// What is to be carried out, each once.
    pub(super) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut self.state.lock().outbox)
    }

    /// Waits until there may be something to carry out.
    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// How long nothing is due, if nothing happens.
    pub(super) fn idle_for(&self) -> Duration {
        let now = self.now();
        let mut state = self.state.lock();
        state.looks_at = state.engine.wake_at(now);
        state.looks_at.since(now).max(WAIT_MIN)
    }

    /// How long the Lease is good for without another renewal.
    pub(super) fn margin(&self) -> Option<Duration> {
        let now = self.now();
        self.state.lock().engine.deadline().map(|deadline| deadline.since(now))
    }

    pub(super) fn term(&self) -> Option<i32> {
        self.state.lock().engine.term()
    }

    /// Begins a reconcile of the object, if it may: what a cache shows of it is checked against what is
    /// known.
    pub(super) fn begin(self: &Arc<Self>, object: &Object) -> Option<Run> {
        let now = (self.clock)();
        let (leash, is_due) = {
            let mut state = self.state.lock();
            (state.begin(object, now), state.is_due(now.mono))
        };
        self.ring_if(is_due);
        leash.map(|leash| Run::new(Arc::clone(self), object.name.clone(), leash))
    }

    /// Whether a reconcile may take another step, as far as the Lease is concerned.
    pub(super) fn may_go_on(&self) -> bool {
        let now = self.now();
        let state = self.state.lock();
        !state.is_over && state.engine.may_go_on(now)
    }

    /// A reconcile has failed. If it was the fence that stopped it, somebody should know how often.
    pub(super) fn on_error(&self, error: &(dyn Error + 'static)) {
        if is_refused_by(&self.fence, error) {
            self.metrics.on_fenced_write();
        }
    }

    pub(super) fn on_run_ended(&self, name: &ObjectName, leash: &Arc<Leash>) {
        let now = (self.clock)();
        let is_due = {
            let mut state = self.state.lock();
            state.on_run_ended(name, leash, now);
            state.is_due(now.mono)
        };
        self.ring_if(is_due);
    }

    /// Stops the reconciles of one object. They are gone when their futures are.
    pub(super) fn cancel(&self, name: &ObjectName) {
        let leashes = self.state.lock().runs.get(name).cloned();
        self.cut(leashes.into_iter().flatten(), Cause::Drain);
    }

    /// Nothing begins any more, and what runs is stopped.
    pub(super) fn close(&self) {
        let leashes: Vec<Arc<Leash>> = {
            let mut state = self.state.lock();
            state.is_over = true;
            state.runs.values().flatten().cloned().collect()
        };
        self.cut(leashes, Cause::Lease);
    }

    /// Objects of this kind are worked on here.
    pub(super) fn add_subject(&self, subject: Subject) {
        let mut state = self.state.lock();
        if !state.subjects.iter().any(|known| known.kind == subject.kind) {
            state.subjects.push(subject);
        }
        drop(state);
        self.bell.notify_one();
    }

    /// The kinds, without those that came first.
    pub(super) fn subjects_after(&self, known: usize) -> Vec<Subject> {
        self.state.lock().subjects.iter().skip(known).cloned().collect()
    }

    /// The object has left the watch of those that are to be given up. If it was not us who let it go,
    /// it is to be read.
    pub(super) fn on_unselected(&self, name: &ObjectName) {
        let mut state = self.state.lock();
        if state.engine.awaits_news_of(name) {
            state.outbox.push(Command::ReadObject(name.clone()));
        }
        drop(state);
        self.bell.notify_one();
    }

    /// Differs between one assignment of the object to us and the next.
    pub(super) fn assignment(&self, name: &ObjectName) -> u64 {
        self.state.lock().assignments.number(name)
    }

    /// Most reconciles begin and end with nothing to carry out, and there are many of them.
    fn ring_if(&self, is_due: bool) {
        if is_due {
            self.bell.notify_one();
        }
    }

    fn cut(&self, leashes: impl IntoIterator<Item = Arc<Leash>>, cause: Cause) {
        for leash in leashes {
            if leash.cut() {
                self.metrics.on_cancelled(cause);
            }
        }
    }
}

// === impl State ===

impl State {
    /// Whether there is something to carry out, or will be sooner than it is looked by itself.
    fn is_due(&self, now: Moment) -> bool {
        !self.outbox.is_empty() || self.engine.wake_at(now) < self.looks_at
    }

    fn tell(&mut self, now: Now, event: Event) {
        match &event {
            Event::Tick => self.assignments.prune(now.mono),
            Event::Left(name) => self.assignments.on_left(name, now.mono),
            Event::Seen(object) if !self.engine.is_mine(object) => {
                self.assignments.on_left(&object.name, now.mono);
            }
            _ => {}
        }
        let commands = self.engine.on(now, event);
        for command in &commands {
            if let Command::Acknowledge { name, .. } = command {
                self.assignments.on_left(name, now.mono);
            }
        }
        self.outbox.extend(commands);
    }

    fn begin(&mut self, object: &Object, now: Now) -> Option<Arc<Leash>> {
        if self.is_over {
            return None;
        }
        // A cache of ours shows what carries our id. It may be the first to show a drain label, and the
        // first to show that it is gone.
        if self.engine.is_mine(object) {
            self.tell(now, Event::Seen(Box::new(object.clone())));
        }
        if !self.engine.begin(object, now.mono) {
            return None;
        }
        let leash = Arc::new(Leash::default());
        self.runs.entry(object.name.clone()).or_default().push(Arc::clone(&leash));
        Some(leash)
    }

    fn on_run_ended(&mut self, name: &ObjectName, leash: &Arc<Leash>, now: Now) {
        let Some(runs) = self.runs.get_mut(name) else { return };
        runs.retain(|other| !Arc::ptr_eq(other, leash));
        if runs.is_empty() {
            self.runs.remove(name);
            self.tell(now, Event::Ended(name.clone()));
        }
    }
}

/// Whether an admission policy has refused the request behind this error.
pub(super) fn is_refused_by(policy: &str, error: &(dyn Error + 'static)) -> bool {
    let words = format!("ValidatingAdmissionPolicy '{policy}'");
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let mut refusals = causes.filter_map(|cause| {
        let boxed = || cause.downcast_ref::<Box<kube::Error>>().map(|boxed| &**boxed);
        match cause.downcast_ref::<kube::Error>().or_else(boxed)? {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    });
    refusals.any(|status| status.message.contains(&words))
}
