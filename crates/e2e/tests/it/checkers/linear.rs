//! The linearizability checker accepts what a correct store does and refuses each bug.

use e2e::check::history::{Answer, Interval, Operation, Outcome, Request, Response};
use e2e::check::linear::{self, Violation};

use super::simulation::{self, Bug};

const SEEDS: u64 = 40;

#[test]
fn a_correct_store_passes() {
    for seed in 0..SEEDS {
        let run = simulation::run(seed, None);
        if let Err(violation) = linear::check(&run.history) {
            panic!("seed {seed}: {violation}");
        }
    }
}

fn is_caught(seed: u64, bug: Bug) -> bool {
    let outcome = linear::check(&simulation::run(seed, Some(bug)).history);
    matches!(outcome, Err(Violation::NotLinearizable { .. }))
}

#[test]
fn each_bug_is_caught() {
    for bug in [Bug::LostWrite, Bug::StaleRead, Bug::RepeatedRevision] {
        for seed in 0..SEEDS {
            assert!(is_caught(seed, bug), "seed {seed}: {bug:?} went unnoticed");
        }
    }
}

/// An unanswered write can explain the second application; the ledger, which sees all events,
/// catches every one.
#[test]
fn a_double_application_is_caught_unless_something_else_explains_it() {
    let caught = (0..SEEDS).filter(|seed| is_caught(*seed, Bug::DoubleApply)).count() as u64;
    assert!(caught > SEEDS / 2, "only {caught} of {SEEDS}");
}

fn operation(called: u64, request: Request, outcome: Outcome) -> Operation {
    Operation { client: 0, called, request, outcome }
}

fn put(value: &str) -> Request {
    Request::Put { key: "a".to_owned(), value: value.to_owned() }
}

fn answered(at: u64, revision: i64, answer: Answer) -> Outcome {
    Outcome::Answered { at, response: Response { revision, answer } }
}

#[test]
fn an_unanswered_write_may_take_effect_late_or_never() {
    let empty = || {
        operation(4, Request::Range(Interval::key("a")), answered(5, 1, Answer::Range(Vec::new())))
    };
    let lost = operation(1, put("x"), Outcome::Unknown);
    assert!(linear::check(&[lost.clone(), empty()]).is_ok(), "never");

    let later = operation(6, put("y"), answered(7, 3, Answer::Put));
    assert!(linear::check(&[lost, empty(), later]).is_ok(), "after the read that missed it");
}

#[test]
fn an_answered_write_must_not_move_behind_a_later_read() {
    let write = operation(1, put("x"), answered(2, 2, Answer::Put));
    let read =
        operation(3, Request::Range(Interval::key("a")), answered(4, 1, Answer::Range(Vec::new())));
    assert!(linear::check(&[write, read]).is_err());
}
