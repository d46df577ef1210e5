//! The writes that replicas asked for, by what they write and whether the API server carried them
//! out: read off the replicas' own counters.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use super::{CHECKPOINTS, RECORDS, TRANSACTIONS};

const REQUESTS: &str = "windlass_labels_api_requests_total{";

/// What a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Posted by watchers, deleted by processors.
    Transaction,
    Record,
    Node,
    /// The Lease of a node that is worked on.
    Lock,
    Checkpoint,
    Event,
    /// Leases by which replicas know of each other.
    Presence,
}

/// How many, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    /// Answered with success.
    pub made: f64,
    /// Answered otherwise, or not at all: another was faster, or the server could not.
    pub refused: f64,
}

/// All writes of some replicas.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Writes(BTreeMap<Kind, Tally>);

// === impl Kind ===

impl Kind {
    /// Nothing for what is asked and not kept, such as access reviews.
    fn of(resource: &str, namespace: &str) -> Option<Self> {
        match (resource, namespace) {
            ("configmaps", TRANSACTIONS) => Some(Self::Transaction),
            ("configmaps", RECORDS) => Some(Self::Record),
            ("configmaps", CHECKPOINTS) => Some(Self::Checkpoint),
            ("nodes", _) => Some(Self::Node),
            ("leases", TRANSACTIONS) => Some(Self::Lock),
            ("leases", _) => Some(Self::Presence),
            ("events", _) => Some(Self::Event),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Transaction => "transactions",
            Self::Record => "records",
            Self::Node => "nodes",
            Self::Lock => "locks",
            Self::Checkpoint => "checkpoints",
            Self::Event => "Events",
            Self::Presence => "presence and election",
        })
    }
}

// === impl Writes ===

impl Writes {
    /// Takes in one line of a page of metrics, if it counts writes.
    pub(super) fn on_sample(&mut self, sample: &str, value: f64) {
        let Some(labels) = sample.strip_prefix(REQUESTS) else { return };
        let label = |name| label(labels, name).unwrap_or_default();
        let is_write = matches!(label("verb"), "create" | "update" | "patch" | "delete");
        let Some(kind) = Kind::of(label("resource"), label("namespace")).filter(|_| is_write)
        else {
            return;
        };
        let tally = self.0.entry(kind).or_default();
        if label("code").starts_with('2') {
            tally.made += value;
        } else {
            tally.refused += value;
        }
    }

    pub(super) fn add(&mut self, others: &Self) {
        for (kind, other) in &others.0 {
            let tally = self.0.entry(*kind).or_default();
            tally.made += other.made;
            tally.refused += other.refused;
        }
    }

    /// What came after `before`, for each of so many nodes.
    pub(super) fn since(&self, before: &Self, nodes: f64) -> Self {
        let tallies = self.0.iter().map(|(kind, after)| {
            let before = before.0.get(kind).copied().unwrap_or_default();
            let made = (after.made - before.made) / nodes;
            (*kind, Tally { made, refused: (after.refused - before.refused) / nodes })
        });
        Self(tallies.collect())
    }

    pub(super) fn of_kinds(&self) -> impl Iterator<Item = (Kind, Tally)> {
        self.0.iter().map(|(kind, tally)| (*kind, *tally))
    }

    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.0.values().fold(Tally::default(), |total, tally| Tally {
            made: total.made + tally.made,
            refused: total.refused + tally.refused,
        })
    }
}

/// The value of a label among `labels`, which are as a page of metrics has them.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let labels = labels.trim_end_matches('}').split(',');
    let mut pairs = labels.filter_map(|label| label.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(page: &[(&str, f64)]) -> Writes {
        let mut writes = Writes::default();
        for (labels, value) in page {
            writes.on_sample(&format!("windlass_labels_api_requests_total{{{labels}}}"), *value);
        }
        writes
    }

    const LOCK: &str =
        r#"verb="create",resource="leases",namespace="node-metadata-transactions",code="#;

    #[test]
    fn reads_and_questions_are_no_writes() {
        let page = [
            (r#"verb="get",resource="nodes",namespace="",code="200""#, 5.0),
            (r#"verb="create",resource="selfsubjectaccessreviews",namespace="",code="201""#, 7.0),
        ];
        assert_eq!(writes(&page), Writes::default());
    }

    #[test]
    fn what_was_refused_is_told_from_what_was_made() {
        let page = [
            (&*format!(r#"{LOCK}"201""#), 10.0),
            (&*format!(r#"{LOCK}"409""#), 4.0),
            (&*format!(r#"{LOCK}"none""#), 1.0),
            (r#"verb="patch",resource="nodes",namespace="",code="200""#, 3.0),
        ];
        let (before, after) = (writes(&page[3..]), writes(&page));
        let of_kinds: Vec<_> = after.since(&before, 10.0).of_kinds().collect();
        let [locks, nodes] =
            [(1.0, 0.5), (0.0, 0.0)].map(|(made, refused)| Tally { made, refused });
        assert_eq!(of_kinds, [(Kind::Node, nodes), (Kind::Lock, locks)]);
        assert_eq!(after.total(), Tally { made: 13.0, refused: 5.0 });
    }
}
