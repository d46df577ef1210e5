//! The judge accepts what a correct cluster does and names each bug that is put in.

use super::*;

/// Tasks of a seeded history.
const TASKS: u64 = 40;
const SEEDS: u64 = 50;

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What a correct cluster would have left, with nodes lost now and then.
fn correct(seed: u64) -> History {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut history = History::default();
    let mut revision = 1;
    for number in 0..TASKS {
        let task = format!("task-{number}");
        let restarts = dice.below(2) == 0;
        history.submitted.push(Submitted { task: task.clone(), restarts });
        let mut next = |state: State, versions: &mut Vec<Version>| {
            revision += 1;
            versions.push(Version { task: task.clone(), revision, state });
            revision
        };
        next(State::Queued, &mut history.versions);
        let losses = if restarts { dice.below(4) } else { dice.below(2) };
        let mut at_ms = 1000 * number;
        for attempt in 1.. {
            let attempt = u32::try_from(attempt).unwrap();
            let fence = next(State::Running { attempt }, &mut history.versions);
            let is_lost = u64::from(attempt) <= losses;
            at_ms += 10 + dice.below(500);
            history.signs.extend(signs(&task, (attempt, fence), at_ms, is_lost));
            at_ms += 1000;
            if !is_lost {
                let complete = State::Complete { attempt, exit_code: 0 };
                next(complete, &mut history.versions);
                break;
            }
            if !restarts {
                next(State::GivenUp("node lost".to_owned()), &mut history.versions);
                break;
            }
            next(State::Queued, &mut history.versions);
        }
    }
    history
}

/// Of an attempt that begins now and lives a second, to its end or without one.
fn signs(task: &str, (attempt, fence): (u32, i64), at_ms: u64, is_lost: bool) -> Vec<Sign> {
    let sign = |moment, at_ms| Sign { task: task.to_owned(), attempt, fence, moment, at_ms };
    let last = if is_lost { Moment::Alive } else { Moment::Ended };
    vec![sign(Moment::Began, at_ms), sign(Moment::Alive, at_ms + 500), sign(last, at_ms + 1000)]
}

fn verdict(history: &History) -> Vec<Violation> {
    check(history).expect_err("the bug must be noticed")
}

/// A task of the history that was run again, and where its second attempt's first sign is.
fn rerun(history: &History) -> usize {
    let is_second = |sign: &Sign| sign.attempt == 2 && sign.moment == Moment::Began;
    history.signs.iter().position(is_second).expect("some node was lost")
}

fn end_of(history: &History, task: &str) -> usize {
    let is_end = |version: &Version| version.task == task && version.state.is_final();
    history.versions.iter().position(is_end).expect("every task ends")
}

#[test]
fn a_correct_cluster_passes() {
    for seed in 1..=SEEDS {
        let history = correct(seed);
        let tally = check(&history).unwrap_or_else(|found| panic!("seed {seed}: {found:?}"));
        assert_eq!(tally.tasks, usize::try_from(TASKS).unwrap());
        assert!(tally.attempts > tally.tasks && tally.given_up > 0, "seed {seed}: {tally:?}");
    }
}

#[test]
fn attempts_that_overlap_in_time_are_found() {
    for seed in 1..=SEEDS {
        let mut history = correct(seed);
        let at = rerun(&history);
        let task = history.signs[at].task.clone();
        history.signs[at].at_ms = history.signs[at - 1].at_ms - 10;
        assert_eq!(verdict(&history), [Violation::Overlap { task, attempts: [1, 2] }]);
    }
}

#[test]
fn attempts_that_overlap_unseen_are_felt_by_the_lock() {
    for seed in 1..=SEEDS {
        let mut history = correct(seed);
        let at = rerun(&history);
        history.signs[at].moment = Moment::Refused;
        let task = history.signs[at].task.clone();
        assert_eq!(verdict(&history), [Violation::Overlap { task, attempts: [1, 2] }]);
    }
}

#[test]
fn a_lost_task_is_found() {
    let mut history = correct(7);
    history.versions.retain(|version| version.task != "task-3");
    assert_eq!(verdict(&history), [Violation::Lost { task: "task-3".to_owned() }]);
}

#[test]
fn a_forgotten_task_is_found() {
    let mut history = correct(7);
    let end = end_of(&history, "task-5");
    let state = history.versions[end - 1].state.clone();
    history.versions.remove(end);
    assert_eq!(verdict(&history), [Violation::Unfinished { task: "task-5".to_owned(), state }]);
}

#[test]
fn a_second_end_is_found() {
    let mut history = correct(7);
    let end = history.versions[end_of(&history, "task-5")].clone();
    let after = State::GivenUp("canceled".to_owned());
    let revision = history.versions.last().unwrap().revision + 1;
    history.versions.push(Version { revision, state: after.clone(), ..end.clone() });
    let task = "task-5".to_owned();
    assert_eq!(verdict(&history), [Violation::ChangedAfterEnd { task, end: end.state, after }]);
}

#[test]
fn an_end_may_be_written_again_and_then_removed() {
    let mut history = correct(7);
    let end = history.versions[end_of(&history, "task-5")].clone();
    history.versions.push(end.clone());
    history.versions.push(Version { state: State::Deleted, ..end });
    check(&history).unwrap();
}

#[test]
fn a_task_that_may_start_once_is_not_started_again() {
    for seed in 1..=SEEDS {
        let mut history = correct(seed);
        let task = history.signs[rerun(&history)].task.clone();
        for submitted in history.submitted.iter_mut().filter(|each| each.task == task) {
            submitted.restarts = false;
        }
        let found = verdict(&history);
        assert!(matches!(&found[..], [Violation::StartedAgain { .. }]), "seed {seed}: {found:?}");
    }
}

#[test]
fn an_attempt_that_nobody_claimed_is_found() {
    let mut history = correct(9);
    let at = rerun(&history);
    let task = history.signs[at].task.clone();
    history
        .versions
        .retain(|version| version.task != task || version.state != State::Running { attempt: 2 });
    let found = verdict(&history);
    assert_eq!(found, [Violation::Unclaimed(history.signs[at].clone())]);
}

#[test]
fn a_fence_of_an_earlier_claim_is_found() {
    let mut history = correct(9);
    let at = rerun(&history);
    let claimed_at = history.signs[at].fence;
    history.signs[at].fence -= 2;
    let sign = history.signs[at].clone();
    assert_eq!(verdict(&history), [Violation::WrongFence { sign, claimed_at }]);
}

#[test]
fn an_end_that_no_command_came_to_is_found() {
    let mut history = correct(9);
    let at = history.signs.iter().position(|sign| sign.moment == Moment::Ended).unwrap();
    let Sign { task, attempt, .. } = history.signs[at].clone();
    history.signs[at].moment = Moment::Alive;
    assert_eq!(verdict(&history), [Violation::Invented { task, attempt }]);
}

#[test]
fn signs_are_read_from_lines() {
    let sign = Sign::parse("ended 0af 2 317 88.07").unwrap();
    assert_eq!((sign.attempt, sign.fence, sign.at_ms), (2, 317, 88_070));
    assert_eq!((sign.task.as_str(), sign.moment), ("0af", Moment::Ended));
    for line in ["", "ended 0af 2 317", "ended 0af 2 317 88.07 more", "gone 0af 2 317 88.07"] {
        assert_eq!(Sign::parse(line), None, "{line}");
    }
}
