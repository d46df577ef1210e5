//! Every flag there is: its name, its default as it would be typed, what it does, and where it goes.

use std::time::Duration;

use autoscaler::options::Mode;
use registry::UnreadyScope;

use super::{SIMCLOUD, Settings, duration};

/// One flag.
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
    /// What is expected instead, if it cannot be.
    pub(super) set: fn(&mut Settings, &str) -> Result<(), &'static str>,
}

// === impl Flag ===

impl Flag {
    /// Whether it takes no separate value.
    pub(super) fn is_switch(&self) -> bool {
        matches!(self.default, "true" | "false")
    }
}

impl std::fmt::Debug for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn span(text: &str) -> Result<Duration, &'static str> {
    duration::parse(text).ok_or("a duration such as `10s` or `1h30m`")
}

fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "true" | "1" | "t" | "T" | "TRUE" | "True" => Ok(true),
        "false" | "0" | "f" | "F" | "FALSE" | "False" => Ok(false),
        _ => Err("`true` or `false`"),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_parse| "a number in range")
}

/// `min:max`
fn range(text: &str) -> Result<std::ops::RangeInclusive<i64>, &'static str> {
    const EXPECTED: &str = "two numbers, `min:max`, the first not larger";
    let (min, max) = text.split_once(':').ok_or(EXPECTED)?;
    let (min, max) =
        (number(min).map_err(|_parse| EXPECTED)?, number(max).map_err(|_parse| EXPECTED)?);
    if (0..=max).contains(&min) { Ok(min..=max) } else { Err(EXPECTED) }
}

/// `:8085` means every address of the machine.
fn address(text: &str) -> Result<std::net::SocketAddr, &'static str> {
    let whole = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    whole.parse().map_err(|_parse| "an address and a port such as `:8085` or `127.0.0.1:8085`")
}

/// A GiB, in which upstream's limits of memory are.
const GIB: i64 = 1 << 30;

