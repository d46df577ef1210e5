//! An instance that works, with a clock that stands still until it is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::noop_waker_ref;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::json;

use crate::core::instance::{Command, Event, Identity, Instance, Options, Outcome};
use crate::core::names::{Dialect, Names};
use crate::core::object::{GroupKind, Object, Version};
use crate::core::time::{Moment, Now, later};
use crate::instance::desk::Desk;
use crate::instance::metrics::Metrics;
use crate::instance::standing::Standing;
use crate::instance::{Seat, Shard, lifecycle};
use crate::kubernetes;

pub(super) const D: Duration = Duration::from_secs(15);
pub(super) const GRACE: Duration = Duration::from_secs(10);
pub(super) const FENCE: &str = "windlass-fence-sites";

pub(super) struct Scene {
    pub(super) shard: Shard,
    pub(super) desk: Arc<Desk>,
    now: Arc<Mutex<Duration>>,
    /// When the Lease was last renewed.
    renewed: Duration,
}

/// Makes futures that wait for ever, and tells how often they were polled and whether all are gone.
#[derive(Clone, Default)]
pub(super) struct Probe {
    polls: Arc<AtomicUsize>,
    living: Arc<AtomicUsize>,
}

/// Counts as living until it is dropped.
struct Living(Arc<AtomicUsize>);

pub(super) fn names() -> Names {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Names::new("sites".parse().unwrap(), dialect)
}

/// As it is stored, in this version, with or without a drain label.
pub(super) fn stored(shard: &str, version: u32, is_draining: bool) -> ConfigMap {
    let mut labels = json!({names().shard_label(): shard});
    if is_draining {
        labels[names().drain_label()] = json!("1700000100");
    }
    let metadata = json!({
        "name": "a", "namespace": "shop", "uid": "u1", "generation": 1,
        "resourceVersion": version.to_string(), "labels": labels,
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

pub(super) fn seen(shard: &str, version: u32, is_draining: bool) -> Object {
    let metadata = stored(shard, version, is_draining).metadata;
    kubernetes::object(&names(), &GroupKind::new("", "ConfigMap"), &metadata).unwrap()
}

pub(super) fn identity() -> Identity {
    Identity {
        names: names(),
        id: "a-0".parse().unwrap(),
        namespace: "shop".to_owned(),
        incarnation: "i".to_owned(),
        pod: None,
        weight: None,
    }
}

fn instance() -> Instance {
    let options = Options { identity: identity(), duration: D, grace: GRACE };
    Instance::new(options, Moment(Duration::ZERO))
}

// === impl Scene ===

impl Scene {
    pub(super) fn new() -> Self {
        let now = Arc::new(Mutex::new(Duration::ZERO));
        let clock = {
            let (now, start) = (Arc::clone(&now), Timestamp::from_second(1_700_000_000).unwrap());
            move || {
                let now = *now.lock();
                Now { mono: Moment(now), wall: later(start, now) }
            }
        };
        let desk = Desk::new(instance(), Arc::new(clock), Metrics::default(), FENCE.to_owned());
        let seat = Seat {
            names: names(),
            id: "a-0".parse().unwrap(),
            incarnation: "i".to_owned(),
            stateful_set: None,
            desk: Arc::clone(&desk),
            standing: Arc::new(Standing::default()),
            _keeping: lifecycle::keep(std::future::pending()),
        };
        let mut scene =
            Self { shard: Shard { seat: Arc::new(seat) }, desk, now, renewed: Duration::ZERO };
        scene.join();
        scene
    }

    pub(super) fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.shard.seat.standing)
    }

    fn join(&mut self) {
        self.desk.tell(Event::Tick);
        assert_eq!(self.desk.take_commands(), [Command::ReadLease]);
        self.desk.tell(Event::LeaseRead { lease: None, ring: None });
        self.answer_write();
        assert_eq!(self.desk.take_commands(), [Command::AskCarried]);
        self.desk.tell(Event::Carried(false));
        assert_eq!(self.desk.take_commands(), [Command::Work]);
    }

    /// Time passes, and the Lease is renewed meanwhile. What else was to be done is returned.
    pub(super) fn pass(&mut self, time: Duration) -> Vec<Command> {
        let mut others = Vec::new();
        let until = *self.now.lock() + time;
        while *self.now.lock() < until {
            let next = (self.renewed + D / 5).min(until);
            *self.now.lock() = next;
            self.desk.tell(Event::Tick);
            others.extend(self.answer_write());
        }
        others
    }

    /// Time passes, and nothing else happens: the process is paused, or the server silent.
    pub(super) fn pause(&self, time: Duration) {
        *self.now.lock() += time;
    }

    /// Answers a write of the Lease, if there is one.
    fn answer_write(&mut self) -> Vec<Command> {
        let (writes, others): (Vec<_>, Vec<_>) = self
            .desk
            .take_commands()
            .into_iter()
            .partition(|command| matches!(command, Command::WriteLease { .. }));
        for command in writes {
            let Command::WriteLease { mut lease, .. } = command else { continue };
            self.renewed = *self.now.lock();
            lease.version = Version(self.renewed.as_millis().to_string());
            let sent = Moment(self.renewed);
            self.desk.tell(Event::LeaseWritten { sent, outcome: Outcome::Done(lease) });
        }
        others
    }
}

// === impl Probe ===

impl Probe {
    pub(super) fn future<T>(&self) -> impl Future<Output = T> + Send + use<T> {
        let Self { polls, living } = self.clone();
        living.fetch_add(1, Ordering::Relaxed);
        let living = Living(living);
        std::future::poll_fn(move |_context| {
            let Living(_count) = &living;
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        })
    }

    pub(super) fn polled(&self) -> usize {
        self.polls.load(Ordering::Relaxed)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.living.load(Ordering::Relaxed) == 0
    }
}

// === impl Living ===

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(noop_waker_ref()))
}
