//! What the store counts, under etcd's names where dashboards know them.

use prometheus_client::{metrics::counter::Counter, registry::Registry};

/// The counters that code reaches for. Gauges that can be read off the state are collected when
/// somebody scrapes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    leases_expired: Counter,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "etcd_debugging_server_lease_expired",
            "The total number of expired leases",
            metrics.leases_expired.clone(),
        );
        metrics
    }

    pub(crate) fn lease_expired(&self) {
        self.leases_expired.inc();
    }
}