pub(crate) const FLAGS: &[Flag] = &[
    Flag {
        name: "cloud-provider",
        default: "externalgrpc",
        help: "Or `simcloud`: a simulated cloud within the process, for demos; start only one",
        set: |it, text| {
            it.cloud_provider = text.to_owned();
            match text {
                "externalgrpc" | SIMCLOUD => Ok(()),
                _ => Err("`externalgrpc` or `simcloud`"),
            }
        },
    },
    Flag {
        name: "cloud-config",
        default: "",
        help: "File that says where the provider is, or the scenario of simcloud; required",
        set: |it, text| {
            it.cloud_config = Some(text.into());
            Ok(())
        },
    },
    Flag {
        name: "kubeconfig",
        default: "",
        help: "File that says how to reach the cluster [$KUBECONFIG, ~/.kube/config, or the pod's own account]",
        set: |it, text| {
            it.kubeconfig = Some(text.into());
            Ok(())
        },
    },
    Flag {
        name: "context",
        default: "",
        help: "Which of its contexts; ours",
        set: |it, text| {
            it.context = Some(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "namespace",
        default: "kube-system",
        help: "Where the Lease and the ConfigMaps are",
        set: |it, text| {
            it.options.namespace = text.to_owned();
            Ok(())
        },
    },
    Flag {
        name: "address",
        default: "127.0.0.1:8085",
        help: "Address of /livez, /readyz, /metrics, /status and /explain; upstream's is :8085",
        set: |it, text| {
            it.options.listen = address(text)?;
            Ok(())
        },
    },
    Flag {
        name: "status-config-map-name",
        default: "cluster-autoscaler-status",
        help: "The ConfigMap that shows the status",
        set: |it, text| {
            it.options.status_config_map = text.to_owned();
            Ok(())
        },
    },
    Flag {
        name: "leader-elect",
        default: "true",
        help: "Whether one of several replicas leads; without, only one may run",
        set: |it, text| {
            it.options.is_elected = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "leader-elect-lease-duration",
        default: "15s",
        help: "How long others wait for a leader's sign of life",
        set: |it, text| {
            it.options.lease_timings.duration = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "leader-elect-renew-deadline",
        default: "10s",
        help: "How long a leader acts without having renewed",
        set: |it, text| {
            it.options.lease_timings.write_until = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "leader-elect-retry-period",
        default: "2s",
        help: "How often the leader renews and others look",
        set: |it, text| {
            let period = span(text)?;
            it.options.lease_timings.renew_after = period;
            it.options.lease_timings.request_timeout = period;
            Ok(())
        },
    },
    Flag {
        name: "leader-elect-resource-name",
        default: "cluster-autoscaler",
        help: "The Lease that is competed for",
        set: |it, text| {
            it.options.lease = text.to_owned();
            Ok(())
        },
    },
    Flag {
        name: "lease-resource-name",
        default: "cluster-autoscaler",
        help: "The same, by its other name",
        set: |it, text| {
            it.options.lease = text.to_owned();
            Ok(())
        },
    },
    Flag {
        name: "scan-interval",
        default: "10s",
        help: "How often the cluster is looked at",
        set: |it, text| {
            it.options.pace.scan_interval = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "frequent-loops-enabled",
        default: "true",
        help: "Look at once after something was done, or a pod is new that fits nowhere",
        set: |it, text| {
            it.options.pace.has_frequent_loops = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-inactivity",
        default: "10m",
        help: "Not alive after so long without a look",
        set: |it, text| {
            it.options.pace.inactivity_max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-failing-time",
        default: "15m",
        help: "Not alive after so long without a look that succeeded",
        set: |it, text| {
            it.options.pace.failing_max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-node-provision-time",
        default: "15m",
        help: "How long an instance may take to register",
        set: |it, text| {
            it.options.registry.times.provision = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-node-startup-time",
        default: "15m",
        help: "How long a Node may take to become Ready",
        set: |it, text| {
            it.options.registry.times.startup = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-total-unready-percentage",
        default: "45",
        help: "Halt when more of the nodes are unready …",
        set: |it, text| {
            it.options.registry.unready_percentage_max = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "ok-total-unready-count",
        default: "3",
        help: "… and more than so many",
        set: |it, text| {
            it.options.registry.unready_count_ok = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "unready-scope",
        default: "autoscaled",
        help: "Whose unready nodes halt: those of groups (autoscaled) or all; ours",
        set: |it, text| {
            it.options.registry.unready_scope = match text {
                "autoscaled" => UnreadyScope::Autoscaled,
                "all" => UnreadyScope::All,
                _ => return Err("`autoscaled` or `all`"),
            };
            Ok(())
        },
    },
    Flag {
        name: "initial-node-group-backoff-duration",
        default: "5m",
        help: "How long a group is left alone after a failure",
        set: |it, text| {
            it.options.registry.backoff.initial = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-node-group-backoff-duration",
        default: "30m",
        help: "The same after many",
        set: |it, text| {
            it.options.registry.backoff.max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "node-group-backoff-reset-timeout",
        default: "3h",
        help: "How long after its last failure a group starts anew",
        set: |it, text| {
            it.options.registry.backoff.reset = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "unknown-outcome-settle",
        default: "2m",
        help: "How long a target may take to show an increase; ours",
        set: |it, text| {
            it.options.registry.settle_timeout = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "observation-gap-tolerance",
        default: "2m",
        help: "After a longer time without a look nothing is removed for as long again; ours",
        set: |it, text| {
            it.options.registry.observation_gap_tolerance =
                Some(span(text)?).filter(|it| !it.is_zero());
            Ok(())
        },
    },
    Flag {
        name: "remove-unregistered-when-unhealthy",
        default: "false",
        help: "Remove instances that never registered even while halted; ours",
        set: |it, text| {
            it.options.registry.removes_unregistered_when_unhealthy = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "force-delete-unregistered-nodes",
        default: "false",
        help: "Remove them even below the least size of a group",
        set: |it, text| {
            it.options.registry.removes_unregistered_below_min = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "startup-taint",
        default: "",
        help: "Taint that nodes bear until they can be used; may be repeated",
        set: |it, text| {
            it.options.registry.startup_taints.insert(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "ignore-taint",
        default: "",
        help: "The same, by its former name",
        set: |it, text| {
            it.options.registry.startup_taints.insert(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "status-taint",
        default: "",
        help: "Taint that says how a node fares, not what it is; may be repeated",
        set: |it, text| {
            it.options.plans.status_taints.insert(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "expander",
        default: "least-waste",
        help: "Which group grows: random, most-pods, least-waste, least-nodes, priority, or several with commas",
        set: |it, text| {
            it.options.expander = text.to_owned();
            Ok(())
        },
    },
    Flag {
        name: "max-nodes-total",
        default: "0",
        help: "Most nodes of the whole cluster; 0: any number",
        set: |it, text| {
            it.options.plans.limits.nodes_max = Some(number(text)?).filter(|max| *max > 0);
            Ok(())
        },
    },
    Flag {
        name: "cores-total",
        default: "",
        help: "Least and most CPUs of the cluster, `min:max`",
        set: |it, text| {
            it.options.plans.limits.resources.insert("cpu".to_owned(), range(text)?);
            Ok(())
        },
    },
    Flag {
        name: "memory-total",
        default: "",
        help: "Least and most GiB of memory of the cluster, `min:max`",
        set: |it, text| {
            let range = range(text)?;
            let bytes = range.start().saturating_mul(GIB)..=range.end().saturating_mul(GIB);
            it.options.plans.limits.resources.insert("memory".to_owned(), bytes);
            Ok(())
        },
    },
    Flag {
        name: "max-nodes-per-scaleup",
        default: "1000",
        help: "Most nodes asked for at once",
        set: |it, text| {
            it.options.plans.scale_up.nodes_per_scale_up_max = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-nodegroup-binpacking-duration",
        default: "10s",
        help: "How long the estimate of one group may take",
        set: |it, text| {
            it.options.binpacking_duration_max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "new-pod-scale-up-delay",
        default: "0s",
        help: "Younger pods bring no node",
        set: |it, text| {
            it.options.plans.scale_up.new_pod_delay = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "expendable-pods-priority-cutoff",
        default: "-10",
        help: "Pods of a lower priority neither bring nor keep a node",
        set: |it, text| {
            it.options.plans.expendable_priority_cutoff = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-up-from-zero",
        default: "true",
        help: "Whether a cluster without any node is scaled up",
        set: |it, text| {
            it.options.plans.scale_up.scales_from_zero = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "balance-similar-node-groups",
        default: "false",
        help: "Share an increase among groups that are alike",
        set: |it, text| {
            it.options.plans.scale_up.balances_similar_groups = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "balancing-ignore-label",
        default: "",
        help: "Label in which groups that are alike may differ; may be repeated",
        set: |it, text| {
            it.options.plans.scale_up.balancing_ignored_labels.insert(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "scale-down-enabled",
        default: "true",
        help: "Whether nodes are removed",
        set: |it, text| {
            it.options.plans.scale_down.is_enabled = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-unneeded-time",
        default: "10m",
        help: "How long a node is unneeded before it goes",
        set: |it, text| {
            it.options.registry.times.unneeded = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-unready-time",
        default: "20m",
        help: "How long a node is unready before it goes",
        set: |it, text| {
            it.options.registry.times.unready = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-unready-enabled",
        default: "true",
        help: "Whether unready nodes go",
        set: |it, text| {
            it.options.registry.removes_unready = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-utilization-threshold",
        default: "0.5",
        help: "Below this share of its CPU and memory in use a node may go",
        set: |it, text| {
            it.options.plans.scale_down.utilization_threshold = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "ignore-daemonsets-utilization",
        default: "false",
        help: "Leave pods of DaemonSets out of it",
        set: |it, text| {
            it.options.plans.scale_down.ignores_daemon_sets = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-delay-after-add",
        default: "10m",
        help: "How long after a scale-up no node goes",
        set: |it, text| {
            it.options.plans.scale_down.delay_after_add = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-delay-after-delete",
        default: "0s",
        help: "The same after a removal",
        set: |it, text| {
            it.options.plans.scale_down.delay_after_delete = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "scale-down-delay-after-failure",
        default: "3m",
        help: "The same after one that failed",
        set: |it, text| {
            it.options.plans.scale_down.delay_after_failure = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "unremovable-node-recheck-timeout",
        default: "5m",
        help: "How long a node that cannot go is not looked at again",
        set: |it, text| {
            it.options.plans.scale_down.unremovable_recheck = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-scale-down-parallelism",
        default: "10",
        help: "Most nodes removed at once …",
        set: |it, text| {
            it.options.plans.scale_down.parallelism_max = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-drain-parallelism",
        default: "1",
        help: "… of which so many have pods",
        set: |it, text| {
            it.options.plans.scale_down.drain_parallelism_max = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "cordon-node-before-terminating",
        default: "true",
        help: "Cordon nodes that are removed",
        set: |it, text| {
            it.options.plans.drain.cordons = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-graceful-termination-sec",
        default: "600",
        help: "Most seconds of grace that evicted pods are given",
        set: |it, text| {
            it.options.plans.drain.grace_max = Duration::from_secs(number(text)?);
            Ok(())
        },
    },
    Flag {
        name: "max-pod-eviction-time",
        default: "2m",
        help: "How long a pod's eviction may be refused",
        set: |it, text| {
            it.options.plans.drain.eviction_max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "node-delete-delay-after-taint",
        default: "5s",
        help: "How long pods may still arrive after the taint",
        set: |it, text| {
            it.options.plans.drain.delay_after_taint = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "daemonset-eviction-for-occupied-nodes",
        default: "true",
        help: "Evict pods of DaemonSets from nodes that have others",
        set: |it, text| {
            it.options.plans.drain.evicts_daemons = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "skip-nodes-with-system-pods",
        default: "true",
        help: "Keep nodes with pods of kube-system that no budget covers",
        set: |it, text| {
            it.options.plans.scale_down.drain_rules.skips_system_pods = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "skip-nodes-with-local-storage",
        default: "true",
        help: "Keep nodes with pods that have local storage",
        set: |it, text| {
            it.options.plans.scale_down.drain_rules.skips_local_storage = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "skip-nodes-with-custom-controller-pods",
        default: "true",
        help: "Keep nodes with pods of controllers that are not known",
        set: |it, text| {
            it.options.plans.scale_down.drain_rules.skips_custom_controllers = switch(text)?;
            Ok(())
        },
    },
    Flag {
        name: "min-replica-count",
        default: "0",
        help: "Keep nodes with pods of controllers that have fewer replicas",
        set: |it, text| {
            it.options.plans.scale_down.drain_rules.replicas_min = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-bulk-soft-taint-count",
        default: "10",
        help: "Most nodes marked as candidates at once",
        set: |it, text| {
            it.options.plans.scale_down.soft_taints_max = number(text)?;
            Ok(())
        },
    },
    Flag {
        name: "max-bulk-soft-taint-time",
        default: "3s",
        help: "How long nodes are marked as candidates at once",
        set: |it, text| {
            it.options.soft_taint_duration_max = span(text)?;
            Ok(())
        },
    },
    Flag {
        name: "dry-run",
        default: "false",
        help: "Say what would be done and do nothing; ours",
        set: |it, text| {
            it.options.mode = if switch(text)? { Mode::DryRun } else { Mode::Act };
            Ok(())
        },
    },
    Flag {
        name: "record-inputs",
        default: "",
        help: "File to which every iteration is written, for `replay`; ours",
        set: |it, text| {
            it.record_inputs = Some(text.into());
            Ok(())
        },
    },
    Flag {
        name: "log-level",
        default: "info",
        help: "error, warn, info or debug; ours",
        set: |it, text| {
            it.log_level = text.to_owned();
            let is_known = ["error", "warn", "info", "debug"].contains(&text);
            if is_known { Ok(()) } else { Err("`error`, `warn`, `info` or `debug`") }
        },
    },
    Flag {
        name: "log-format",
        default: "json",
        help: "json or console; ours",
        set: |it, text| {
            it.log_format = text.to_owned();
            if ["json", "console"].contains(&text) { Ok(()) } else { Err("`json` or `console`") }
        },
    },
];
