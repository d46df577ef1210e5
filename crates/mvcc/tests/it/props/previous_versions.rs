//! The version a change replaced is known as long as the state before it can be read.

use proptest::prelude::*;

use super::Pair;
use crate::arbitrary;

proptest! {
    #[test]
    fn of_every_event(life in arbitrary::life(), sweep in 0_usize..8) {
        let mut pair = Pair::after(&life)?;
        pair.world.sweep(sweep);
        let view = pair.world.keyspace.view();
        for event in pair.model.events() {
            let (position, kv) = event;
            let expected = pair.model.previous(event).filter(|_| position.revision > view.compacted());
            prop_assert_eq!(view.previous(kv.key(), *position), expected, "{}", position);
        }
    }
}
