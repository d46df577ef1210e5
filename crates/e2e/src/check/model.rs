//! The store as etcd promises it, for the few requests that histories are made of: a map and a
//! revision. Naive on purpose, so that it can be read as the specification.

use std::collections::BTreeMap;

use super::history::{Answer, Event, Interval, Pair, Request, Response};

/// A store's whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    revision: i64,
    pairs: BTreeMap<String, Pair>,
}

/// What a request did.
#[derive(Clone, Debug)]
pub struct Step {
    pub response: Response,
    /// `None`: nothing changed.
    pub after: Option<State>,
    pub events: Vec<Event>,
}

// === impl State ===

impl Default for State {
    /// An empty store is at revision 1.
    fn default() -> Self {
        Self { revision: 1, pairs: BTreeMap::new() }
    }
}

impl State {
    #[must_use]
    pub fn revision(&self) -> i64 {
        self.revision
    }

    #[must_use]
    pub fn apply(&self, request: &Request) -> Step {
        match request {
            Request::Put { key, value } => self.put(key, value, Answer::Put),
            Request::Range(interval) => self.read(Answer::Range(self.range(interval))),
            Request::Delete(interval) => self.delete(interval),
            Request::Swap { key, expected, value } => {
                let current = self.pairs.get(key);
                if current.map_or(0, |pair| pair.mod_revision) == *expected {
                    self.put(key, value, Answer::Swapped)
                } else {
                    self.read(Answer::NotSwapped(current.cloned()))
                }
            }
        }
    }

    fn range(&self, interval: &Interval) -> Vec<Pair> {
        let inside = self.pairs.values().filter(|pair| interval.contains(&pair.key));
        inside.cloned().collect()
    }

    fn read(&self, answer: Answer) -> Step {
        let response = Response { revision: self.revision, answer };
        Step { response, after: None, events: Vec::new() }
    }

    fn put(&self, key: &str, value: &str, answer: Answer) -> Step {
        let revision = self.revision + 1;
        let previous = self.pairs.get(key).cloned();
        let pair = Pair {
            key: key.to_owned(),
            value: value.to_owned(),
            create_revision: previous.as_ref().map_or(revision, |pair| pair.create_revision),
            mod_revision: revision,
            version: previous.as_ref().map_or(1, |pair| pair.version + 1),
        };
        let mut after = Self { revision, pairs: self.pairs.clone() };
        after.pairs.insert(key.to_owned(), pair.clone());
        let event = Event { revision, key: key.to_owned(), put: Some(pair), previous };
        let response = Response { revision, answer };
        Step { response, after: Some(after), events: vec![event] }
    }

    fn delete(&self, interval: &Interval) -> Step {
        let doomed = self.range(interval);
        let answer = Answer::Delete { deleted: doomed.len() };
        if doomed.is_empty() {
            return self.read(answer);
        }
        let revision = self.revision + 1;
        let mut after = Self { revision, pairs: self.pairs.clone() };
        after.pairs.retain(|key, _| !interval.contains(key));
        let delete = |previous: Pair| Event {
            revision,
            key: previous.key.clone(),
            put: None,
            previous: Some(previous),
        };
        let events = doomed.into_iter().map(delete).collect();
        Step { response: Response { revision, answer }, after: Some(after), events }
    }
}
