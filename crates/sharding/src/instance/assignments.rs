//! Numbers that tell one assignment of an object to us from the next. A predicate's cache remembers an
//! object for an hour and does not learn that it left; with the number, an object that comes back looks
//! different.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::object::ObjectName;
use crate::core::time::Moment;

/// Longer than a predicate's cache remembers an object after its last event, which may come some
/// minutes after it left.
const REMEMBERED_FOR: Duration = Duration::from_secs(2 * 60 * 60);

#[derive(Debug, Default)]
pub(super) struct Assignments {
    /// How many objects have left so far: no number is given twice.
    departures: u64,
    left: BTreeMap<ObjectName, Departure>,
}

#[derive(Debug)]
struct Departure {
    number: u64,
    at: Moment,
}

// === impl Assignments ===

impl Assignments {
    /// The object leaves, or is about to.
    pub(super) fn on_left(&mut self, name: &ObjectName, now: Moment) {
        self.departures += 1;
        self.left.insert(name.clone(), Departure { number: self.departures, at: now });
    }

    /// Forgets what no cache remembers.
    pub(super) fn prune(&mut self, now: Moment) {
        self.left.retain(|_, departure| now.since(departure.at) < REMEMBERED_FOR);
    }

    /// Differs before and after a departure.
    pub(super) fn number(&self, name: &ObjectName) -> u64 {
        self.left.get(name).map_or(0, |departure| departure.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::object::GroupKind;

    #[test]
    fn every_departure_gives_a_new_number_and_old_ones_are_forgotten() {
        let at = |seconds| Moment(Duration::from_secs(seconds));
        let name = ObjectName {
            kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("shop".to_owned()),
            name: "a".to_owned(),
        };
        let mut assignments = Assignments::default();
        assert_eq!(assignments.number(&name), 0);
        assignments.on_left(&name, at(10));
        assignments.on_left(&name, at(20));
        assert_eq!(assignments.number(&name), 2);
        assignments.prune(at(20 + REMEMBERED_FOR.as_secs() - 1));
        assert_eq!(assignments.number(&name), 2);
        assignments.prune(at(20 + REMEMBERED_FOR.as_secs()));
        assert_eq!(assignments.number(&name), 0);
        assignments.on_left(&name, at(9000));
        assert_eq!(assignments.number(&name), 3, "numbers do not begin anew");
    }
}
