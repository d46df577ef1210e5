//! A move that fails leaves no trace.

use fit::Mover;
use proptest::prelude::*;

use super::CASES;
use super::life::{Life, events};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_failed_move_changes_nothing(events in events(), from in any::<usize>()) {
        let mut life = Life::new();
        events.iter().for_each(|event| life.happen(event));
        prop_assume!(!life.nodes.is_empty());
        let (node, _, pods) = life.nodes[from % life.nodes.len()].clone();
        let movers = pods.iter().map(|pod| {
            let class = life.class(*pod);
            Mover { bound: class, class }
        });
        let movers: Vec<_> = movers.collect();
        let others: Vec<_> = life.nodes.iter().map(|(id, ..)| *id).collect();
        let before = life.answers();
        match life.cluster.relocate(node, &movers, &others) {
            Ok(places) => {
                prop_assert!(places.iter().all(|place| *place != node));
                prop_assert_eq!(life.cluster.pods_on(node), 0);
            }
            Err(_) => prop_assert_eq!(life.answers(), before),
        }
    }
}
