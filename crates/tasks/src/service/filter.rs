//! Which tasks a list or a watch shows. Checks what was asked for; knows nothing of where tasks come
//! from.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::error::{Error, Field};
use crate::core::id::{NodeId, TaskId};
use crate::core::record::{Record, Task};
use crate::wire;

/// Shorter prefixes would soon mean several tasks.
const PREFIX_CHARACTERS_MIN: usize = 8;
/// All ids have this shape.
const SMALLEST_ID: &str = "00000000-0000-0000-0000-000000000000";

/// A filter within its bounds. What is empty lets everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    states: BTreeSet<&'static str>,
    labels: BTreeMap<String, String>,
    /// A registration or, of all that follow each other there, their host.
    node: Option<NodeId>,
    prefix: String,
}

// === impl Filter ===

impl Filter {
    pub(super) fn new(message: Option<wire::Filter>) -> Result<Self, Error> {
        let message = message.unwrap_or_default();
        let states = message.states.iter().map(|state| state_name(*state));
        let prefix = message.id_prefix;
        if !prefix.is_empty() {
            smallest_with(&prefix)?;
        }
        let node = Some(message.node_id).filter(|id| !id.is_empty());
        let node = node.map(|id| id.parse()).transpose();
        Ok(Self {
            states: states.collect::<Result<_, _>>()?,
            labels: message.labels,
            node: node.map_err(|source| Error::id("filter.node_id", source))?,
            prefix,
        })
    }

    pub(super) fn passes(&self, record: &Record) -> bool {
        let task = &record.task;
        (self.states.is_empty() || self.states.contains(task.status.as_str()))
            && self.node.is_none_or(|node| ran_on(task, node))
            && self.has_prefix(task.id)
            && self.passes_labels(record)
    }

    /// After which task those with the prefix begin.
    pub(super) fn begins_after(&self) -> Result<Option<TaskId>, Error> {
        if self.prefix.is_empty() {
            return Ok(None);
        }
        let smallest = smallest_with(&self.prefix)?.0.as_u128();
        Ok(smallest.checked_sub(1).map(|before| TaskId(Uuid::from_u128(before))))
    }

    /// Whether tasks from this one on, in the order of ids, may have the prefix.
    pub(super) fn goes_beyond(&self, id: TaskId) -> bool {
        self.has_prefix(id) || id.to_string() < self.prefix
    }

    pub(super) fn has_prefix(&self, id: TaskId) -> bool {
        self.prefix.is_empty() || id.to_string().starts_with(&self.prefix)
    }

    /// A spec that cannot be read has no labels.
    fn passes_labels(&self, record: &Record) -> bool {
        if self.labels.is_empty() {
            return true;
        }
        let spec = record.task.decode_spec();
        spec.is_ok_and(|spec| {
            self.labels.iter().all(|(key, value)| spec.labels.get(key) == Some(value))
        })
    }
}

/// Whether the task runs there, or ran there last.
fn ran_on(task: &Task, NodeId(id): NodeId) -> bool {
    task.last_attempt().is_some_and(|last| last.node.0 == id || last.host.0 == id)
}

fn state_name(state: i32) -> Result<&'static str, Error> {
    match wire::State::try_from(state) {
        Ok(wire::State::Queued) => Ok("queued"),
        Ok(wire::State::Running) => Ok("running"),
        Ok(wire::State::Complete) => Ok("complete"),
        Ok(wire::State::Canceled) => Ok("canceled"),
        Ok(wire::State::Failed) => Ok("failed"),
        Ok(wire::State::Unspecified) | Err(_) => {
            Err(Error::field("filter.states", Field::Unknown(state)))
        }
    }
}

/// The first id that begins so.
fn smallest_with(prefix: &str) -> Result<TaskId, Error> {
    let refused = || Error::field("filter.id_prefix", Field::NotAPrefix(prefix.to_owned()));
    if prefix.len() < PREFIX_CHARACTERS_MIN {
        return Err(refused());
    }
    let rest = SMALLEST_ID.get(prefix.len()..).ok_or_else(refused)?;
    format!("{prefix}{rest}").parse().or(Err(refused()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_prefix(prefix: &str) -> Result<Filter, Error> {
        let id_prefix = prefix.to_owned();
        Filter::new(Some(wire::Filter { id_prefix, ..Default::default() }))
    }

    #[test]
    fn a_prefix_is_an_interval_of_ids() {
        let id: TaskId = "0190a7e6-8c00-7d3e-8000-00000000002a".parse().unwrap();
        for prefix in ["0190a7e6", "0190a7e6-8", "0190a7e6-8c00-7d3e-8000-00000000002a"] {
            let filter = of_prefix(prefix).unwrap();
            assert!(filter.has_prefix(id), "{prefix}");
            assert!(filter.begins_after().unwrap().unwrap() < id, "{prefix}");
        }
        let filter = of_prefix("0190a7e7").unwrap();
        assert!(!filter.has_prefix(id) && filter.goes_beyond(id));
        assert!(!of_prefix("0190a7e5").unwrap().goes_beyond(id));
        assert_eq!(of_prefix("00000000").unwrap().begins_after().unwrap(), None);
    }

    #[test]
    fn what_is_no_filter_is_named() {
        for prefix in [
            "0190a7e",
            "0190A7E6",
            "0190a7e6x",
            "0190a7e68",
            "0190a7e6-8c00-7d3e-8000-00000000002a0",
        ] {
            let words = of_prefix(prefix).unwrap_err().to_string();
            assert!(words.starts_with("filter.id_prefix"), "{prefix}: {words}");
        }
        let states = wire::Filter { states: vec![0], ..Default::default() };
        let words = Filter::new(Some(states)).unwrap_err().to_string();
        assert!(words.starts_with("filter.states"), "{words}");
        let node = wire::Filter { node_id: "node1".to_owned(), ..Default::default() };
        let words = Filter::new(Some(node)).unwrap_err().to_string();
        assert!(words.starts_with("filter.node_id"), "{words}");
    }
}
