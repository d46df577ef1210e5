//! What an autoscaler is told when it starts: plain data, refused here if it cannot work. Who reads
//! flags and files is the binary. Names and defaults are upstream's.

use std::net::SocketAddr;
use std::time::Duration;

use kubekit::lease::core::{InvalidTimings, Timings};
use registry::Config;

use crate::core;
use crate::world::expanders;

/// Where upstream keeps its Lease and its ConfigMaps.
pub const HOME: &str = "kube-system";

/// Upstream's name, so that the two exclude each other.
pub const LEASE: &str = "cluster-autoscaler";

const STATUS: &str = "cluster-autoscaler-status";
const STATE: &str = "windlass-autoscaler-state";
const DRY_RUN_SUFFIX: &str = "-dry-run";

const LISTEN_DEFAULT: ([u8; 4], u16) = ([127, 0, 0, 1], 8085);

/// More requests at once than this help nobody.
const INFLIGHT_DEFAULT: usize = 64;

/// Everything that can be chosen about one process.
#[derive(Clone, Debug)]
pub struct Options {
    /// This process among its replicas. No two processes may share it.
    pub identity: String,
    /// Where the Lease and the ConfigMaps are.
    pub namespace: String,
    /// The Lease that one of all replicas holds.
    pub lease: String,
    pub lease_timings: Timings,
    /// Without an election it leads at once; nobody else may run then.
    pub is_elected: bool,
    /// The ConfigMap that people and dashboards read.
    pub status_config_map: String,
    /// Where health, metrics and answers are served.
    pub listen: SocketAddr,
    /// Requests to the API server under way at once.
    pub max_inflight: usize,
    pub mode: Mode,
    /// Of the registry, flags and all.
    pub registry: Config,
    /// Of the planners; its expanders are made of `expander`.
    pub plans: core::Config,
    /// A chain of names, parted by commas.
    pub expander: String,
    /// How long the estimate of one group may take.
    pub binpacking_duration_max: Duration,
    /// How long candidates may be marked in one iteration.
    pub soft_taint_duration_max: Duration,
    pub pace: Pace,
}

/// What is done about what is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Act,
    /// Says what it would do, and writes only ConfigMaps of its own.
    DryRun,
    /// The same without a provider, and writes nothing at all.
    Observe,
}

/// How often the loop looks, and when its silence is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    pub scan_interval: Duration,
    /// A new pod that fits nowhere, and an iteration that achieved something, are not waited after.
    pub has_frequent_loops: bool,
    pub inactivity_max: Duration,
    pub failing_max: Duration,
}

