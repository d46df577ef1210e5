//! A store that exists only in histories: concurrent clients, crashes, a watcher, and one bug if
//! asked for. Everything follows from the seed.

use e2e::check::history::{Answer, Event, Interval, Operation, Outcome, Request, Response, Truth};
use e2e::check::ledger::Write;
use e2e::check::model::{State, Step};
use e2e::check::watch::{Delivery, Subscription};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CLIENTS: usize = 5;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const TURNS: usize = 600;

/// How seldom a call is cut off by a crash: one in so many.
const CRASH_ONE_IN: usize = 25;

/// What is wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    LostWrite,
    StaleRead,
    RepeatedRevision,
    DoubleApply,
}

/// What was seen of one run.
pub(crate) struct Run {
    pub(crate) history: Vec<Operation>,
    pub(crate) truth: Truth,
    pub(crate) writes: Vec<Write>,
}

struct Simulation {
    rng: StdRng,
    bug: Option<Bug>,
    /// The bug strikes once, at the first chance after this many revisions.
    strikes_after: i64,
    has_struck: bool,
    clock: u64,
    states: Vec<State>,
    events: Vec<Event>,
    calls: Vec<Option<Call>>,
    history: Vec<Operation>,
    next_value: usize,
}

struct Call {
    called: u64,
    request: Request,
    response: Option<Response>,
}

pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Run {
    let mut simulation = Simulation::new(seed, bug);
    for _ in 0..TURNS {
        simulation.turn();
    }
    assert_eq!(simulation.has_struck, bug.is_some(), "the bug must have had its chance");
    simulation.finish()
}

/// A watcher of everything, told the truth in answers of random size with progress in between.
pub(crate) fn watch(seed: u64, truth: &Truth) -> Subscription {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut deliveries = Vec::new();
    let mut pending: Vec<Event> = Vec::new();
    for revision in truth.revisions() {
        pending.extend(truth.at(revision).iter().cloned());
        match rng.random_range(0..4) {
            0 => {}
            1 => {
                deliveries.push(events(revision, &mut pending));
                deliveries.push(Delivery::Progress { revision });
            }
            2 => {
                deliveries.push(events(revision, &mut pending));
                deliveries.push(Delivery::Resumed { from: revision + 1 });
            }
            _ => deliveries.push(events(revision, &mut pending)),
        }
    }
    deliveries.push(events(truth.last(), &mut pending));
    Subscription {
        interval: Interval { start: "a".to_owned(), end: Some("z".to_owned()) },
        start: 1,
        wants_previous: true,
        deliveries,
        complete_to: truth.last(),
    }
}

fn events(revision: i64, pending: &mut Vec<Event>) -> Delivery {
    Delivery::Events { revision, events: std::mem::take(pending), is_fragment: false }
}

// === impl Simulation ===

