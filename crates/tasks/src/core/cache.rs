//! What a node knows of all tasks and nodes: summaries, enough to choose and to list. Follows the
//! store by a list at one revision and the changes after it; reads nothing itself.

mod apply;
mod queue;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use etcd_api::mvccpb::KeyValue;

use super::id::{NodeId, Revision, TaskId};
use super::keys::StatusKey;
use super::node::{Node, NodeError};
use super::record::{Record, RecordError};
use super::time::Epoch;

pub use queue::Place;
pub use summary::{Phase, Summary};

/// Records of queued tasks are kept whole up to this many bytes, to save a read before each claim.
pub const KEPT_RECORD_BYTES_MAX: usize = 64 << 20;

/// The tasks and nodes of a cluster, as far as is known.
#[derive(Debug)]
pub struct Cache {
    tasks: BTreeMap<TaskId, Summary>,
    nodes: BTreeMap<NodeId, (Node, Revision)>,
    queue: BTreeSet<Place>,
    running: BTreeMap<NodeId, BTreeSet<TaskId>>,
    ended: BTreeSet<(Epoch, TaskId)>,
    /// What cannot be read is not scheduled; fsck tells of it.
    unreadable: BTreeMap<TaskId, RecordError>,
    kept: Kept,
    tasks_at: Known,
    nodes_at: Known,
}

/// How far one of the two ranges is known.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Of the last list: everything up to here is in.
    listed: Revision,
    /// Of the last change. Others of the same revision may follow: one transaction can change many
    /// keys.
    changed: Revision,
}

/// Queued tasks as the store has them, within a bound.
#[derive(Debug)]
struct Kept {
    records: BTreeMap<TaskId, KeyValue>,
    bytes: usize,
    bytes_max: usize,
}

/// What a change of the cache means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task is new or different.
    Task(TaskId),
    TaskDeleted(TaskId),
    /// A node is new, or tells something else of itself.
    Node(NodeId),
    NodeGone(NodeId),
    /// Nothing is known of a key any more, since it cannot be read.
    UnreadableTask(TaskId, RecordError),
    UnreadableNode(NodeError),
}

// === impl Cache ===

impl Cache {
    #[must_use]
    pub fn new(kept_bytes_max: usize) -> Self {
        Self {
            tasks: BTreeMap::new(),
            nodes: BTreeMap::new(),
            queue: BTreeSet::new(),
            running: BTreeMap::new(),
            ended: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            kept: Kept { records: BTreeMap::new(), bytes: 0, bytes_max: kept_bytes_max },
            tasks_at: Known::default(),
            nodes_at: Known::default(),
        }
    }

    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&Summary> {
        self.tasks.get(&id)
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Summary> {
        self.tasks.values()
    }

    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id).map(|(node, _)| node)
    }

    pub fn nodes(&self) -> impl Iterator<Item = &Node> + Clone {
        self.nodes.values().map(|(node, _)| node)
    }

    /// Queued tasks: higher priority first, then older first.
    pub fn queue(&self) -> impl Iterator<Item = &Summary> {
        self.queue.iter().map(|place| &self.tasks[&place.task])
    }

    #[must_use]
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    #[must_use]
    pub fn running_len(&self) -> usize {
        self.running.values().map(BTreeSet::len).sum()
    }

    /// Tasks said to run on nodes of which nothing is known.
    pub fn lost(&self) -> impl Iterator<Item = &Summary> {
        let gone = self.running.iter().filter(|(node, _)| !self.nodes.contains_key(node));
        gone.flat_map(|(_, tasks)| tasks).map(|id| &self.tasks[id])
    }

    /// In order of their end.
    #[must_use]
    pub fn ended(&self) -> impl ExactSizeIterator<Item = (Epoch, TaskId)> {
        self.ended.iter().copied()
    }

    /// The status key and revision of an ended task: what deleting it takes.
    #[must_use]
    pub fn ended_key(&self, id: TaskId) -> Option<(StatusKey, Revision)> {
        let summary = self.tasks.get(&id)?;
        match summary.phase {
            Phase::Ended(end, epoch) => Some((StatusKey::Ended(end, epoch, id), summary.modified)),
            Phase::Queued { .. } | Phase::Running { .. } => None,
        }
    }

    /// A queued task as a whole, if it is kept here.
    #[must_use]
    pub fn record(&self, id: TaskId) -> Option<Record> {
        let kept = self.kept.records.get(&id)?;
        Record::decode(kept).ok()
    }

    pub fn unreadable(&self) -> impl Iterator<Item = &RecordError> {
        self.unreadable.values()
    }

    /// All changes of tasks before this one are known.
    #[must_use]
    pub fn tasks_at(&self) -> Revision {
        self.tasks_at.changed
    }

    #[must_use]
    pub fn nodes_at(&self) -> Revision {
        self.nodes_at.changed
    }
}

// === impl Known ===

impl Known {
    fn on_listed(&mut self, at: Revision) {
        *self = Self { listed: at, changed: at };
    }

    /// Whether a change is news. Then it is known.
    fn on_change(&mut self, at: Revision) -> bool {
        let is_news = at > self.listed && at >= self.changed;
        if is_news {
            self.changed = at;
        }
        is_news
    }
}
