//! What is counted, under upstream's names where upstream has one. `cluster_autoscaler_` and
//! `windlass_autoscaler_` are put in front by the two registries.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use registry::status::{AutoscalerStatus, HealthStatus, Status};
use registry::{Failure, RemovalReason};

use crate::core::scale_up::Unusable;
use crate::core::{Account, Call, Event, EventReason, GroupVerdict, Order, Reason};

/// What upstream's names begin with; the registry puts a `_` behind it.
const UPSTREAM: &str = "cluster_autoscaler";
const OURS: &str = "windlass_autoscaler";

type Seconds = Family<OfFunction, Histogram, fn() -> Histogram>;

/// Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    safe: Gauge,
    nodes: Family<OfState, Gauge>,
    groups: Family<OfGroupType, Gauge>,
    min: Family<OfGroup, Gauge>,
    max: Family<OfGroup, Gauge>,
    target: Family<OfGroup, Gauge>,
    healthiness: Family<OfGroup, Gauge>,
    backoff: Family<OfBackoff, Gauge>,
    last_activity: Family<OfActivity, Gauge>,
    durations: Seconds,
    errors: Family<OfError, Counter>,
    failed_scale_ups: Family<OfReason, Counter>,
    failed_creations: Family<OfReason, Counter>,
    old_unregistered: Gauge,
    unneeded: Gauge,
    scaled_up: Counter,
    scaled_down: Family<OfReason, Counter>,
    evicted: Family<OfEviction, Counter>,
    unschedulable: Family<OfType, Gauge>,
    unremovable: Family<OfReason, Gauge>,
    in_cooldown: Gauge,
    skipped: Family<OfSkip, Gauge>,
    pending_deletions: Gauge,
    iterations: Family<OfResult, Counter>,
    dropped_records: Counter,
}

/// What took its time, by upstream's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    Main,
    CloudProviderRefresh,
    UpdateState,
    /// All of an iteration but reading and writing.
    Autoscaling,
}

