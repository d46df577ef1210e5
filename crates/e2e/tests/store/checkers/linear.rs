//! The linearizability checker accepts what a correct store does and refuses each bug.

use e2e::check::history::{Answer, Interval, Operation, Outcome, Request, Response, Truth};
use e2e::check::linear::{self, Violation};
use e2e::check::model::State;

use super::simulation::{self, Bug};

const SEEDS: u64 = 40;

#[test]
fn a_correct_store_passes() {
    for seed in 0..SEEDS {
        let run = simulation::run(seed, None);
        if let Err(violation) = linear::check(&run.history, &run.truth) {
            panic!("seed {seed}: {violation}");
        }
    }
}

fn is_caught(seed: u64, bug: Bug) -> bool {
    let run = simulation::run(seed, Some(bug));
    let outcome = linear::check(&run.history, &run.truth);
    matches!(outcome, Err(Violation::NotLinearizable { .. }))
}

#[test]
fn each_bug_is_caught() {
    for bug in [Bug::LostWrite, Bug::StaleRead, Bug::RepeatedRevision, Bug::DoubleApply] {
        for seed in 0..SEEDS {
            assert!(is_caught(seed, bug), "seed {seed}: {bug:?} went unnoticed");
        }
    }
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

/// What a store tells that did these writes, one after the other.
fn truth(requests: &[Request]) -> Truth {
    let mut state = State::default();
    let mut events = Vec::new();
    for request in requests {
        let step = state.apply(request);
        events.extend(step.events);
        state = step.after.expect("a put changes something");
    }
    Truth::new(events)
}

fn read_nothing(called: u64) -> Operation {
    let answer = answered(called + 1, 1, Answer::Range(Vec::new()));
    operation(called, Request::Range(Interval::key("a")), answer)
}

#[test]
fn an_unanswered_write_may_take_effect_late_or_never() {
    let lost = operation(1, put("x"), Outcome::Unknown);
    assert!(linear::check(&[lost.clone(), read_nothing(4)], &truth(&[])).is_ok(), "never");

    let later = operation(6, put("y"), answered(7, 3, Answer::Put));
    let told = truth(&[put("x"), put("y")]);
    let history = [lost, read_nothing(4), later];
    assert!(linear::check(&history, &told).is_ok(), "after the read that missed it");
}

#[test]
fn what_the_store_tells_must_have_been_asked_for() {
    assert!(linear::check(&[read_nothing(1)], &truth(&[put("x")])).is_err(), "by nobody");
    let other = operation(1, put("y"), Outcome::Unknown);
    assert!(linear::check(&[other], &truth(&[put("x")])).is_err(), "by nobody like that");
}

#[test]
fn an_answered_write_must_not_move_behind_a_later_read() {
    let write = operation(1, put("x"), answered(2, 2, Answer::Put));
    assert!(linear::check(&[write, read_nothing(3)], &truth(&[put("x")])).is_err());
}
