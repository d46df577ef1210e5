//! What the sharder counts, under `windlass_sharding_`. Requests to the API server are counted by
//! `kubekit`, under the same prefix.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::core::membership::State;
use crate::kubernetes::RingStatus;

/// What every name begins with; the registry puts a `_` behind it.
pub(super) const PREFIX: &str = "windlass_sharding";

type Ratio = Gauge<f64, AtomicU64>;
type Histograms = Family<OfRing, Histogram, fn() -> Histogram>;

/// The numbers of one process. Clones count together.
#[derive(Clone)]
pub(super) struct Metrics {
    assignments: Family<OfRing, Counter>,
    moves: Family<OfMove, Counter>,
    drains: Family<OfRing, Counter>,
    forced_moves: Family<OfRing, Counter>,
    drain_seconds: Histograms,
    unassigned: Family<OfRing, Gauge>,
    unassigned_seconds: Histograms,
    instances: Family<OfState, Gauge>,
    objects: Family<OfInstance, Gauge>,
    imbalance_ratio: Family<OfRing, Ratio>,
    table_epoch: Family<OfRing, Gauge>,
    pass_seconds: Histograms,
    queue_depth: Family<OfRing, Gauge>,
    /// Instances that have a number of objects, so that it can be taken back.
    counted: Arc<Mutex<Vec<OfInstance>>>,
}

/// The numbers of one ring.
#[derive(Clone)]
pub(super) struct RingMetrics {
    metrics: Metrics,
    ring: OfRing,
}

/// Why an object has changed its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveReason {
    /// Its owner gave it up.
    Drained,
    /// Its owner was gone.
    Departed,
    /// Its owner did not give it up in time.
    Forced,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRing {
    ring: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfMove {
    ring: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    ring: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfInstance {
    ring: String,
    instance: String,
}

// === impl Metrics ===

impl Metrics {
    /// Counts in `registry`, which carries the [`PREFIX`].
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            assignments: Family::default(),
            moves: Family::default(),
            drains: Family::default(),
            forced_moves: Family::default(),
            drain_seconds: Family::new_with_constructor(seconds),
            unassigned: Family::default(),
            unassigned_seconds: Family::new_with_constructor(seconds),
            instances: Family::default(),
            objects: Family::default(),
            imbalance_ratio: Family::default(),
            table_epoch: Family::default(),
            pass_seconds: Family::new_with_constructor(seconds),
            queue_depth: Family::default(),
            counted: Arc::default(),
        };
        metrics.register(registry);
        metrics
    }

    /// The suffix `_total` of counters is added when they are printed.
    fn register(&self, registry: &mut Registry) {
        let objects = "Objects given to an instance that were nobody's";
        registry.register("assignments", objects, self.assignments.clone());
        let moves = "Objects taken from one instance for another, by why";
        registry.register("moves", moves, self.moves.clone());
        let drains = "Objects that an instance was asked to give up";
        registry.register("drains", drains, self.drains.clone());
        let forced = "Objects taken from an instance that did not give them up in time";
        registry.register("forced_moves", forced, self.forced_moves.clone());
        let drain = "Time from asking for an object to its being given up";
        registry.register("drain_seconds", drain, self.drain_seconds.clone());
        registry.register("unassigned", "Objects without an owner", self.unassigned.clone());
        let unassigned = "Time from seeing an object without an owner to its having one";
        registry.register("unassigned_seconds", unassigned, self.unassigned_seconds.clone());
        registry.register("instances", "Instances, by state", self.instances.clone());
        let objects = "Objects of an instance, as last counted";
        registry.register("objects", objects, self.objects.clone());
        let ratio = "The fullest instance compared with the mean, as last counted";
        registry.register("imbalance_ratio", ratio, self.imbalance_ratio.clone());
        registry.register("table_epoch", "Changes of the table", self.table_epoch.clone());
        let pass = "Time to go through all objects that a pass looks for";
        registry.register("pass_seconds", pass, self.pass_seconds.clone());
        registry.register("queue_depth", "Objects on their way", self.queue_depth.clone());
    }

    /// Its counters are there from the beginning, so that the first event is seen as an increase.
    pub(super) fn of_ring(&self, ring: &str) -> RingMetrics {
        let of_ring = OfRing { ring: ring.to_owned() };
        for counter in [&self.assignments, &self.drains, &self.forced_moves] {
            drop(counter.get_or_create(&of_ring));
        }
        for reason in MoveReason::ALL.map(MoveReason::label) {
            drop(self.moves.get_or_create(&OfMove { ring: ring.to_owned(), reason }));
        }
        RingMetrics { metrics: self.clone(), ring: of_ring }
    }

    /// We no longer look at the ring; what we saw last would be taken for what is.
    pub(super) fn forget(&self, ring: &str) {
        let of_ring = OfRing { ring: ring.to_owned() };
        self.unassigned.remove(&of_ring);
        self.imbalance_ratio.remove(&of_ring);
        self.table_epoch.remove(&of_ring);
        self.queue_depth.remove(&of_ring);
        for state in State::ALL {
            self.instances.remove(&OfState { ring: ring.to_owned(), state: state.as_str() });
        }
        self.counted.lock().retain(|labels| {
            let is_other = labels.ring != ring;
            if !is_other {
                self.objects.remove(labels);
            }
            is_other
        });
    }
}

