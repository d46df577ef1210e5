//! What happens in a fork stays there, and what happens in the original does too.

use proptest::prelude::*;

use super::CASES;
use super::life::{Life, events};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn forks_are_as_good_as_copies(
        before in events(), here in events(), there in events(),
    ) {
        let mut life = Life::new();
        before.iter().for_each(|event| life.happen(event));
        let expected = life.rebuilt().answers();

        let mut fork = life.clone();
        fork.cluster = life.cluster.fork();
        there.iter().for_each(|event| fork.happen(event));
        prop_assert_eq!(life.answers(), expected);
        prop_assert_eq!(fork.answers(), fork.rebuilt().answers());

        here.iter().for_each(|event| life.happen(event));
        prop_assert_eq!(fork.answers(), fork.rebuilt().answers());
        prop_assert_eq!(life.answers(), life.rebuilt().answers());
    }
}
