//! A group whose sizes cannot be read changes no decision on another.

use proptest::prelude::*;
use registry::{Decision, Failure, GroupId, Notices, Observation, Registry};

use super::world::{Event, calm_life};
use super::{Life, never_halting};

proptest! {
    #[test]
    fn and_changes_nothing_elsewhere(
        events in calm_life(),
        faults in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut calm = Life::new(never_halting());
        let mut rough = Life::new(never_halting());
        let is_apart = |event: &&Event| !matches!(event, Event::CarryOut { .. });
        for (event, fails) in events.iter().filter(is_apart).zip(faults) {
            rough.step(&Event::Fail { group: 0, fails });
            let (one, other) = (calm.step(event), rough.step(event));
            prop_assert_eq!(one.map(of_b), other.map(of_b));
            let (b, now) = (GroupId::from("b"), calm.world.now);
            let state = |registry: &Registry| {
                (registry.upcoming(&b, now), registry.scale_up_refusals(&b, now))
            };
            prop_assert_eq!(state(&calm.registry), state(&rough.registry));
        }
    }
}

/// What an observation says of the group that does not fail.
fn of_b(observation: Observation) -> (Vec<Decision>, Vec<Failure>) {
    let Observation { mut decisions, notices: Notices { mut failures, .. } } = observation;
    decisions.retain(|decision| match decision {
        Decision::RemoveInstance { group, .. } | Decision::ReduceTarget { group, .. } => {
            group.as_str() == "b"
        }
        // Nodes are called like their machines.
        Decision::LiftTaint { node } => node.as_str().starts_with("b/"),
        Decision::Halt(_) => true,
    });
    failures.retain(|failure| failure.group.as_str() == "b");
    (decisions, failures)
}
