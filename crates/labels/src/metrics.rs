//! What the service counts, under `windlass_labels_`. Numbers that can be read off a state are
//! read when somebody scrapes ([`StateMetrics`](crate::processor)); here is what happens and is
//! gone. Requests to the API server are counted by `kubekit`, under the same prefix.

use kubekit::follow::End;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

/// What every name begins with; the registry puts a `_` behind it.
pub(crate) const PREFIX: &str = "windlass_labels";

/// A number with a fraction.
pub(crate) type Seconds = Gauge<f64, std::sync::atomic::AtomicU64>;

/// The counters of one process, whichever services it runs. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    transactions_created: Family<Created, Counter>,
    missed_deletes_recovered: Family<RecoveredBy, Counter>,
    checkpoint_lag: Seconds,
    watch_gap: Seconds,
    watch_restarts: Family<Restart, Counter>,
    processed: Family<OfRow, Counter>,
    restores: Histogram,
    conflicts: Counter,
    locks: Family<LockResult, Counter>,
    /// Only where it is known: a replica that never looked has no share to tell, not even none.
    nodes_restored_ratio: Family<Unlabelled, Seconds>,
    store_bytes: Family<OfStore, Gauge>,
}

/// One of the places where the service keeps things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// As every processor sees it.
    Transactions,
    /// As the processor sees it that looks after everything.
    Records,
    /// As every watcher sees it.
    Checkpoints,
}

/// What is followed by a watch. Of these, only nodes can be missed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Nodes,
    /// With their labels, by processors.
    Transactions,
    /// By watchers.
    TransactionNames,
    Checkpoints,
}

/// How the attempt to post a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    Created,
    /// Another watcher, or an earlier attempt of our own, was first.
    AlreadyExists,
    /// Another watcher's was seen before our turn came.
    Seen,
    /// Tried again later.
    Failed,
    /// Said, and not tried.
    DryRun,
}

/// How the attempt to lock a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    Acquired,
    /// Another processor works on the node.
    Refused,
    /// Held, and no longer safe to write under.
    Lost,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Created {
    r#type: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RecoveredBy {
    by: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Restart {
    watch: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRow {
    row: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LockResult {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStore {
    store: &'static str,
}

/// For a number that is there or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Unlabelled {}

// === impl Metrics ===

impl Metrics {
    /// Counts in `registry`, which carries the [`PREFIX`].
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            transactions_created: Family::default(),
            missed_deletes_recovered: Family::default(),
            checkpoint_lag: Gauge::default(),
            watch_gap: Gauge::default(),
            watch_restarts: Family::default(),
            processed: Family::default(),
            // 50 ms to 27 min: a restore is expected below a second, a late one within minutes.
            restores: Histogram::new(exponential_buckets(0.05, 2.0, 16)),
            conflicts: Counter::default(),
            locks: Family::default(),
            nodes_restored_ratio: Family::default(),
            store_bytes: Family::default(),
        };
        metrics.register(registry);
        metrics
    }

    /// The suffix `_total` of counters is added when they are printed.
    fn register(&self, registry: &mut Registry) {
        let Self { transactions_created, missed_deletes_recovered, .. } = self;
        registry.register(
            "transactions_created",
            "Transactions posted, by what became of it",
            transactions_created.clone(),
        );
        registry.register(
            "missed_deletes_recovered",
            "Deletions nobody saw, recovered from what was remembered",
            missed_deletes_recovered.clone(),
        );
        let lag = "Age of the oldest change of labels that is in no checkpoint";
        registry.register("checkpoint_lag_seconds", lag, self.checkpoint_lag.clone());
        let gap = "Time since something was heard of nodes";
        registry.register("watch_gap_seconds", gap, self.watch_gap.clone());
        registry.register("watch_restarts", "Watches begun anew", self.watch_restarts.clone());
        let processed = "Decisions carried out, by the row of the table that made them";
        registry.register("processed", processed, self.processed.clone());
        let restores = "Time from a node's creation to its restored labels";
        registry.register("restore_seconds", restores, self.restores.clone());
        let conflicts = "Writes refused because the object had changed";
        registry.register("conflicts", conflicts, self.conflicts.clone());
        registry.register("lock", "Attempts to lock a node", self.locks.clone());
        let ratio = "Share of live nodes with a record that have its labels; set by resync";
        registry.register("nodes_restored_ratio", ratio, self.nodes_restored_ratio.clone());
        let bytes = "Size of what is kept, about";
        registry.register("store_bytes", bytes, self.store_bytes.clone());
    }

    pub(crate) fn on_posted(&self, kind: &'static str, posted: Posted) {
        let labels = Created { r#type: kind, result: posted.label() };
        self.transactions_created.get_or_create(&labels).inc();
    }

    /// `by` names what remembered the labels: `gap`, `list` or `checkpoint`.
    pub(crate) fn on_missed_delete(&self, by: &'static str) {
        self.missed_deletes_recovered.get_or_create(&RecoveredBy { by }).inc();
    }

    pub(crate) fn set_checkpoint_lag(&self, seconds: f64) {
        self.checkpoint_lag.set(seconds);
    }

    pub(crate) fn set_watch_gap(&self, seconds: f64) {
        self.watch_gap.set(seconds);
    }

    pub(crate) fn on_watch_restart(&self, watched: Watched, reason: &'static str) {
        let labels = Restart { watch: watched.label(), reason };
        self.watch_restarts.get_or_create(&labels).inc();
    }

    pub(crate) fn on_watch_end(&self, watched: Watched, end: End) {
        let reason = match end {
            End::Ended => "ended",
            End::Silent => "silent",
        };
        self.on_watch_restart(watched, reason);
    }

    pub(crate) fn on_processed(&self, row: &'static str) {
        self.processed.get_or_create(&OfRow { row }).inc();
    }

    pub(crate) fn on_restored(&self, seconds_since_creation: f64) {
        self.restores.observe(seconds_since_creation);
    }

    pub(crate) fn on_conflict(&self) {
        self.conflicts.inc();
    }

    pub(crate) fn on_lock(&self, locked: Locked) {
        self.locks.get_or_create(&LockResult { result: locked.label() }).inc();
    }

    pub(crate) fn set_nodes_restored_ratio(&self, ratio: f64) {
        self.nodes_restored_ratio.get_or_create(&Unlabelled {}).set(ratio);
    }

    pub(crate) fn set_store_bytes(&self, store: Store, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.store_bytes.get_or_create(&store.labels()).set(bytes);
    }

    /// We no longer look at everything; what we saw last would be taken for what is.
    pub(crate) fn forget_resync(&self) {
        self.store_bytes.remove(&Store::Records.labels());
        self.nodes_restored_ratio.remove(&Unlabelled {});
    }
}

// === impl Store ===

impl Store {
    fn labels(self) -> OfStore {
        let store = match self {
            Self::Transactions => "transactions",
            Self::Records => "records",
            Self::Checkpoints => "checkpoints",
        };
        OfStore { store }
    }
}

// === impl Watched ===

impl Watched {
    fn label(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Transactions => "transactions",
            Self::TransactionNames => "transaction-names",
            Self::Checkpoints => "checkpoints",
        }
    }
}

// === impl Posted ===

impl Posted {
    fn label(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::AlreadyExists => "exists",
            Self::Seen => "seen",
            Self::Failed => "failed",
            Self::DryRun => "dry-run",
        }
    }
}

// === impl Locked ===

impl Locked {
    fn label(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }
}
