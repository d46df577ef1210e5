//! What a simulated cloud is and what goes wrong in it, as a file says it. Reads and checks; simulates
//! nothing.

mod fault;
mod group;
mod span;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::fmt::serde::unsigned_duration;
use registry::GroupId;
use serde::Deserialize;

pub use fault::{Code, Fault, FaultError, Kind, Words};
pub use group::{Group, GroupOptions, Taint};
pub use span::Span;

use self::fault::WrittenFault;

/// How often the cloud moves on by itself and the kubelets act, unless the file says otherwise.
const TICK_DEFAULT: Duration = Duration::from_secs(1);

/// A cloud and its faults, checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All that is left to chance follows from it.
    pub seed: u64,
    pub generation: Generation,
    pub gpu_label: String,
    pub gpu_types: BTreeSet<String>,
    pub tick: Duration,
    /// After so long a silence a Node is marked Unknown. Without, somebody else does that.
    pub unknown_after: Option<Duration>,
    pub groups: Vec<Group>,
    pub faults: Vec<Fault>,
}

/// Which generation of the protocol the cloud answers in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// Up to 1.34.1.
    Legacy,
    /// From 1.35.
    Current,
    /// 1.34.2 and later 1.34.
    #[default]
    Both,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the scenario is not as it should be")]
    Syntax(#[source] serde_saphyr::Error),
    #[error("the scenario has no groups")]
    NoGroups,
    #[error("a group has an empty id")]
    EmptyId,
    #[error("the group `{0}` is there twice")]
    Twice(GroupId),
    #[error("the group `{id}` has target {target}, which is not between {min} and {max}")]
    Target { id: GroupId, min: u32, target: u32, max: u32 },
    #[error("the group `{0}` is in no zone")]
    NoZone(GroupId),
    #[error("`tick` is 0 s")]
    NoTick,
    #[error("fault {number} of the scenario cannot be")]
    Fault {
        /// From 1.
        number: usize,
        #[source]
        source: FaultError,
    },
}

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    generation: Generation,
    #[serde(default)]
    gpu_label: String,
    #[serde(default)]
    gpu_types: BTreeSet<String>,
    #[serde(default = "tick_default", with = "unsigned_duration::required")]
    tick: Duration,
    #[serde(default, with = "unsigned_duration::optional")]
    unknown_after: Option<Duration>,
    groups: Vec<Group>,
    #[serde(default)]
    faults: Vec<WrittenFault>,
}

fn tick_default() -> Duration {
    TICK_DEFAULT
}

// === impl Scenario ===

impl Scenario {
    /// A scenario in YAML. A key that is not known is an error that names it.
    pub fn parse(yaml: &str) -> Result<Self, Error> {
        let in_one_line = serde_saphyr::options! { with_snippet: false };
        let written: Written =
            serde_saphyr::from_str_with_options(yaml, in_one_line).map_err(Error::Syntax)?;
        check_groups(&written.groups)?;
        if written.tick.is_zero() {
            return Err(Error::NoTick);
        }
        let ids: BTreeSet<&GroupId> = written.groups.iter().map(|group| &group.id).collect();
        let faults = written.faults.into_iter().zip(1..).map(|(fault, number)| {
            fault.check(&ids).map_err(|source| Error::Fault { number, source })
        });
        Ok(Self {
            faults: faults.collect::<Result<_, _>>()?,
            seed: written.seed,
            generation: written.generation,
            gpu_label: written.gpu_label,
            gpu_types: written.gpu_types,
            tick: written.tick,
            unknown_after: written.unknown_after,
            groups: written.groups,
        })
    }
}

fn check_groups(groups: &[Group]) -> Result<(), Error> {
    let mut ids = BTreeSet::new();
    for group in groups {
        let Group { id, min, max, target, .. } = group;
        if id.0.is_empty() {
            return Err(Error::EmptyId);
        }
        if !ids.insert(id) {
            return Err(Error::Twice(id.clone()));
        }
        if !(min..=max).contains(&target) {
            return Err(Error::Target { id: id.clone(), min: *min, target: *target, max: *max });
        }
        if group.zones.is_empty() {
            return Err(Error::NoZone(id.clone()));
        }
    }
    if groups.is_empty() { Err(Error::NoGroups) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
