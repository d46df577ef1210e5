//! A range, with any options and at any revision, answers what the model answers.

use mvcc::story::Command;
use proptest::{collection::vec, prelude::*};

use super::Pair;
use crate::arbitrary;

proptest! {
    #[test]
    fn any_options_at_any_revision(
        life in arbitrary::life(),
        ranges in vec(arbitrary::range(), 20),
    ) {
        let mut pair = Pair::after(&life)?;
        for range in ranges {
            pair.check(&Command::Range(range))?;
        }
    }

    #[test]
    fn everything_at_every_revision(life in arbitrary::life()) {
        Pair::after(&life)?.check_all()?;
    }
}
