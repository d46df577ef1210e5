//! A group of the simulated cloud: its limits, what its machines are, and how long they take.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::fmt::serde::unsigned_duration;
use registry::GroupId;
use serde::Deserialize;

use super::Span;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub id: GroupId,
    #[serde(default)]
    pub min: u32,
    pub max: u32,
    /// When the simulation begins. Its machines are there and ready then.
    #[serde(default)]
    pub target: u32,
    /// In turn.
    #[serde(default = "zones_default")]
    pub zones: Vec<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// Quantities by resource; all of it can be used by pods.
    #[serde(default = "capacity_default")]
    pub capacity: BTreeMap<String, String>,
    /// From creation to running.
    #[serde(default = "boot_default")]
    pub boot: Span,
    /// From running to the Node.
    #[serde(default = "register_default")]
    pub register: Span,
    /// From the Node to Ready.
    #[serde(default = "ready_default")]
    pub ready: Span,
    /// From the call to the end of the machine.
    #[serde(default = "delete_default")]
    pub delete: Span,
    /// Whether the cloud makes a new machine for one that it lost.
    #[serde(default)]
    pub replaces_lost: bool,
    #[serde(default)]
    pub options: GroupOptions,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub value: String,
    pub effect: String,
}

/// What the group answers when it is asked for its options.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupOptions {
    #[serde(with = "unsigned_duration::optional")]
    pub unneeded: Option<Duration>,
    #[serde(with = "unsigned_duration::optional")]
    pub unready: Option<Duration>,
    #[serde(with = "unsigned_duration::optional")]
    pub provision: Option<Duration>,
    #[serde(with = "unsigned_duration::optional")]
    pub startup: Option<Duration>,
    pub utilization_threshold: Option<f64>,
    pub gpu_utilization_threshold: Option<f64>,
    pub zero_or_max: Option<bool>,
    pub ignore_daemon_sets: Option<bool>,
}

fn zones_default() -> Vec<String> {
    vec!["z1".to_owned()]
}

fn capacity_default() -> BTreeMap<String, String> {
    let each = [("cpu", "4"), ("memory", "16Gi"), ("pods", "110")];
    each.map(|(name, quantity)| (name.to_owned(), quantity.to_owned())).into()
}

fn boot_default() -> Span {
    Span::always(Duration::from_secs(30))
}

fn register_default() -> Span {
    Span::always(Duration::from_secs(10))
}

fn ready_default() -> Span {
    Span::always(Duration::from_secs(10))
}

fn delete_default() -> Span {
    Span::always(Duration::from_secs(10))
}
