//! Counters and verdicts that followed every change say what counting through would say.

use proptest::prelude::*;

use super::CASES;
use super::life::{Life, events};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn counters_are_right_after_every_event(events in events()) {
        let mut life = Life::new();
        for event in &events {
            life.happen(event);
            // Asking on the way fills what is remembered, which later answers must not suffer from.
            life.answers();
        }
        prop_assert_eq!(life.answers(), life.rebuilt().answers());
    }
}
