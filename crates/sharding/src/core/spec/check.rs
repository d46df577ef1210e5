//! What is wrong with a Ring. The server refuses most of it by the same rules in the Ring's schema;
//! a schema may be missing or older.

use std::collections::BTreeSet;

use super::{Algorithm, Fence, GroupResource, Identity, Preset, RESOURCES_MAX, Spec};
use crate::core::names::{NameError, RingName, check_prefix};
use crate::core::partition::slots::{SLOTS_MAX, SLOTS_MIN};

const PERCENT_MAX: u32 = 100;
const CONCURRENT_MOVES_MAX: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the name of a ring is an RFC 1123 label")]
    Name(#[source] NameError),
    #[error("a ring has from 1 to {RESOURCES_MAX} resources, not {0}")]
    ResourceCount(usize),
    #[error("`{0}` has no name of a resource")]
    NoResource(GroupResource),
    #[error("`{0}` stands among the resources twice")]
    Twice(GroupResource),
    #[error("`{0}` is both a main resource and a controlled one")]
    MainAndControlled(GroupResource),
    #[error("graceSeconds {grace_s} must be less than drainTimeoutSeconds {timeout_s}")]
    Grace { grace_s: u64, timeout_s: u64 },
    #[error("concurrentMoves is from 1 to {CONCURRENT_MOVES_MAX}, not {0}")]
    ConcurrentMoves(usize),
    #[error("slots is a power of two from {SLOTS_MIN} to {SLOTS_MAX}, not {0}")]
    Slots(usize),
    #[error("{field} is at most 100, not {value}")]
    Percent { field: &'static str, value: u32 },
    #[error("names.prefix is a DNS subdomain")]
    Prefix(#[source] NameError),
    #[error("names.preset Timebertt needs partitioning.algorithm Ring")]
    PresetNeedsRing,
    #[error(
        "a fence needs instances.serviceAccounts or instances.usernamePrefix; or say fence: Off"
    )]
    FenceNeedsInstances,
    #[error("instances.identity Username needs instances.usernamePrefix")]
    UsernameNeedsPrefix,
    #[error("instances.serviceAccounts has {0:?}; write namespace/name")]
    ServiceAccount(String),
    #[error("{0} cannot be changed; create another ring")]
    Immutable(&'static str),
}

/// Everything that is wrong, so that users need not find it one by one.
#[must_use]
pub fn check(name: &str, spec: &Spec) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(name.parse::<RingName>().err().map(Problem::Name));
    check_resources(spec, &mut problems);
    check_numbers(spec, &mut problems);
    check_instances(spec, &mut problems);
    problems.extend(check_prefix(&spec.names.prefix).err().map(Problem::Prefix));
    let is_timebertt = spec.names.preset == Some(Preset::Timebertt);
    if is_timebertt && spec.partitioning.algorithm != Algorithm::Ring {
        problems.push(Problem::PresetNeedsRing);
    }
    problems
}

/// What may not become of an existing ring.
#[must_use]
pub fn check_change(before: &Spec, after: &Spec) -> Vec<Problem> {
    let changes = [
        ("partitioning.algorithm", before.partitioning.algorithm != after.partitioning.algorithm),
        ("partitioning.slots", before.partitioning.slots != after.partitioning.slots),
        ("names", before.names != after.names),
    ];
    let forbidden = changes.into_iter().filter(|(_, is_changed)| *is_changed);
    forbidden.map(|(field, _)| Problem::Immutable(field)).collect()
}

fn check_resources(spec: &Spec, problems: &mut Vec<Problem>) {
    let count = spec.resources.len();
    if count == 0 || count > RESOURCES_MAX {
        problems.push(Problem::ResourceCount(count));
    }
    let main: Vec<GroupResource> =
        spec.resources.iter().map(super::Resource::group_resource).collect();
    let mut seen = BTreeSet::new();
    for resource in &main {
        if resource.resource.is_empty() {
            problems.push(Problem::NoResource(resource.clone()));
        } else if !seen.insert(resource) {
            problems.push(Problem::Twice(resource.clone()));
        }
    }
    for resource in &spec.resources {
        let mut seen_here = BTreeSet::new();
        for controlled in resource.controlled.iter().map(super::Controlled::group_resource) {
            if controlled.resource.is_empty() {
                problems.push(Problem::NoResource(controlled));
            } else if main.contains(&controlled) {
                problems.push(Problem::MainAndControlled(controlled));
            } else if !seen_here.insert(controlled.clone()) {
                problems.push(Problem::Twice(controlled));
            }
        }
    }
}

fn check_numbers(spec: &Spec, problems: &mut Vec<Problem>) {
    let (handover, partitioning) = (&spec.handover, &spec.partitioning);
    let (grace_s, timeout_s) = (handover.grace_seconds, handover.drain_timeout_seconds);
    if grace_s >= timeout_s {
        problems.push(Problem::Grace { grace_s, timeout_s });
    }
    if !(1..=CONCURRENT_MOVES_MAX).contains(&handover.concurrent_moves) {
        problems.push(Problem::ConcurrentMoves(handover.concurrent_moves));
    }
    let slots = partitioning.slots;
    if !slots.is_power_of_two() || !(SLOTS_MIN..=SLOTS_MAX).contains(&slots) {
        problems.push(Problem::Slots(slots));
    }
    for (field, value) in [
        ("maxImbalancePercent", partitioning.max_imbalance_percent),
        ("maxMovePercent", partitioning.max_move_percent),
    ] {
        if value > PERCENT_MAX {
            problems.push(Problem::Percent { field, value });
        }
    }
}

fn check_instances(spec: &Spec, problems: &mut Vec<Problem>) {
    let instances = &spec.instances;
    let has_prefix = instances.username_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
    let is_nobody = instances.service_accounts.is_empty() && !has_prefix;
    if spec.fence != Fence::Off && is_nobody {
        problems.push(Problem::FenceNeedsInstances);
    }
    if instances.identity == Identity::Username && !has_prefix {
        problems.push(Problem::UsernameNeedsPrefix);
    }
    let is_account = |text: &String| {
        let parts: Vec<&str> = text.split('/').collect();
        matches!(parts[..], [namespace, name] if !namespace.is_empty() && !name.is_empty())
    };
    let unreadable = instances.service_accounts.iter().filter(|account| !is_account(account));
    problems.extend(unreadable.cloned().map(Problem::ServiceAccount));
}

// === impl GroupResource ===

impl std::fmt::Display for GroupResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.group.is_empty() {
            return f.write_str(&self.resource);
        }
        write!(f, "{}.{}", self.resource, self.group)
    }
}