/// How an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfGroupType {
    node_group_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfGroup {
    node_group: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBackoff {
    node_group: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfActivity {
    activity: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFunction {
    function: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfError {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEviction {
    eviction_result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfType {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSkip {
    direction: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    result: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            safe: Gauge::default(),
            nodes: Family::default(),
            groups: Family::default(),
            min: Family::default(),
            max: Family::default(),
            target: Family::default(),
            healthiness: Family::default(),
            backoff: Family::default(),
            last_activity: Family::default(),
            durations: Family::new_with_constructor(seconds),
            errors: Family::default(),
            failed_scale_ups: Family::default(),
            failed_creations: Family::default(),
            old_unregistered: Gauge::default(),
            unneeded: Gauge::default(),
            scaled_up: Counter::default(),
            scaled_down: Family::default(),
            evicted: Family::default(),
            unschedulable: Family::default(),
            unremovable: Family::default(),
            in_cooldown: Gauge::default(),
            skipped: Family::default(),
            pending_deletions: Gauge::default(),
            iterations: Family::default(),
            dropped_records: Counter::default(),
        };
        metrics.register_state(registry.sub_registry_with_prefix(UPSTREAM));
        metrics.register_deeds(registry.sub_registry_with_prefix(UPSTREAM));
        let ours = registry.sub_registry_with_prefix(OURS);
        ours.register("iterations", "Iterations, by how they ended", metrics.iterations.clone());
        let dropped = "Iterations that were not recorded, for want of time to write them";
        ours.register("dropped_records", dropped, metrics.dropped_records.clone());
        metrics
    }

    fn register_state(&self, registry: &mut Registry) {
        let safe = "Whether the cluster is in a shape to work on";
        registry.register("cluster_safe_to_autoscale", safe, self.safe.clone());
        registry.register("nodes_count", "Nodes, by state", self.nodes.clone());
        registry.register("node_groups_count", "Node groups", self.groups.clone());
        registry.register("node_group_min_count", "Least size of a group", self.min.clone());
        registry.register("node_group_max_count", "Greatest size of a group", self.max.clone());
        registry.register("node_group_target_count", "Size asked for", self.target.clone());
        let healthiness = "Whether a group has what it should";
        registry.register("node_group_healthiness", healthiness, self.healthiness.clone());
        let backoff = "Whether a group is left alone after a failure, and which";
        registry.register("node_group_backoff_status", backoff, self.backoff.clone());
        let activity = "When something was last done, in seconds since 1970";
        registry.register("last_activity", activity, self.last_activity.clone());
        let pods = "Pods that wait for a node";
        registry.register("unschedulable_pods_count", pods, self.unschedulable.clone());
        registry.register("unneeded_nodes_count", "Unneeded nodes", self.unneeded.clone());
        let unremovable = "Nodes that cannot go, by why";
        registry.register("unremovable_nodes_count", unremovable, self.unremovable.clone());
        let cooldown = "Whether scale-down waits after another deed";
        registry.register("scale_down_in_cooldown", cooldown, self.in_cooldown.clone());
        let pending = "Nodes that are being removed";
        registry.register("pending_node_deletions", pending, self.pending_deletions.clone());
    }

    /// The suffix `_total` of counters is added when they are printed. Upstream's counters without it
    /// are gauges here, to keep their names.
    fn register_deeds(&self, registry: &mut Registry) {
        let durations = "Time that parts of an iteration took";
        let (name, unit) = ("function_duration", Unit::Seconds);
        registry.register_with_unit(name, durations, unit, self.durations.clone());
        registry.register("errors", "Failed iterations and calls", self.errors.clone());
        let failed = "Scale-ups that brought no node, by why";
        registry.register("failed_scale_ups", failed, self.failed_scale_ups.clone());
        let failed = "Machines that could not be created, by why";
        registry.register("failed_node_creations", failed, self.failed_creations.clone());
        let removed = "Instances removed because they never registered";
        registry.register(
            "old_unregistered_nodes_removed_count",
            removed,
            self.old_unregistered.clone(),
        );
        registry.register("scaled_up_nodes", "Nodes asked for", self.scaled_up.clone());
        let removed = "Nodes removed, by why";
        registry.register("scaled_down_nodes", removed, self.scaled_down.clone());
        registry.register("evicted_pods", "Pods evicted", self.evicted.clone());
        let skipped = "Times that a limit kept us from scaling";
        registry.register("skipped_scale_events_count", skipped, self.skipped.clone());
    }

    /// What the registry says of cluster and groups.
    pub(crate) fn show(&self, status: &Status) {
        let Some(cluster) = &status.cluster_wide else { return };
        debug_assert_eq!(status.autoscaler_status, AutoscalerStatus::Running, "it was observed");
        let health = &cluster.health;
        self.safe.set((health.status == HealthStatus::Healthy).into());
        let counts = &health.node_counts;
        let states = [
            ("ready", counts.registered.ready),
            ("unready", counts.registered.unready.total),
            ("notStarted", counts.registered.not_started),
            ("suspended", counts.registered.suspended),
            ("longUnregistered", counts.long_unregistered),
            ("unregistered", counts.unregistered),
        ];
        for (state, count) in states {
            self.nodes.get_or_create(&OfState { state }).set(count.into());
        }
        let kind = OfGroupType { node_group_type: "autoscaled" };
        self.groups.get_or_create(&kind).set(count(status.node_groups.len()));
        self.unneeded.set(count(cluster.scale_down.candidates));
        self.show_groups(status);
    }

    /// A group that is gone is no longer shown.
    fn show_groups(&self, status: &Status) {
        for family in [&self.min, &self.max, &self.target, &self.healthiness] {
            family.clear();
        }
        self.backoff.clear();
        for group in &status.node_groups {
            let of = OfGroup { node_group: group.name.0.clone() };
            self.min.get_or_create(&of).set(group.health.min_size.into());
            self.max.get_or_create(&of).set(group.health.max_size.into());
            if let Some(target) = group.health.cloud_provider_target {
                self.target.get_or_create(&of).set(target.into());
            }
            let is_healthy = group.health.health.status == HealthStatus::Healthy;
            self.healthiness.get_or_create(&of).set(is_healthy.into());
            if let Some(backoff) = &group.scale_up.backoff_info {
                let OfGroup { node_group } = of;
                let of = OfBackoff { node_group, reason: backoff.error_code.clone() };
                self.backoff.get_or_create(&of).set(1);
            }
        }
    }

    pub(crate) fn on_failure(&self, failure: &Failure) {
        let reason = failure.code.as_str().to_owned();
        let of = OfReason { reason };
        self.failed_scale_ups.get_or_create(&of).inc();
        if let registry::FailureCode::Creation(_) = &failure.code {
            self.failed_creations.get_or_create(&of).inc_by(failure.delta.into());
        }
    }

    pub(crate) fn on_activity(&self, function: Function, at: Timestamp, took: Duration) {
        let activity = OfActivity { activity: function.label() };
        self.last_activity.get_or_create(&activity).set(at.as_second());
        let of = OfFunction { function: function.label() };
        self.durations.get_or_create(&of).observe(took.as_secs_f64());
    }

    /// Both plans were made, whatever came of them.
    pub(crate) fn on_planned(&self, at: Timestamp) {
        for activity in ["scaleUp", "scaleDown"] {
            self.last_activity.get_or_create(&OfActivity { activity }).set(at.as_second());
        }
    }

    pub(crate) fn on_iteration(&self, end: End) {
        let result = match end {
            End::Done => "done",
            End::Failed => "failed",
        };
        self.iterations.get_or_create(&OfResult { result }).inc();
        if end == End::Failed {
            self.errors.get_or_create(&OfError { r#type: "internalError" }).inc();
        }
    }

    pub(crate) fn on_refused_call(&self) {
        self.errors.get_or_create(&OfError { r#type: "cloudProviderError" }).inc();
    }

    /// A call that the provider has carried out.
    pub(crate) fn on_called(&self, call: &Call) {
        match call {
            Call::Increase { delta, .. } => _ = self.scaled_up.inc_by((*delta).into()),
            Call::Delete { machine, .. } if machine.reason == RemovalReason::LongUnregistered => {
                self.old_unregistered.inc();
            }
            Call::Delete { .. } | Call::Decrease { .. } => {}
        }
    }

    pub(crate) fn on_removed(&self, order: &Order) {
        let reason = match order.reason {
            RemovalReason::Unneeded if order.is_empty => "empty",
            RemovalReason::Unneeded => "underutilized",
            _ => "unready",
        };
        self.scaled_down.get_or_create(&OfReason { reason: reason.to_owned() }).inc();
    }

    pub(crate) fn on_evicted(&self) {
        self.evicted.get_or_create(&OfEviction { eviction_result: "succeeded" }).inc();
    }

    pub(crate) fn set_pending_deletions(&self, drains: usize) {
        self.pending_deletions.set(count(drains));
    }

    /// What an iteration has found out of pods and nodes.
    pub(crate) fn show_account(&self, account: &Account) {
        let of = OfType { r#type: "unschedulable" };
        self.unschedulable.get_or_create(&of).set(count(account.pods.len()));
        let mut kept: BTreeMap<String, usize> = BTreeMap::new();
        for against in account.kept.values() {
            *kept.entry(against.reason.to_string()).or_default() += 1;
        }
        self.unremovable.clear();
        for (reason, nodes) in kept {
            self.unremovable.get_or_create(&OfReason { reason }).set(count(nodes));
        }
        self.in_cooldown.set(account.cooldown.is_some().into());
        self.count_skipped(account);
    }

    /// What a limit of the whole cluster kept from growing, or from going.
    fn count_skipped(&self, account: &Account) {
        let skip = |direction, reason| {
            self.skipped.get_or_create(&OfSkip { direction, reason }).inc();
        };
        let is_full = |it: &&Event| it.reason == EventReason::MaxNodesTotalReached;
        account.events.iter().filter(is_full).for_each(|_| skip("up", "MaxNodesTotalReached"));
        for verdict in account.groups.values() {
            if let GroupVerdict::Unusable(Unusable::ResourceLimit(names)) = verdict {
                names.iter().for_each(|name| skip("up", limit_of(name)));
            }
        }
        for against in account.kept.values() {
            if against.reason == Reason::MinimalResourceLimitExceeded {
                against.detail.split(", ").for_each(|name| skip("down", limit_of(name)));
            }
        }
    }

    pub(crate) fn on_record_dropped(&self) {
        self.dropped_records.inc();
    }
}

// === impl Function ===

impl Function {
    fn label(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::CloudProviderRefresh => "cloudProviderRefresh",
            Self::UpdateState => "updateClusterState",
            Self::Autoscaling => "autoscaling",
        }
    }
}

/// By upstream's names.
fn limit_of(resource: &str) -> &'static str {
    match resource {
        "cpu" => "CpuResourceLimit",
        "memory" => "MemoryResourceLimit",
        _ => "OtherResourceLimit",
    }
}

/// 10 ms to 3 min, as an iteration may take.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 15))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::core::{Against, Machine};

    #[test]
    fn what_a_limit_keeps_is_counted_by_upstreams_names() {
        let mut registry = Registry::default();
        let metrics = Metrics::new(&mut registry);
        let limits = Unusable::ResourceLimit(vec!["cpu".to_owned(), "memory".to_owned()]);
        let reason = Reason::MinimalResourceLimitExceeded;
        let kept = Against { reason, detail: "memory".to_owned() };
        metrics.show_account(&Account {
            groups: [("pool".into(), GroupVerdict::Unusable(limits))].into(),
            kept: [("node".into(), kept)].into(),
            ..Account::default()
        });
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for (direction, reason) in [
            ("up", "CpuResourceLimit"),
            ("up", "MemoryResourceLimit"),
            ("down", "MemoryResourceLimit"),
        ] {
            let line = format!(
                "cluster_autoscaler_skipped_scale_events_count{{direction=\"{direction}\",reason=\"{reason}\"}} 1"
            );
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }

    /// The label was missing, so that queries made for upstream found nothing.
    #[test]
    fn evictions_are_counted_as_upstream_does() {
        let mut registry = Registry::default();
        Metrics::new(&mut registry).on_evicted();
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let line = "cluster_autoscaler_evicted_pods_total{eviction_result=\"succeeded\"} 1";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn what_could_not_be_created_is_not_counted_as_never_registered() {
        let metrics = Metrics::new(&mut Registry::default());
        for reason in [RemovalReason::CreateFailed, RemovalReason::LongUnregistered] {
            let machine = Machine { instance: "i".into(), node: None, reason };
            metrics.on_called(&Call::Delete { group: "pool".into(), machine, floor: 0 });
        }
        assert_eq!(metrics.old_unregistered.get(), 1);
    }
}
