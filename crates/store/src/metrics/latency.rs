//! How long calls take. Counted by atomic additions, because every call is.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// The bounds that Go's library has by default, and with it etcd, in milliseconds.
const BOUNDS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/// A histogram of durations.
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// How many were within each bound but not the one before; those above all bounds come last.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    sum_ns: AtomicU64,
}

// === impl Latency ===

impl Latency {
    pub(super) fn observe(&self, took: Duration) {
        let within = BOUNDS_MS.iter().position(|bound| took <= Duration::from_millis(*bound));
        self.counts[within.unwrap_or(BOUNDS_MS.len())].fetch_add(1, Ordering::Relaxed);
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(took_ns, Ordering::Relaxed);
    }
}

impl EncodeMetric for Latency {
    /// The encoder adds the counts up.
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BOUNDS_MS.iter().map(|bound| Duration::from_millis(*bound).as_secs_f64());
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{encoding::text, registry::Registry};

    use super::*;

    #[test]
    fn durations_are_counted_up_to_each_bound() {
        let latency = Latency::default();
        for took_ms in [0, 5, 6, 99, 10_000, 10_001] {
            latency.observe(Duration::from_millis(took_ms));
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Alone(latency)));
        let mut printed = String::new();
        text::encode(&mut printed, &registry).expect("text takes all that is written");
        for line in [
            "took_bucket{le=\"0.005\"} 2",
            "took_bucket{le=\"0.01\"} 3",
            "took_bucket{le=\"0.1\"} 4",
            "took_bucket{le=\"10.0\"} 5",
            "took_bucket{le=\"+Inf\"} 6",
            "took_count 6",
            "took_sum 20.111",
        ] {
            assert!(printed.lines().any(|printed| printed == line), "{line} in\n{printed}");
        }
    }

    #[derive(Debug)]
    struct Alone(Latency);

    impl prometheus_client::collector::Collector for Alone {
        fn encode(
            &self,
            mut encoder: prometheus_client::encoding::DescriptorEncoder<'_>,
        ) -> fmt::Result {
            let kind = MetricType::Histogram;
            self.0.encode(encoder.encode_descriptor("took", "Time", None, kind)?)
        }
    }
}
