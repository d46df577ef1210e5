//! What was seen: calls with their answers, and the store's events. Only data.

use std::collections::BTreeMap;

/// One version of one key, as an answer shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    pub key: String,
    pub value: String,
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
}

/// The keys from `start` on, up to but without `end`; without `end`, the one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    pub start: String,
    pub end: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Put {
        key: String,
        value: String,
    },
    Range(Interval),
    Delete(Interval),
    /// Put if the key was last changed at `expected` (0: does not exist), else read it.
    Swap {
        key: String,
        expected: i64,
        value: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Response {
    /// From the header.
    pub revision: i64,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Put,
    Range(Vec<Pair>),
    Delete { deleted: usize },
    Swapped,
    NotSwapped(Option<Pair>),
}

/// One call. Times are ticks of one counter, drawn before the request and after the answer.
#[derive(Clone, Debug)]
pub struct Operation {
    pub client: usize,
    pub called: u64,
    pub request: Request,
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Answered {
        at: u64,
        response: Response,
    },
    /// The connection broke: it may have happened, then or later, or never.
    Unknown,
}

/// One key's change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    pub revision: i64,
    pub key: String,
    /// `None`: deleted.
    pub put: Option<Pair>,
    /// The pair just before, where it was asked for.
    pub previous: Option<Pair>,
}

/// All events of a store, in order: what every watcher is measured against.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    by_revision: BTreeMap<i64, Vec<Event>>,
}

// === impl Interval ===

impl Interval {
    #[must_use]
    pub fn key(key: &str) -> Self {
        Self { start: key.to_owned(), end: None }
    }

    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        match &self.end {
            Some(end) => self.start.as_str() <= key && key < end.as_str(),
            None => self.start == key,
        }
    }
}

// === impl Outcome ===

impl Outcome {
    #[must_use]
    pub fn response(&self) -> Option<&Response> {
        match self {
            Self::Answered { response, .. } => Some(response),
            Self::Unknown => None,
        }
    }

    /// When the call had ended for certain; an unknown one may take effect at any later time.
    #[must_use]
    pub fn ended(&self) -> u64 {
        match self {
            Self::Answered { at, .. } => *at,
            Self::Unknown => u64::MAX,
        }
    }
}

// === impl Truth ===

impl Truth {
    #[must_use]
    pub fn new(events: impl IntoIterator<Item = Event>) -> Self {
        let mut by_revision: BTreeMap<i64, Vec<Event>> = BTreeMap::new();
        for event in events {
            by_revision.entry(event.revision).or_default().push(event);
        }
        Self { by_revision }
    }

    #[must_use]
    pub fn at(&self, revision: i64) -> &[Event] {
        self.by_revision.get(&revision).map_or(&[], Vec::as_slice)
    }

    pub fn revisions(&self) -> impl Iterator<Item = i64> {
        self.by_revision.keys().copied()
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.by_revision.values().flatten()
    }

    /// The newest revision with an event; 1 is an empty store's.
    #[must_use]
    pub fn last(&self) -> i64 {
        self.by_revision.keys().next_back().copied().unwrap_or(1)
    }

    /// Events from one revision to another, both included.
    pub fn between(&self, first: i64, last: i64) -> impl Iterator<Item = &Event> {
        let end = last.max(first - 1) + 1;
        self.by_revision.range(first..end).flat_map(|(_, events)| events)
    }
}
