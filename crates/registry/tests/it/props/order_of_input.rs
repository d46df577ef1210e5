//! Nothing depends on the order in which facts come.

use proptest::prelude::*;
use registry::{Config, Facts, Registry};

use super::any_facts::{Step, life};

proptest! {
    #[test]
    fn is_irrelevant(steps in life()) {
        let mut forth = Registry::new(Config::default());
        let mut back = Registry::new(Config::default());
        for Step { now, facts, outcomes } in &steps {
            let (one, other) = (forth.observe(*now, facts), back.observe(*now, &reversed(facts)));
            prop_assert_eq!(one.decisions, other.decisions);
            prop_assert_eq!(one.notices.events, other.notices.events);
            prop_assert_eq!(one.notices.failures, other.notices.failures);
            for outcome in outcomes {
                prop_assert_eq!(forth.record(*now, outcome), back.record(*now, outcome));
            }
            prop_assert_eq!(forth.save(), back.save());
            prop_assert_eq!(forth.status(*now), back.status(*now));
        }
    }
}

fn reversed(facts: &Facts) -> Facts {
    let mut facts = facts.clone();
    facts.nodes.reverse();
    if let Ok(groups) = &mut facts.groups {
        groups.reverse();
        groups
            .iter_mut()
            .filter_map(|group| group.instances.as_mut().ok())
            .for_each(|it| it.reverse());
    }
    facts
}
