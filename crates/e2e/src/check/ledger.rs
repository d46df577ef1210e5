//! Acknowledged writes against what the store kept. Every write carries a value of its own, so
//! that one can be told from another.

use std::collections::HashMap;
use std::fmt;

use super::history::{Event, Truth};

/// A write that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub key: String,
    /// Unique among all writes.
    pub value: String,
    /// `None`: the answer never came.
    pub acknowledged_at: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Acknowledged, and not there at its revision.
    Lost(Write),
    /// There more than once.
    AppliedTwice { value: String, revisions: Vec<i64> },
    /// There, and nobody wrote it.
    Invented(Box<Event>),
    /// No event has this revision, though later ones exist.
    Gap { revision: i64 },
    /// Two writes were told the same revision.
    RepeatedRevision { revision: i64 },
}

/// What was found when nothing was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    pub acknowledged: usize,
    /// Never answered, and kept nevertheless.
    pub kept_unanswered: usize,
}

/// # Errors
///
/// The first thing that is wrong.
pub fn check(truth: &Truth, writes: &[Write]) -> Result<Tally, Violation> {
    ensure_dense(truth)?;
    ensure_distinct(writes)?;
    let kept = kept_values(truth)?;
    for write in writes.iter().filter(|write| write.acknowledged_at.is_some()) {
        if kept.get(write.value.as_str()).copied() != write.acknowledged_at {
            return Err(Violation::Lost(write.clone()));
        }
    }
    ensure_written(truth, writes)?;
    let is_kept_unanswered =
        |write: &&Write| write.acknowledged_at.is_none() && kept.contains_key(write.value.as_str());
    Ok(Tally {
        acknowledged: writes.iter().filter(|write| write.acknowledged_at.is_some()).count(),
        kept_unanswered: writes.iter().filter(is_kept_unanswered).count(),
    })
}

/// A fresh store is at revision 1, and each change is exactly one more.
fn ensure_dense(truth: &Truth) -> Result<(), Violation> {
    for (expected, revision) in (2..).zip(truth.revisions()) {
        if revision != expected {
            return Err(Violation::Gap { revision: expected });
        }
    }
    Ok(())
}

fn ensure_distinct(writes: &[Write]) -> Result<(), Violation> {
    let mut revisions: Vec<i64> = writes.iter().filter_map(|write| write.acknowledged_at).collect();
    revisions.sort_unstable();
    match revisions.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Violation::RepeatedRevision { revision: pair[0] }),
        None => Ok(()),
    }
}

/// Where each value was put.
fn kept_values(truth: &Truth) -> Result<HashMap<&str, i64>, Violation> {
    let mut kept: HashMap<&str, i64> = HashMap::new();
    for (event, pair) in truth.events().filter_map(|event| Some((event, event.put.as_ref()?))) {
        if let Some(earlier) = kept.insert(&pair.value, event.revision) {
            let revisions = vec![earlier, event.revision];
            return Err(Violation::AppliedTwice { value: pair.value.clone(), revisions });
        }
    }
    Ok(kept)
}

fn ensure_written(truth: &Truth, writes: &[Write]) -> Result<(), Violation> {
    let written: HashMap<&str, &str> =
        writes.iter().map(|write| (write.value.as_str(), write.key.as_str())).collect();
    let is_strange = |event: &&Event| {
        event
            .put
            .as_ref()
            .is_some_and(|pair| written.get(pair.value.as_str()) != Some(&pair.key.as_str()))
    };
    match truth.events().find(is_strange) {
        Some(event) => Err(Violation::Invented(Box::new(event.clone()))),
        None => Ok(()),
    }
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "acknowledged writes: {self:?}")
    }
}

impl std::error::Error for Violation {}
