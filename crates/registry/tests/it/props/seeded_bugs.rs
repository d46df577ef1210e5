//! The properties find the mistakes they are made to find.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use registry::{Config, Decision, Registry};

use super::world::{Event, calm_life, life};
use super::{Life, lost_state, one_action_per_instance, reductions};

/// Within so many lives each mistake must show.
const LIVES_MAX: usize = 2_000;

fn is_found(mut breaks: impl FnMut(Vec<Event>, Vec<Event>) -> bool) -> bool {
    let mut runner = TestRunner::deterministic();
    (0..LIVES_MAX).any(|_| {
        let mut draw = |strategy: &dyn Fn(&mut TestRunner) -> Vec<Event>| strategy(&mut runner);
        let one = draw(&|runner| life().new_tree(runner).expect("a life").current());
        let other = draw(&|runner| calm_life().new_tree(runner).expect("a life").current());
        breaks(one, other)
    })
}

#[test]
fn a_reduction_of_what_was_asked_for_instead_of_what_is_missing_is_found() {
    assert!(is_found(|events, _| {
        let mut life = Life::new(Config::default());
        events.iter().any(|event| {
            let Some(mut observation) = life.step(event) else { return false };
            for decision in &mut observation.decisions {
                if let Decision::ReduceTarget { delta, .. } = decision {
                    *delta += 1;
                }
            }
            reductions::check(&life.world, &observation).is_err()
        })
    }));
}

#[test]
fn a_deletion_whose_intent_is_not_recorded_is_found() {
    assert!(is_found(|events, _| {
        let mut life = Life::new(Config::default());
        life.world.records_intents = false;
        events.iter().any(|event| {
            let Some(observation) = life.step(event) else { return false };
            one_action_per_instance::check(&life.world, &life.registry, &observation).is_err()
        })
    }));
}

#[test]
fn a_lost_state_that_is_taken_for_an_empty_cluster_is_found() {
    assert!(is_found(|_, events| {
        let (before, after) = events.split_at(events.len() / 2);
        lost_state::check(before, after, Registry::new).is_err()
    }));
}
