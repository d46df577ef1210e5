//! A registry that lost its state asks for no more than the one that has it, and removes nothing
//! earlier. Two things cannot be read off the cluster: a backoff, so a group may be asked again before
//! its end; and that a request expected more than is there, so sizes are not compared in groups from
//! which others take machines away.

use std::collections::BTreeSet;

use proptest::prelude::*;
use registry::{Class, Config, Decision, GroupId, InstanceId, Observation, Refusal, Registry};

use super::world::{Event, GROUPS, calm_life};
use super::{Life, never_halting};

/// What is missing is given up no earlier than if it had been asked for after the loss.
const PROVISION_SECS: i64 = 15 * 60;

proptest! {
    #[test]
    fn is_never_hasty(before in calm_life(), after in calm_life()) {
        check(&before, &after, Registry::rebuild)?;
    }
}

/// Compares a registry with one that begins anew after `before`.
pub(super) fn check(
    before: &[Event],
    after: &[Event],
    anew: fn(Config) -> Registry,
) -> Result<(), TestCaseError> {
    let mut life = Life::new(never_halting());
    let mut robbed = BTreeSet::new();
    for event in before {
        robbed.extend(robbed_by(event, &life));
        life.step(event);
    }
    let mut other = Life { world: life.world.clone(), registry: anew(never_halting()) };
    let mut first_look = None;
    for event in after.iter().filter(|event| !event.is_ours()) {
        robbed.extend(robbed_by(event, &life));
        if let Some((_, without)) = life.step(event).zip(other.step(event)) {
            let now = life.world.now;
            let watched_for = now.duration_since(*first_look.get_or_insert(now));
            compare_increases(&life, &other, &robbed)?;
            compare_nodes(&life, &other)?;
            compare_removals(&life, &without)?;
            let is_patient = watched_for.as_secs() >= PROVISION_SECS;
            prop_assert!(is_patient || !has_reduction(&without), "given up after {watched_for:?}");
        }
    }
    Ok(())
}

/// The group from which others take a machine away.
fn robbed_by(event: &Event, life: &Life) -> Option<&'static str> {
    match event {
        Event::Vanish(which) | Event::Deleting(which) => life.world.group_of(*which),
        _ => None,
    }
}

fn compare_increases(
    life: &Life,
    other: &Life,
    robbed: &BTreeSet<&str>,
) -> Result<(), TestCaseError> {
    let now = life.world.now;
    for group in GROUPS.map(GroupId::from) {
        if robbed.contains(group.as_str()) || !other.registry.is_safe_to_scale_up(&group, now) {
            continue;
        }
        let provided = |registry: &Registry| {
            let terms = registry.terms(&group, now).expect("the group is known");
            terms.counts.ready + terms.upcoming()
        };
        prop_assert!(provided(&other.registry) >= provided(&life.registry), "{group}");
        // Who remembers nothing waits for what is missing, and so does not call it ill.
        let mut refusals = life.registry.scale_up_refusals(&group, now);
        refusals.retain(|it| !matches!(it, Refusal::Unhealthy | Refusal::Backoff { .. }));
        prop_assert_eq!(refusals, [], "{} may grow only after the loss", group);
    }
    Ok(())
}

fn compare_nodes(life: &Life, other: &Life) -> Result<(), TestCaseError> {
    let now = life.world.now;
    // Why they are removed may differ: that a node was Ready for a moment is not told by its conditions.
    let removable = life.registry.removable(now);
    for removal in other.registry.removable(now) {
        let is_known = removable.iter().any(|known| known.node == removal.node);
        prop_assert!(is_known, "{removal:?}");
    }
    Ok(())
}

/// What is removed after the loss would be removed without it as well, if not always first.
fn compare_removals(life: &Life, without: &Observation) -> Result<(), TestCaseError> {
    let useless = life.registry.unregistered().filter(|(_, instance)| {
        matches!(instance.class, Class::CreateFailed | Class::LongUnregistered)
    });
    let useless: BTreeSet<&InstanceId> = useless.map(|(id, _)| id).collect();
    for decision in &without.decisions {
        if let Decision::RemoveInstance { instance, .. } = decision {
            prop_assert!(useless.contains(instance), "{instance}");
        }
    }
    Ok(())
}

fn has_reduction(observation: &Observation) -> bool {
    observation.decisions.iter().any(|it| matches!(it, Decision::ReduceTarget { .. }))
}
