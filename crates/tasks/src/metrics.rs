//! What a node counts, under `windlass_task_`, `windlass_node_` and `windlass_sandbox_`. Numbers that
//! can be read off the state are written when it has changed; here is also what happens and is gone.

mod written;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::core::amounts::{Amounts, Resource};
use crate::core::keys::End;

/// A number with a fraction.
type Seconds = Gauge<f64, AtomicU64>;

/// The numbers of one node. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    submitted: Counter,
    claims: Family<ByResult, Counter>,
    transitions: Family<ByStatus, Counter>,
    requeued: Family<ByCause, Counter>,
    queued: Gauge,
    running: Gauge,
    queue_seconds: Histogram,
    start_seconds: Histogram,
    run_seconds: Histogram,
    watch_resyncs: Counter,
    gc_deleted: Counter,
    fsck_findings: Gauge,
    log_bytes: Counter,
    log_dropped_bytes: Counter,
    lease_remaining: Seconds,
    fenced: Counter,
    capacity: Family<ByResource, Gauge>,
    reserved: Family<ByResource, Gauge>,
    cert_expiry: Seconds,
    oom: Counter,
    orphans_reaped: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    to: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCause {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResource {
    resource: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            submitted: Counter::default(),
            claims: Family::default(),
            transitions: Family::default(),
            requeued: Family::default(),
            queued: Gauge::default(),
            running: Gauge::default(),
            // 1 ms to 9 h: from a task that is taken at once to one that waits for a night.
            queue_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 26)),
            // 1 ms to 32 s: a container takes about 10 ms.
            start_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 16)),
            // 1 ms to 12 days.
            run_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 31)),
            watch_resyncs: Counter::default(),
            gc_deleted: Counter::default(),
            fsck_findings: Gauge::default(),
            log_bytes: Counter::default(),
            log_dropped_bytes: Counter::default(),
            lease_remaining: Gauge::default(),
            fenced: Counter::default(),
            capacity: Family::default(),
            reserved: Family::default(),
            cert_expiry: Gauge::default(),
            oom: Counter::default(),
            orphans_reaped: Counter::default(),
        };
        metrics.register_tasks(registry.sub_registry_with_prefix("windlass_task"));
        metrics.register_node(registry.sub_registry_with_prefix("windlass_node"));
        metrics.register_sandbox(registry.sub_registry_with_prefix("windlass_sandbox"));
        metrics
    }

    /// The suffix `_total` of counters is added when they are printed.
    fn register_tasks(&self, registry: &mut Registry) {
        for (name, help, counter) in [
            ("submitted", "Tasks submitted through this node", &self.submitted),
            ("watch_resyncs", "Lists after changes were forgotten", &self.watch_resyncs),
            ("gc_deleted", "Ended tasks that this node deleted", &self.gc_deleted),
            ("log_bytes", "Bytes that commands wrote", &self.log_bytes),
            ("log_dropped_bytes", "Bytes of them that the disk refused", &self.log_dropped_bytes),
        ] {
            registry.register(name, help, counter.clone());
        }
        for (name, help, gauge) in [
            ("queued", "Tasks in the queue", &self.queued),
            ("running", "Tasks that run, on all nodes", &self.running),
            ("fsck_findings", "What the last fsck through this node found", &self.fsck_findings),
        ] {
            registry.register(name, help, gauge.clone());
        }
        for (name, help, histogram) in [
            ("queue_seconds", "From being put into the queue to the claim", &self.queue_seconds),
            ("start_seconds", "From the claim to the command's start", &self.start_seconds),
            ("run_seconds", "From the command's start to its end", &self.run_seconds),
        ] {
            registry.register(name, help, histogram.clone());
        }
        registry.register("claims", "Claims, by what became of them", self.claims.clone());
        registry.register(
            "transitions",
            "Changes of status by this node, and through it",
            self.transitions.clone(),
        );
        registry.register("requeued", "Tasks put back into the queue", self.requeued.clone());
    }

    fn register_node(&self, registry: &mut Registry) {
        let remaining = "Until this node must stop everything, unless its lease is renewed";
        registry.register("lease_remaining_seconds", remaining, self.lease_remaining.clone());
        registry.register("fenced", "Times that this node had to stop", self.fenced.clone());
        registry.register("capacity", "What tasks can have here", self.capacity.clone());
        registry.register("reserved", "What tasks have here", self.reserved.clone());
        let expiry = "Until the node's certificate is good no more";
        registry.register("cert_expiry_seconds", expiry, self.cert_expiry.clone());
    }

    fn register_sandbox(&self, registry: &mut Registry) {
        registry.register("oom", "Attempts killed for want of memory", self.oom.clone());
        let reaped = "Attempts of an earlier process that were killed at the start";
        registry.register("orphans_reaped", reaped, self.orphans_reaped.clone());
    }

    pub fn on_submitted(&self, tasks: u64) {
        self.submitted.inc_by(tasks);
        self.transitions.get_or_create(&ByStatus { to: "queued" }).inc_by(tasks);
    }

    pub fn on_canceled(&self) {
        self.transitions.get_or_create(&ByStatus { to: End::Canceled.as_str() }).inc();
    }

    pub fn on_fsck(&self, findings: usize) {
        self.fsck_findings.set(whole(findings));
    }

    pub(crate) fn on_log(&self, bytes: u64, dropped_bytes: u64) {
        self.log_bytes.inc_by(bytes);
        self.log_dropped_bytes.inc_by(dropped_bytes);
    }

    pub fn set_cert_expiry(&self, left: Duration) {
        self.cert_expiry.set(left.as_secs_f64());
    }

    pub(crate) fn on_deleted(&self, tasks: u64) {
        self.gc_deleted.inc_by(tasks);
    }

    pub(crate) fn on_resync(&self) {
        self.watch_resyncs.inc();
    }

    pub(crate) fn on_fenced(&self) {
        self.fenced.inc();
    }

    pub(crate) fn on_started(&self, after: Duration) {
        self.start_seconds.observe(after.as_secs_f64());
    }

    pub(crate) fn on_ended(&self, after: Duration) {
        self.run_seconds.observe(after.as_secs_f64());
    }

    pub(crate) fn on_oom(&self) {
        self.oom.inc();
    }

    pub(crate) fn on_reaped(&self, attempts: usize) {
        self.orphans_reaped.inc_by(u64::try_from(attempts).unwrap_or(u64::MAX));
    }

    pub(crate) fn set_lengths(&self, queued: usize, running: usize) {
        self.queued.set(whole(queued));
        self.running.set(whole(running));
    }

    pub(crate) fn set_lease_remaining(&self, left: Duration) {
        self.lease_remaining.set(left.as_secs_f64());
    }

    pub(crate) fn set_amounts(&self, capacity: &Amounts, reserved: &Amounts) {
        for (family, amounts) in [(&self.capacity, capacity), (&self.reserved, reserved)] {
            for each in Resource::ALL {
                let amount = i64::try_from(amounts.of(each)).unwrap_or(i64::MAX);
                family.get_or_create(&ByResource { resource: each.as_str() }).set(amount);
            }
        }
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what the agent wrote was counted: no task was ever seen to be queued or canceled.
    #[test]
    fn what_clients_change_is_counted_too() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        metrics.on_submitted(3);
        metrics.on_canceled();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "windlass_task_submitted_total 3",
            "windlass_task_transitions_total{to=\"queued\"} 3",
            "windlass_task_transitions_total{to=\"canceled\"} 1",
        ] {
            assert!(text.lines().any(|each| each == line), "{line} is not in\n{text}");
        }
    }
}
