//! Linearizability: is there one order of all calls, each between its start and its end, in which
//! the [model](super::model) gives every answer that was seen?
//!
//! The search is Wing and Gong's with Lowe's memory of visited states. Answers carry the store's
//! revision, which couples all keys, so a history cannot be split by key; in return the revision
//! leaves hardly any choice:
//!
//! - a call that changes nothing is placed as soon as its answer fits, since moving it forward
//!   cannot disturb another call;
//! - a call without an answer that would change nothing need not be placed at all;
//! - a write can be placed only where it makes the events that the store tells of that revision. So
//!   of many calls that a crash left without an answer, those that happened are known, and when.

use std::collections::HashSet;
use std::fmt;

use super::history::{Operation, Truth};
use super::model::{State, Step};

/// How many placements are tried before the search gives up. Correct histories need about one per
/// write; each keeps a copy of the state, so that many more would not fit into memory.
const PLACEMENTS_MAX: usize = 100_000;

/// Why no order was found.
#[derive(Debug)]
pub enum Violation {
    /// There is none; the longest that was found ended here.
    NotLinearizable { placed: usize, revision: i64, stuck: Vec<Operation> },
    /// The search was cut off: not a verdict, and never to be read as one.
    Undecided,
}

/// # Errors
///
/// If no order explains the history and all events of the store, or the search had to be cut off.
pub fn check(history: &[Operation], truth: &Truth) -> Result<(), Violation> {
    Search::new(history, truth).run()
}

struct Search<'a> {
    truth: &'a Truth,
    /// By the time of the call.
    operations: Vec<Operation>,
    is_placed: Vec<bool>,
    state: State,
    /// Answered calls not yet placed.
    left: usize,
    visited: HashSet<(Vec<bool>, State)>,
    stack: Vec<Frame>,
    longest: Longest,
}

/// One decision: what it can try, and how to take back what led here.
struct Frame {
    choices: Vec<usize>,
    placed: Vec<usize>,
    before: State,
}

#[derive(Default)]
struct Longest {
    placed: usize,
    revision: i64,
    stuck: Vec<usize>,
}

// === impl Search ===

impl<'a> Search<'a> {
    fn new(history: &[Operation], truth: &'a Truth) -> Self {
        let mut operations = history.to_vec();
        operations.sort_by_key(|operation| operation.called);
        let is_answered = |operation: &&Operation| operation.outcome.response().is_some();
        Self {
            truth,
            left: operations.iter().filter(is_answered).count(),
            is_placed: vec![false; operations.len()],
            operations,
            state: State::default(),
            visited: HashSet::new(),
            stack: Vec::new(),
            longest: Longest::default(),
        }
    }

    fn run(mut self) -> Result<(), Violation> {
        let before = self.state.clone();
        self.descend(Vec::new(), before);
        for _ in 0..PLACEMENTS_MAX {
            if self.left == 0 && self.state.revision() >= self.truth.last() {
                return Ok(());
            }
            let Some(frame) = self.stack.last_mut() else {
                return Err(self.violation());
            };
            match frame.choices.pop() {
                Some(choice) => self.try_place(choice),
                None => self.go_back(),
            }
        }
        Err(Violation::Undecided)
    }

    fn try_place(&mut self, choice: usize) {
        let Step { after: Some(after), .. } = self.state.apply(&self.operations[choice].request)
        else {
            unreachable!("only calls that change something are choices");
        };
        let before = std::mem::replace(&mut self.state, after);
        self.place(choice);
        self.descend(vec![choice], before);
    }

    /// Places what needs no decision, then opens the next one, unless the same was visited before.
    fn descend(&mut self, mut placed: Vec<usize>, before: State) {
        while let Some(reader) = self.fitting_reader() {
            self.place(reader);
            placed.push(reader);
        }
        let is_new = self.visited.insert((self.is_placed.clone(), self.state.clone()));
        let choices = if is_new { self.choices() } else { Vec::new() };
        self.remember_longest();
        self.stack.push(Frame { choices, placed, before });
    }

    fn go_back(&mut self) {
        if let Some(frame) = self.stack.pop() {
            for index in frame.placed {
                self.is_placed[index] = false;
                self.left += usize::from(self.operations[index].outcome.response().is_some());
            }
            self.state = frame.before;
        }
    }

    fn place(&mut self, index: usize) {
        self.is_placed[index] = true;
        self.left -= usize::from(self.operations[index].outcome.response().is_some());
    }

    /// Calls that may come next: no other unplaced call had ended before they began.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        let mut earliest_end = u64::MAX;
        let unplaced = (0..self.operations.len()).filter(|index| !self.is_placed[*index]);
        unplaced.map_while(move |index| {
            let operation = &self.operations[index];
            let may_be_next = operation.called < earliest_end;
            earliest_end = earliest_end.min(operation.outcome.ended());
            may_be_next.then_some(index)
        })
    }

    fn fitting_reader(&self) -> Option<usize> {
        self.candidates().find(|index| {
            let operation = &self.operations[*index];
            operation.outcome.response().is_some_and(|seen| {
                let step = self.state.apply(&operation.request);
                step.after.is_none() && step.response == *seen
            })
        })
    }

    /// Calls that would change the state as the store tells, and whose answer, if seen, fits.
    fn choices(&self) -> Vec<usize> {
        let told = self.truth.at(self.state.revision() + 1);
        let is_choice = |index: &usize| {
            let operation = &self.operations[*index];
            let step = self.state.apply(&operation.request);
            let seen = operation.outcome.response();
            step.after.is_some()
                && step.events == told
                && seen.is_none_or(|seen| step.response == *seen)
        };
        self.candidates().filter(is_choice).collect()
    }

    fn remember_longest(&mut self) {
        let placed = self.is_placed.iter().filter(|is_placed| **is_placed).count();
        if placed >= self.longest.placed {
            let stuck = self.candidates().collect();
            self.longest = Longest { placed, revision: self.state.revision(), stuck };
        }
    }

    fn violation(&self) -> Violation {
        let stuck = self.longest.stuck.iter().map(|index| self.operations[*index].clone());
        Violation::NotLinearizable {
            placed: self.longest.placed,
            revision: self.longest.revision,
            stuck: stuck.collect(),
        }
    }
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undecided => write!(f, "undecided after {PLACEMENTS_MAX} placements"),
            Self::NotLinearizable { placed, revision, stuck } => {
                writeln!(f, "no order explains the history; {placed} calls fit, up to revision")?;
                writeln!(f, "{revision}; none of these can be the next:")?;
                stuck.iter().try_for_each(|operation| writeln!(f, "  {operation:?}"))
            }
        }
    }
}

impl std::error::Error for Violation {}