/// Why options were refused. Each names the flag, because that is what a person wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("--{0} is empty")]
    Empty(&'static str),
    #[error("a replica has to be told from the others: its identity is empty")]
    NoIdentity,
    #[error(
        "--leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period contradict each other"
    )]
    Timings(#[source] InvalidTimings),
    #[error("--max-total-unready-percentage: {0} is not between 0 and 100")]
    Percentage(String),
    #[error("--scale-down-utilization-threshold: {0} is not between 0 and 1")]
    Threshold(String),
    #[error("--expander: {0}")]
    Expander(String),
    #[error("--{0} is 0")]
    Zero(&'static str),
}

// === impl Options ===

impl Options {
    /// The defaults, for a process of this identity.
    #[must_use]
    pub fn new(identity: String) -> Self {
        let registry =
            Config { observation_gap_tolerance: Some(Duration::from_mins(2)), ..Config::default() };
        Self {
            identity,
            namespace: HOME.to_owned(),
            lease: LEASE.to_owned(),
            lease_timings: Timings::LEADER,
            is_elected: true,
            status_config_map: STATUS.to_owned(),
            listen: SocketAddr::from(LISTEN_DEFAULT),
            max_inflight: INFLIGHT_DEFAULT,
            mode: Mode::Act,
            registry,
            plans: core::Config::default(),
            expander: "least-waste".to_owned(),
            binpacking_duration_max: Duration::from_secs(10),
            soft_taint_duration_max: Duration::from_secs(3),
            pace: Pace::default(),
        }
    }

    pub fn validate(&self) -> Result<(), Error> {
        if let Some(flag) = self.empty() {
            return Err(Error::Empty(flag));
        }
        if self.identity.is_empty() {
            return Err(Error::NoIdentity);
        }
        if let Some(flag) = self.zero() {
            return Err(Error::Zero(flag));
        }
        self.lease_timings.validate().map_err(Error::Timings)?;
        let percentage = self.registry.unready_percentage_max;
        if !(0.0..=100.0).contains(&percentage) {
            return Err(Error::Percentage(percentage.to_string()));
        }
        let threshold = self.plans.scale_down.utilization_threshold;
        if !(0.0..=1.0).contains(&threshold) {
            return Err(Error::Threshold(threshold.to_string()));
        }
        match expanders(&self.expander, None) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Expander(error.to_string())),
        }
    }

    /// The flag that lacks a name.
    fn empty(&self) -> Option<&'static str> {
        let names = [
            ("namespace", &self.namespace),
            ("leader-elect-resource-name", &self.lease),
            ("status-config-map-name", &self.status_config_map),
        ];
        names.into_iter().find_map(|(flag, name)| name.is_empty().then_some(flag))
    }

    /// The flag with which nothing would ever be done, or every machine be late as soon as it is asked for.
    fn zero(&self) -> Option<&'static str> {
        let (times, down) = (&self.registry.times, &self.plans.scale_down);
        let flags = [
            ("scan-interval", self.pace.scan_interval.is_zero()),
            ("max-node-provision-time", times.provision.is_zero()),
            ("max-node-startup-time", times.startup.is_zero()),
            ("max-scale-down-parallelism", down.parallelism_max == 0),
            ("max-drain-parallelism", down.drain_parallelism_max == 0),
        ];
        flags.into_iter().find_map(|(flag, is_zero)| is_zero.then_some(flag))
    }

    /// The ConfigMap that is written for people.
    #[must_use]
    pub fn status_name(&self) -> String {
        self.named(&self.status_config_map)
    }

    /// The ConfigMap that is written for whoever leads next.
    #[must_use]
    pub fn state_name(&self) -> String {
        self.named(STATE)
    }

    /// Whoever does not act does not write what those who do go by.
    fn named(&self, name: &str) -> String {
        let suffix = if self.mode == Mode::Act { "" } else { DRY_RUN_SUFFIX };
        format!("{name}{suffix}")
    }
}

// === impl Pace ===

impl Default for Pace {
    fn default() -> Self {
        Self {
            scan_interval: Duration::from_secs(10),
            has_frequent_loops: true,
            inactivity_max: Duration::from_mins(10),
            failing_max: Duration::from_mins(15),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Options), expected: &str) {
        let mut options = Options::new("replica-1".to_owned());
        change(&mut options);
        let outcome = options.validate().map_or_else(|error| error.to_string(), |()| "ok".into());
        assert_eq!(outcome, expected);
    }

    #[test]
    fn what_cannot_work_is_refused_by_the_name_of_its_flag() {
        check(|_| {}, "ok");
        check(|it| it.namespace = String::new(), "--namespace is empty");
        check(|it| it.lease = String::new(), "--leader-elect-resource-name is empty");
        check(|it| it.status_config_map = String::new(), "--status-config-map-name is empty");
        check(|it| it.pace.scan_interval = Duration::ZERO, "--scan-interval is 0");
        check(|it| it.registry.times.provision = Duration::ZERO, "--max-node-provision-time is 0");
        check(|it| it.plans.scale_down.drain_parallelism_max = 0, "--max-drain-parallelism is 0");
        check(
            |it| it.plans.scale_down.utilization_threshold = f64::NAN,
            "--scale-down-utilization-threshold: NaN is not between 0 and 1",
        );
        check(
            |it| it.registry.unready_percentage_max = 101.0,
            "--max-total-unready-percentage: 101 is not between 0 and 100",
        );
    }

    #[test]
    fn who_does_not_act_writes_config_maps_of_its_own() {
        let mut options = Options::new("a".to_owned());
        assert_eq!(options.state_name(), "windlass-autoscaler-state");
        options.mode = Mode::DryRun;
        assert_eq!(options.status_name(), "cluster-autoscaler-status-dry-run");
    }
}
