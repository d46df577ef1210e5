//! What the store counts, under etcd's names where dashboards know them.
//!
//! | module | owns |
//! |---|---|
//! | this one | the counters that code reaches for: one atomic addition each |
//! | [`grpc`] | calls by method, outcome and time, and bytes on the wire |
//! | [`state`] | what is read off the state when somebody scrapes |
//! | [`process`] | what the operating system says of this process |
//! | [`classic`] | the older text format, in which etcd answers |

pub(crate) mod classic;
pub(crate) mod grpc;
mod latency;
mod process;
mod state;

use std::time::SystemTime;

use etcd_api::etcdserverpb::{TxnResponse, response_op::Response};
use prometheus_client::{
    metrics::{
        counter::Counter,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use self::grpc::GrpcMetrics;
pub(crate) use self::{process::ProcessMetrics, state::StateMetrics};

/// The counters of one store. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    puts: Counter,
    deletes: Counter,
    ranges: Counter,
    txns: Counter,
    leases_granted: Counter,
    leases_revoked: Counter,
    leases_renewed: Counter,
    leases_expired: Counter,
    /// Words of the member that writes that something is durable.
    tidings: Counter,
    /// How long the journal took to make batches durable.
    pub(crate) appends: Histogram,
    pub(crate) proposals: Proposals,
    pub(crate) watches: Watches,
    pub(crate) grpc: GrpcMetrics,
}

/// Commands on their way through the writer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposals {
    pending: Gauge,
    answered: Gauge,
    failed: Counter,
}

/// One command on its way. Dropped unanswered, it has failed for whoever asked.
pub(crate) struct Proposal<'p> {
    proposals: &'p Proposals,
    is_answered: bool,
}

/// What watch sessions count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    pub(crate) watches: Gauge,
    pub(crate) events: Counter,
}

/// What a transaction carried out.
#[derive(Default)]
struct Operations {
    puts: u64,
    deletes: u64,
    ranges: u64,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        // etcd's buckets, which dashboards compute quantiles from: 1 ms to 8 s.
        let appends = Histogram::new(exponential_buckets(0.001, 2.0, 14));
        let metrics = Self {
            puts: Counter::default(),
            deletes: Counter::default(),
            ranges: Counter::default(),
            txns: Counter::default(),
            leases_granted: Counter::default(),
            leases_revoked: Counter::default(),
            leases_renewed: Counter::default(),
            leases_expired: Counter::default(),
            tidings: Counter::default(),
            appends,
            proposals: Proposals::default(),
            watches: Watches::default(),
            grpc: GrpcMetrics::default(),
        };
        metrics.register(registry);
        metrics
    }

    /// The suffix `_total` of counters is added when they are printed.
    fn register(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("etcd_mvcc_put", "Puts carried out", &self.puts),
            ("etcd_mvcc_delete", "Deletes carried out", &self.deletes),
            ("etcd_mvcc_range", "Ranges read", &self.ranges),
            ("etcd_mvcc_txn", "Transactions of several operations", &self.txns),
            ("etcd_debugging_lease_granted", "Leases granted", &self.leases_granted),
            ("etcd_debugging_lease_revoked", "Leases revoked", &self.leases_revoked),
            ("etcd_debugging_lease_renewed", "Leases kept alive", &self.leases_renewed),
            ("etcd_debugging_server_lease_expired", "Leases that ended", &self.leases_expired),
            ("etcd_debugging_mvcc_events", "Events sent", &self.watches.events),
            ("etcd_server_proposals_failed", "Writes not answered", &self.proposals.failed),
        ] {
            registry.register(name, help, counter.clone());
        }
        let Proposals { pending, answered, .. } = &self.proposals;
        for (name, help, gauge) in [
            ("etcd_server_proposals_pending", "Writes under way", pending),
            ("etcd_server_proposals_committed_total", "Writes made durable", answered),
            ("etcd_server_proposals_applied_total", "Writes answered", answered),
            ("etcd_debugging_mvcc_watcher_total", "Watches", &self.watches.watches),
        ] {
            registry.register(name, help, gauge.clone());
        }
        // The journal does both at once; dashboards look at either.
        for name in
            ["etcd_disk_wal_fsync_duration_seconds", "etcd_disk_backend_commit_duration_seconds"]
        {
            registry.register(name, "Time to make a batch durable", self.appends.clone());
        }
        registry.register_collector(Box::new(self.grpc.clone()));
    }

    /// What only members that share a journal count: one that is alone tells nothing but etcd's names.
    pub(crate) fn register_shared(&self, registry: &mut Registry) {
        let help = "Words of new batches that were heard";
        registry.register("windlass_replica_tidings", help, self.tidings.clone());
    }

    pub(crate) fn on_put(&self) {
        self.puts.inc();
    }

    pub(crate) fn on_delete(&self) {
        self.deletes.inc();
    }

    pub(crate) fn on_range(&self) {
        self.ranges.inc();
    }

    pub(crate) fn on_txn(&self, response: &TxnResponse) {
        let mut operations = Operations::default();
        operations.add(response);
        let Operations { puts, deletes, ranges } = operations;
        self.puts.inc_by(puts);
        self.deletes.inc_by(deletes);
        self.ranges.inc_by(ranges);
        if puts + deletes + ranges > 1 {
            self.txns.inc();
        }
    }

    pub(crate) fn lease_granted(&self) {
        self.leases_granted.inc();
    }

    pub(crate) fn lease_revoked(&self) {
        self.leases_revoked.inc();
    }

    pub(crate) fn lease_renewed(&self) {
        self.leases_renewed.inc();
    }

    pub(crate) fn lease_expired(&self) {
        self.leases_expired.inc();
    }

    pub(crate) fn on_tidings(&self) {
        self.tidings.inc();
    }
}

// === impl Proposals ===

impl Proposals {
    pub(crate) fn begin(&self) -> Proposal<'_> {
        self.pending.inc();
        Proposal { proposals: self, is_answered: false }
    }
}

// === impl Proposal ===

impl Proposal<'_> {
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Proposal<'_> {
    fn drop(&mut self) {
        self.proposals.pending.dec();
        if self.is_answered {
            self.proposals.answered.inc();
        } else {
            self.proposals.failed.inc();
        }
    }
}

// === impl Operations ===

impl Operations {
    fn add(&mut self, response: &TxnResponse) {
        for response in response.responses.iter().filter_map(|op| op.response.as_ref()) {
            match response {
                Response::ResponsePut(_) => self.puts += 1,
                Response::ResponseDeleteRange(_) => self.deletes += 1,
                Response::ResponseRange(_) => self.ranges += 1,
                Response::ResponseTxn(inner) => self.add(inner),
            }
        }
    }
}

/// Seconds since 1970, as Prometheus writes moments.
fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
