//! Nothing is done twice to one instance: not in one observation, and not while a deletion is under
//! way.

use std::collections::BTreeSet;

use jiff::Timestamp;
use proptest::prelude::*;
use registry::{Config, DELETION_TIMEOUT, Decision, Observation, Registry};

use super::Life;
use super::world::{World, life};

proptest! {
    #[test]
    fn at_a_time(events in life()) {
        let mut life = Life::new(Config::default());
        for event in &events {
            if let Some(observation) = life.step(event) {
                check(&life.world, &life.registry, &observation)?;
            }
        }
    }
}

pub(super) fn check(
    world: &World,
    registry: &Registry,
    observation: &Observation,
) -> Result<(), TestCaseError> {
    let mut seen = BTreeSet::new();
    let removals = observation.decisions.iter().filter_map(|decision| match decision {
        Decision::RemoveInstance { instance, .. } => Some(instance.clone()),
        _ => None,
    });
    let nodes = registry.removable(world.now).into_iter().filter_map(|removal| removal.instance);
    for instance in removals.chain(nodes) {
        let is_over = |at: &Timestamp| world.now >= *at + DELETION_TIMEOUT;
        let is_free = world.deleted.get(instance.as_str()).is_none_or(is_over);
        prop_assert!(is_free, "{instance} is being deleted");
        prop_assert!(seen.insert(instance.clone()), "{instance} twice");
    }
    Ok(())
}
