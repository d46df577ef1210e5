//! What a scrape reads off the state of the store. Nothing is counted for it in between.

use std::{fmt, sync::Arc};

use etcd_api::version;
use mvcc::KeyRange;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};

use crate::context::Context;

pub(crate) struct StateMetrics {
    pub(crate) context: Arc<Context>,
}

// === impl StateMetrics ===

impl fmt::Debug for StateMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateMetrics")
    }
}

impl StateMetrics {
    fn server(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let standing = &self.context.standing;
        // The only member leads as long as it takes writes.
        let goes_on = !self.context.sequencer.has_stopped();
        let is_led = i64::from(goes_on && standing.leader().is_some());
        let leads = i64::from(goes_on && standing.is_holder());
        gauge(encoder, "etcd_server_has_leader", "Whether writes are taken", is_led)?;
        gauge(encoder, "etcd_server_is_leader", "Whether this member takes writes", leads)?;
        gauge(encoder, "etcd_server_is_learner", "Whether this member only follows", 0)?;
        let took_over = ConstCounter::new(1u64);
        took_over.encode(encoder.encode_descriptor(
            "etcd_server_leader_changes_seen",
            "How often the writer's role changed hands since the start",
            None,
            MetricType::Counter,
        )?)?;
        let quota = self.context.options.limits.quota_told();
        gauge(encoder, "etcd_server_quota_backend_bytes", "The quota; negative for none", quota)?;
        let minor = version::CLUSTER.rsplit_once('.').map_or(version::CLUSTER, |(minor, _)| minor);
        labelled(encoder, "etcd_server_version", ("server_version", version::SERVER))?;
        labelled(encoder, "etcd_cluster_version", ("cluster_version", minor))
    }

    fn keyspace(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.context.state();
        let keys = state.view.count(KeyRange::new(b"\0", b"\0"));
        let (revision, compacted) = (state.view.revision().0, state.view.compacted().0);
        gauge(encoder, "etcd_debugging_mvcc_keys_total", "Keys", keys)?;
        gauge(encoder, "etcd_debugging_mvcc_current_revision", "The revision", revision)?;
        gauge(
            encoder,
            "etcd_debugging_mvcc_compact_revision",
            "The revision below which history is forgotten",
            compacted,
        )?;
        let auth = self.context.gate.state().revision();
        gauge(encoder, "etcd_debugging_auth_revision", "Changes of users and roles", auth)
    }

    /// Left out while the journal cannot tell: a wrong size would be worse than none.
    fn sizes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Ok(size) = self.context.journal.size() else { return Ok(()) };
        gauge(
            encoder,
            "etcd_mvcc_db_total_size_in_bytes",
            "Bytes the journal takes",
            size.total_bytes,
        )?;
        gauge(
            encoder,
            "etcd_mvcc_db_total_size_in_use_in_bytes",
            "Of these, bytes of what is not forgotten",
            size.in_use_bytes,
        )
    }

    fn watches(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (streams, synced) = self.context.watch.hub.census();
        let watches = self.context.metrics.watches.watches.get();
        let behind = (watches - i64::try_from(synced).unwrap_or(i64::MAX)).max(0);
        gauge(encoder, "etcd_debugging_mvcc_watch_stream_total", "Streams of watches", streams)?;
        gauge(
            encoder,
            "etcd_debugging_mvcc_slow_watcher_total",
            "Watches that read history",
            behind,
        )
    }
}

impl Collector for StateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.server(&mut encoder)?;
        self.keyspace(&mut encoder)?;
        self.sizes(&mut encoder)?;
        self.watches(&mut encoder)
    }
}

pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl EncodeGaugeValue,
) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
}

/// A gauge that is 1 for one label: Prometheus' way to tell a word.
fn labelled(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    label: (&'static str, &str),
) -> fmt::Result {
    let mut metric =
        encoder.encode_descriptor(name, "The version that is spoken", None, MetricType::Gauge)?;
    metric.encode_family(&[label])?.encode_gauge(&1i64)
}
