//! The checker of acknowledged writes accepts what a correct store does and refuses each bug.

use e2e::check::history::{Event, Truth};
use e2e::check::ledger::{self, Violation};

use super::simulation::{self, Bug};

const SEEDS: u64 = 40;

fn verdict(seed: u64, bug: Bug) -> Violation {
    let run = simulation::run(seed, Some(bug));
    ledger::check(&run.truth, &run.writes).expect_err("the bug must be noticed")
}

#[test]
fn a_correct_store_passes() {
    for seed in 0..SEEDS {
        let run = simulation::run(seed, None);
        let tally = ledger::check(&run.truth, &run.writes).unwrap();
        assert!(tally.acknowledged > 50, "seed {seed}: a history must be worth judging: {tally:?}");
    }
}

#[test]
fn each_bug_is_caught() {
    for seed in 0..SEEDS {
        assert!(matches!(verdict(seed, Bug::DoubleApply), Violation::AppliedTwice { .. }));
        for bug in [Bug::LostWrite, Bug::RepeatedRevision] {
            let verdict = verdict(seed, bug);
            let is_expected =
                matches!(verdict, Violation::RepeatedRevision { .. } | Violation::Lost(_));
            assert!(is_expected, "seed {seed}: {bug:?}: {verdict:?}");
        }
    }
}

#[test]
fn a_skipped_revision_is_caught() {
    let run = simulation::run(1, None);
    let skip = |event: &Event| match event.revision {
        ..30 => event.clone(),
        revision => Event { revision: revision + 1, ..event.clone() },
    };
    let truth = Truth::new(run.truth.events().map(skip));
    assert_eq!(ledger::check(&truth, &run.writes), Err(Violation::Gap { revision: 30 }));
}

#[test]
fn what_nobody_wrote_is_caught() {
    let run = simulation::run(2, None);
    let unwritten = &run.writes[1..];
    assert!(matches!(ledger::check(&run.truth, unwritten), Err(Violation::Invented(_))));
}