// === impl RingMetrics ===

impl RingMetrics {
    pub(super) fn on_assigned(&self, waited: Option<Duration>) {
        self.metrics.assignments.get_or_create(&self.ring).inc();
        if let Some(waited) = waited {
            let waits = self.metrics.unassigned_seconds.get_or_create(&self.ring);
            waits.observe(waited.as_secs_f64());
        }
    }

    pub(super) fn on_moved(&self, reason: MoveReason) {
        let labels = OfMove { ring: self.ring.ring.clone(), reason: reason.label() };
        self.metrics.moves.get_or_create(&labels).inc();
        if reason == MoveReason::Forced {
            self.metrics.forced_moves.get_or_create(&self.ring).inc();
        }
    }

    pub(super) fn on_drained(&self) {
        self.metrics.drains.get_or_create(&self.ring).inc();
    }

    pub(super) fn on_given_up(&self, took: Duration) {
        self.metrics.drain_seconds.get_or_create(&self.ring).observe(took.as_secs_f64());
    }

    pub(super) fn on_pass(&self, took: Duration) {
        self.metrics.pass_seconds.get_or_create(&self.ring).observe(took.as_secs_f64());
    }

    pub(super) fn set_traffic(&self, unassigned: usize, on_their_way: usize) {
        self.metrics.unassigned.get_or_create(&self.ring).set(count(unassigned));
        self.metrics.queue_depth.get_or_create(&self.ring).set(count(on_their_way));
    }

    pub(super) fn set_table(&self, epoch: u64, imbalance: Option<f64>) {
        let epoch = i64::try_from(epoch).unwrap_or(i64::MAX);
        self.metrics.table_epoch.get_or_create(&self.ring).set(epoch);
        if let Some(ratio) = imbalance {
            self.metrics.imbalance_ratio.get_or_create(&self.ring).set(ratio);
        }
    }

    pub(super) fn set_members(&self, status: &RingStatus) {
        let ring = &self.ring.ring;
        for state in State::ALL.map(State::as_str) {
            let those = status.members.iter().filter(|member| member.state == state).count();
            let labels = OfState { ring: ring.clone(), state };
            self.metrics.instances.get_or_create(&labels).set(count(those));
        }
        let mut counted = self.metrics.counted.lock();
        let (gone, mut kept): (Vec<_>, Vec<_>) = counted.drain(..).partition(|labels| {
            let mut members = status.members.iter();
            labels.ring == *ring && !members.any(|it| it.id.as_str() == labels.instance)
        });
        for labels in &gone {
            self.metrics.objects.remove(labels);
        }
        for member in &status.members {
            let labels = OfInstance { ring: ring.clone(), instance: member.id.to_string() };
            let objects = i64::try_from(member.objects).unwrap_or(i64::MAX);
            self.metrics.objects.get_or_create(&labels).set(objects);
            if !kept.contains(&labels) {
                kept.push(labels);
            }
        }
        *counted = kept;
    }
}

// === impl MoveReason ===

impl MoveReason {
    const ALL: [Self; 3] = [Self::Drained, Self::Departed, Self::Forced];

    fn label(self) -> &'static str {
        match self {
            Self::Drained => "drained",
            Self::Departed => "departed",
            Self::Forced => "forced",
        }
    }
}

/// 5 ms to 5 min: a handover is expected within a tenth of a second, a forced one within half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.0, 17))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
