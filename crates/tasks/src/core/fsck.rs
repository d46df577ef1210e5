//! What must hold of the store, over one snapshot of it, and how status keys are mended. Reads
//! nothing itself; trusts records, never status keys.

mod finding;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use etcd_api::mvccpb::KeyValue;

use super::id::{NodeId, TaskId};
use super::keys::{Key, StatusKey};
use super::record::{Record, RecordError};

pub use finding::Finding;

/// Beyond the lease's own time, how long others have to take a lost node's tasks.
pub const REQUEUE_PATIENCE: Duration = Duration::from_secs(30);

/// Everything below `/task/` and `/node/`, at one revision.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub tasks: BTreeMap<TaskId, Result<Record, RecordError>>,
    pub statuses: BTreeSet<StatusKey>,
    pub nodes: BTreeSet<NodeId>,
    /// Keys that are none of ours, or not where they belong.
    pub strays: Vec<Finding>,
}

/// How long nodes are known to be gone, and how long that is no finding.
#[derive(Clone, Debug, Default)]
pub struct Absences {
    pub gone_for: BTreeMap<NodeId, Duration>,
    pub ttl: Duration,
}

// === impl Snapshot ===

impl Snapshot {
    #[must_use]
    pub fn new<'a>(kvs: impl IntoIterator<Item = &'a KeyValue>) -> Self {
        let mut snapshot = Self::default();
        for kv in kvs {
            match Key::parse(kv.key()) {
                Ok(Key::Task(id)) => drop(snapshot.tasks.insert(id, Record::decode(kv))),
                Ok(Key::Status(key)) => drop(snapshot.statuses.insert(key)),
                Ok(Key::Node(id)) => drop(snapshot.nodes.insert(id)),
                Err(error) => snapshot.strays.push(Finding::Stray(error)),
            }
        }
        snapshot
    }

    /// All that does not hold.
    #[must_use]
    pub fn check(&self, absences: &Absences) -> Vec<Finding> {
        let mut findings = self.strays.clone();
        let mut claimed = BTreeSet::new();
        for (id, task) in &self.tasks {
            match task {
                Ok(record) => {
                    let key = record.task.status.key(*id);
                    claimed.insert(key);
                    if !self.statuses.contains(&key) {
                        let modified = record.modified;
                        findings.push(Finding::NoStatusKey { key, modified });
                    }
                }
                // What its status is, a newer version knows.
                Err(RecordError::Newer { .. }) => {}
                Err(error) => {
                    let source = error.clone();
                    findings.push(Finding::Unreadable { id: *id, source });
                }
            }
        }
        findings.extend(self.statuses.difference(&claimed).filter_map(|key| self.unclaimed(*key)));
        findings.extend(self.lost(absences));
        findings
    }

    /// A status key that no record asks for.
    fn unclaimed(&self, key: StatusKey) -> Option<Finding> {
        match self.tasks.get(&key.task()) {
            None => Some(Finding::NoTask { key }),
            Some(Ok(record)) => Some(Finding::WrongStatusKey { key, modified: record.modified }),
            // Which key is right cannot be said of a record that cannot be read.
            Some(Err(_)) => None,
        }
    }

    fn lost(&self, absences: &Absences) -> impl Iterator<Item = Finding> {
        let patience = absences.ttl + REQUEUE_PATIENCE;
        self.statuses.iter().filter_map(move |key| match *key {
            StatusKey::Running(node, id) if !self.nodes.contains(&node) => {
                let gone_for = *absences.gone_for.get(&node)?;
                (gone_for > patience).then_some(Finding::Lost { id, node, gone_for })
            }
            _ => None,
        })
    }
}
