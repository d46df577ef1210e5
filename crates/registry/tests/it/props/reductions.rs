//! No target is lowered below the instances that are there.

use proptest::prelude::*;
use registry::{Config, Decision, Observation};

use super::Life;
use super::world::{World, life};

proptest! {
    #[test]
    fn take_no_instance_that_is_listed(events in life()) {
        let mut life = Life::new(Config::default());
        for event in &events {
            if let Some(observation) = life.step(event) {
                check(&life.world, &observation)?;
            }
        }
    }
}

pub(super) fn check(world: &World, observation: &Observation) -> Result<(), TestCaseError> {
    for decision in &observation.decisions {
        if let Decision::ReduceTarget { group, delta } = decision {
            let (target, staying) = (world.target(group), world.staying(group));
            prop_assert!(*delta > 0 && target >= staying + delta, "{target}, {staying}, {delta}");
        }
    }
    Ok(())
}
