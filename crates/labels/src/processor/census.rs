//! The backlog in numbers, counted when somebody scrapes.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

use super::Context;

/// What is read off the backlog.
pub(super) struct Census {
    context: Arc<Context>,
}

// === impl Census ===

impl Census {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Census").finish_non_exhaustive()
    }
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let census = self.context.backlog.census();
        let age = census.oldest.map(|oldest| (self.context.clock)().duration_since(oldest));
        let age_seconds = age.map_or(0.0, |age| age.as_secs_f64().max(0.0));
        gauge(&mut encoder, "transactions_pending", "Transactions that wait", census.pending)?;
        let quarantined = "Transactions set apart for a person to look at";
        gauge(&mut encoder, "quarantined", quarantined, census.quarantined)?;
        let oldest = "Age of the oldest transaction that waits";
        let metric = ConstGauge::new(age_seconds);
        let encoder = encoder.encode_descriptor(
            "oldest_pending_seconds",
            oldest,
            None,
            metric.metric_type(),
        )?;
        metric.encode(encoder)
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
