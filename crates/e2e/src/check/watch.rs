//! Watch histories: every event once, in order, whole, and no promise of progress broken.

use std::fmt;

use super::history::{Event, Interval, Truth};

/// One watch, as its client saw it, across reconnections.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub interval: Interval,
    /// The first revision it asked for.
    pub start: i64,
    pub wants_previous: bool,
    pub deliveries: Vec<Delivery>,
    /// Everything up to this revision must have arrived by the end.
    pub complete_to: i64,
}

#[derive(Clone, Debug)]
pub enum Delivery {
    Events {
        /// The header's revision.
        revision: i64,
        events: Vec<Event>,
        /// The rest of the answer follows in the next one.
        is_fragment: bool,
    },
    /// Nothing at or below this revision is still to come.
    Progress { revision: i64 },
    /// A new stream, begun at this revision.
    Resumed { from: i64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An event at or below what had been seen or promised.
    Repeated(Box<Event>),
    OutOfOrder(Box<Event>),
    /// An event that the store never had, or had differently.
    Invented(Box<Event>),
    Missing(Box<Event>),
    /// A revision was delivered in part without being a fragment.
    Split {
        revision: i64,
    },
    /// Progress was promised while this was still to come.
    EarlyProgress {
        promised: i64,
        event: Box<Event>,
    },
    /// An event newer than the header of its own answer.
    HeaderBehind {
        header: i64,
        event: Box<Event>,
    },
    /// The client resumed elsewhere than where it had stopped.
    ResumedElsewhere {
        from: i64,
        expected: i64,
    },
}

/// # Errors
///
/// The first thing that is wrong.
pub fn check(truth: &Truth, subscription: &Subscription) -> Result<(), Violation> {
    let mut cursor =
        Cursor { truth, subscription, next: subscription.start, fragments: Vec::new() };
    for delivery in &subscription.deliveries {
        cursor.on_delivery(delivery)?;
    }
    cursor.ensure_nothing_missing(subscription.complete_to)
}

struct Cursor<'a> {
    truth: &'a Truth,
    subscription: &'a Subscription,
    /// The first revision that may still arrive.
    next: i64,
    /// Events of an answer whose last fragment is still to come.
    fragments: Vec<Event>,
}

// === impl Cursor ===

impl Cursor<'_> {
    fn on_delivery(&mut self, delivery: &Delivery) -> Result<(), Violation> {
        match delivery {
            Delivery::Events { revision, events, is_fragment } => {
                self.ensure_header_not_behind(*revision, events)?;
                self.fragments.extend(events.iter().cloned());
                if *is_fragment { Ok(()) } else { self.on_answer() }
            }
            Delivery::Progress { revision } => self.on_progress(*revision),
            Delivery::Resumed { from } if *from == self.next => {
                self.fragments.clear();
                Ok(())
            }
            Delivery::Resumed { from } => {
                Err(Violation::ResumedElsewhere { from: *from, expected: self.next })
            }
        }
    }

    /// One whole answer: its revisions one after the other.
    fn on_answer(&mut self) -> Result<(), Violation> {
        let events = std::mem::take(&mut self.fragments);
        for group in events.chunk_by(|a, b| a.revision == b.revision) {
            self.on_revision(group)?;
        }
        Ok(())
    }

    fn on_revision(&mut self, seen: &[Event]) -> Result<(), Violation> {
        let revision = seen[0].revision;
        if revision < self.next {
            return Err(Violation::Repeated(boxed(&seen[0])));
        }
        self.ensure_nothing_missing(revision - 1)?;
        let expected: Vec<&Event> = self.matching(revision, revision).collect();
        if let Some(strange) = seen.iter().find(|event| !self.is_among(event, &expected)) {
            return Err(Violation::Invented(boxed(strange)));
        }
        let order = seen.iter().map(|event| position(event, &expected));
        if let Some(at) = order.clone().zip(order.skip(1)).position(|(a, b)| a >= b) {
            return Err(Violation::OutOfOrder(boxed(&seen[at + 1])));
        }
        if seen.len() < expected.len() {
            return Err(Violation::Split { revision });
        }
        self.next = revision + 1;
        Ok(())
    }

    fn on_progress(&mut self, revision: i64) -> Result<(), Violation> {
        if let Some(event) = self.matching(self.next, revision).next() {
            return Err(Violation::EarlyProgress { promised: revision, event: boxed(event) });
        }
        self.next = self.next.max(revision + 1);
        Ok(())
    }

    fn ensure_nothing_missing(&self, last: i64) -> Result<(), Violation> {
        match self.matching(self.next, last).next() {
            Some(event) => Err(Violation::Missing(boxed(event))),
            None => Ok(()),
        }
    }

    fn ensure_header_not_behind(&self, header: i64, events: &[Event]) -> Result<(), Violation> {
        match events.iter().find(|event| event.revision > header) {
            Some(event) => Err(Violation::HeaderBehind { header, event: boxed(event) }),
            None => Ok(()),
        }
    }

    fn matching(&self, first: i64, last: i64) -> impl Iterator<Item = &Event> {
        let interval = &self.subscription.interval;
        self.truth.between(first, last).filter(|event| interval.contains(&event.key))
    }

    fn is_among(&self, seen: &Event, expected: &[&Event]) -> bool {
        expected.iter().any(|event| {
            let is_same = event.key == seen.key && event.put == seen.put;
            is_same && (!self.subscription.wants_previous || event.previous == seen.previous)
        })
    }
}

fn boxed(event: &Event) -> Box<Event> {
    Box::new(event.clone())
}

fn position(event: &Event, expected: &[&Event]) -> Option<usize> {
    expected.iter().position(|each| each.key == event.key)
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watch history: {self:?}")
    }
}

impl std::error::Error for Violation {}
