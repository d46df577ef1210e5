//! What an instance counts, under `windlass_shard_`. The registry is the controller's own.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What every name begins with; the registry puts a `_` behind it.
const PREFIX: &str = "windlass_shard";

/// The counters of one instance. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    lease_renewals: Family<Renewed, Counter>,
    lease_margin: Gauge<f64, std::sync::atomic::AtomicU64>,
    acks: Counter,
    cancelled: Family<Cancelled, Counter>,
    fenced_writes: Counter,
}

/// How a write of the Lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    Done,
    /// Somebody else has written it meanwhile; it is read and judged anew.
    Conflict,
    Failed,
}

/// Why a reconcile was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its object is to be given up, and the time to finish is over; or it is another's already.
    Drain,
    /// The Lease may be another's.
    Lease,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Renewed {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cancelled {
    cause: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Counts in `registry`, to be given to [`JoinOptions::metrics`](super::JoinOptions::metrics).
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let registry = registry.sub_registry_with_prefix(PREFIX);
        let help = "Writes of the instance's Lease, by how they ended";
        registry.register("lease_renewals", help, metrics.lease_renewals.clone());
        let help = "How long the instance may go on without another renewal, as of the last one";
        registry.register("lease_margin_seconds", help, metrics.lease_margin.clone());
        let help = "Objects given up at the sharder's request";
        registry.register("acks", help, metrics.acks.clone());
        let help = "Reconciles stopped before their end, by why";
        registry.register("cancelled", help, metrics.cancelled.clone());
        let help = "Writes that the fence has refused, as far as reconciles report them";
        registry.register("fenced_writes", help, metrics.fenced_writes.clone());
        metrics
    }

    pub(super) fn on_renewal(&self, renewal: Renewal) {
        self.lease_renewals.get_or_create(&Renewed { result: renewal.as_str() }).inc();
    }

    pub(super) fn set_margin(&self, margin: Duration) {
        self.lease_margin.set(margin.as_secs_f64());
    }

    pub(super) fn on_ack(&self) {
        self.acks.inc();
    }

    pub(super) fn on_cancelled(&self, cause: Cause) {
        self.cancelled.get_or_create(&Cancelled { cause: cause.as_str() }).inc();
    }

    pub(super) fn on_fenced_write(&self) {
        self.fenced_writes.inc();
    }
}

// === impl Renewal ===

impl Renewal {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }
}

// === impl Cause ===

impl Cause {
    fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Lease => "lease",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_documentation() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.on_renewal(Renewal::Done);
        metrics.on_cancelled(Cause::Drain);
        metrics.set_margin(Duration::from_millis(2500));
        metrics.on_ack();
        metrics.on_fenced_write();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "windlass_shard_lease_renewals_total{result=\"done\"} 1",
            "windlass_shard_lease_margin_seconds 2.5",
            "windlass_shard_acks_total 1",
            "windlass_shard_cancelled_total{cause=\"drain\"} 1",
            "windlass_shard_fenced_writes_total 1",
        ];
        assert_eq!(samples, expected);
    }
}