impl Simulation {
    fn new(seed: u64, bug: Option<Bug>) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            bug,
            strikes_after: 20,
            has_struck: false,
            clock: 0,
            states: vec![State::default()],
            events: Vec::new(),
            calls: (0..CLIENTS).map(|_| None).collect(),
            history: Vec::new(),
            next_value: 0,
        }
    }

    /// Some client calls, some call takes effect, or some answer arrives.
    fn turn(&mut self) {
        self.clock += 1;
        let client = self.rng.random_range(0..CLIENTS);
        match self.calls[client].take() {
            None => {
                let request = self.request();
                self.calls[client] = Some(Call { called: self.clock, request, response: None });
            }
            // A bug that nobody hears of is none: once it struck, every call is answered.
            Some(call) if !self.has_struck && self.rng.random_range(0..CRASH_ONE_IN) == 0 => {
                self.crash(client, call);
            }
            Some(mut call) if call.response.is_none() => {
                call.response = Some(self.execute(call.called, &call.request));
                self.calls[client] = Some(call);
            }
            Some(call) => {
                let response = call.response.expect("the arm above gives the answer");
                let outcome = Outcome::Answered { at: self.clock, response };
                self.record(client, call.called, call.request, outcome);
            }
        }
    }

    /// The client never hears; half of what was on its way takes effect all the same.
    fn crash(&mut self, client: usize, call: Call) {
        if call.response.is_none() && self.rng.random_bool(0.5) {
            self.apply(&call.request);
        }
        self.record(client, call.called, call.request, Outcome::Unknown);
    }

    fn record(&mut self, client: usize, called: u64, request: Request, outcome: Outcome) {
        self.history.push(Operation { client, called, request, outcome });
    }

    fn request(&mut self) -> Request {
        let key = KEYS[self.rng.random_range(0..KEYS.len())].to_owned();
        self.next_value += 1;
        let value = format!("v{}", self.next_value);
        match self.rng.random_range(0..10) {
            0..4 => Request::Put { key, value },
            4..6 => Request::Range(Interval { start: key, end: Some("z".to_owned()) }),
            6 => Request::Range(Interval::key(&key)),
            7 => Request::Delete(Interval { start: key, end: Some("d".to_owned()) }),
            _ => Request::Swap { expected: self.likely_revision(&key), key, value },
        }
    }

    /// What a client that read a moment ago would compare with.
    fn likely_revision(&mut self, key: &str) -> i64 {
        let recent = self.states.len().saturating_sub(self.rng.random_range(1..3));
        let read = self.states[recent].apply(&Request::Range(Interval::key(key)));
        match read.response.answer {
            Answer::Range(pairs) => pairs.first().map_or(0, |pair| pair.mod_revision),
            _ => unreachable!("a range is answered with a range"),
        }
    }

    fn state(&self) -> &State {
        self.states.last().expect("there is always a state")
    }

    fn apply(&mut self, request: &Request) -> Response {
        let Step { response, after, events } = self.state().apply(request);
        self.states.extend(after);
        self.events.extend(events);
        response
    }

    fn execute(&mut self, called: u64, request: &Request) -> Response {
        let is_put = matches!(request, Request::Put { .. });
        let is_range = matches!(request, Request::Range(_));
        let may_strike = !self.has_struck && self.state().revision() > self.strikes_after;
        match self.bug.filter(|_| may_strike) {
            Some(Bug::LostWrite) if is_put => self.strike().state().apply(request).response,
            Some(Bug::RepeatedRevision) if is_put => {
                let mut response = self.strike().apply(request);
                response.revision -= 1;
                response
            }
            Some(Bug::DoubleApply) if is_put => {
                let response = self.strike().apply(request);
                self.apply(request);
                response
            }
            Some(Bug::StaleRead) if is_range && self.known_revision(called) > 2 => {
                let stale = self.known_revision(called) - 1;
                let state = self.strike().states.iter().find(|state| state.revision() == stale);
                state.expect("every revision has its state").apply(request).response
            }
            _ => self.apply(request),
        }
    }

    /// The newest revision that some client had heard of by then; a read below it is stale.
    fn known_revision(&self, by: u64) -> i64 {
        let heard = self.history.iter().filter(|operation| operation.outcome.ended() < by);
        heard
            .filter_map(|each| each.outcome.response())
            .map(|each| each.revision)
            .max()
            .unwrap_or(1)
    }

    fn strike(&mut self) -> &mut Self {
        self.has_struck = true;
        self
    }

    fn finish(mut self) -> Run {
        for (client, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if let Some(call) = call {
                let answered = |response| Outcome::Answered { at: self.clock + 1, response };
                let outcome = call.response.map_or(Outcome::Unknown, answered);
                self.record(client, call.called, call.request, outcome);
            }
        }
        let writes = self.history.iter().filter_map(write).collect();
        Run { writes, truth: Truth::new(self.events), history: self.history }
    }
}

fn write(operation: &Operation) -> Option<Write> {
    let (Request::Put { key, value } | Request::Swap { key, value, .. }) = &operation.request
    else {
        return None;
    };
    let acknowledged_at = match operation.outcome.response() {
        Some(Response { answer: Answer::NotSwapped(_), .. }) => return None,
        Some(response) => Some(response.revision),
        None => None,
    };
    Some(Write { key: key.clone(), value: value.clone(), acknowledged_at })
}
