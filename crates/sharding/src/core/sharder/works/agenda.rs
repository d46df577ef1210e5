//! When each object is to be looked at next.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::object::ObjectName;
use crate::core::time::Moment;

#[derive(Clone, Debug, Default)]
pub(super) struct Agenda {
    order: BTreeSet<(Moment, ObjectName)>,
    times: BTreeMap<ObjectName, Moment>,
}

// === impl Agenda ===

impl Agenda {
    pub(super) fn set(&mut self, name: &ObjectName, at: Moment) {
        if let Some(before) = self.times.insert(name.clone(), at) {
            self.order.remove(&(before, name.clone()));
        }
        self.order.insert((at, name.clone()));
    }

    pub(super) fn remove(&mut self, name: &ObjectName) {
        if let Some(before) = self.times.remove(name) {
            self.order.remove(&(before, name.clone()));
        }
    }

    /// The next that is due.
    pub(super) fn pop(&mut self, now: Moment) -> Option<ObjectName> {
        let (at, _) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, name) = self.order.pop_first()?;
        self.times.remove(&name);
        Some(name)
    }

    pub(super) fn next(&self) -> Option<Moment> {
        self.order.first().map(|(at, _)| *at)
    }
}
