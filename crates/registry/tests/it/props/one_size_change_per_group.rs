//! A group's size is changed once per observation: instances are removed, or the target is lowered
//! once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use registry::{Config, Decision, GroupId, REMOVALS_PER_GROUP_MAX};

use super::Life;
use super::world::life;

proptest! {
    #[test]
    fn and_observation(events in life()) {
        let mut life = Life::new(Config::default());
        for event in &events {
            let mut changes: BTreeMap<GroupId, (usize, usize)> = BTreeMap::new();
            for decision in life.step(event).into_iter().flat_map(|seen| seen.decisions) {
                match decision {
                    Decision::RemoveInstance { group, .. } => changes.entry(group).or_default().0 += 1,
                    Decision::ReduceTarget { group, .. } => changes.entry(group).or_default().1 += 1,
                    Decision::Halt(_) | Decision::LiftTaint { .. } => {}
                }
            }
            for (group, (removals, reductions)) in changes {
                prop_assert!(removals <= REMOVALS_PER_GROUP_MAX);
                prop_assert!(reductions == 0 || (reductions == 1 && removals == 0), "{group}");
            }
        }
    }
}
