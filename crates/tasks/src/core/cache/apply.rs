//! How the cache follows the store. Changes come in order of revision, one by one; a list replaces
//! everything, and what it lacks is deleted. Either way the same [`Change`]s come out.

use std::collections::BTreeSet;

use etcd_api::mvccpb::{Event, EventType, KeyValue};

use super::{Cache, Change, Kept, Phase, Summary};
use crate::core::id::{NodeId, Revision, TaskId};
use crate::core::keys::Key;
use crate::core::node::Node;
use crate::core::record::{Record, RecordError};

// === impl Cache ===

impl Cache {
    /// All tasks, listed at one revision: at the start, and again when the store has forgotten the
    /// changes in between.
    pub fn on_tasks_listed(&mut self, kvs: &[KeyValue], at: Revision) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut listed = BTreeSet::new();
        for kv in kvs {
            if let Ok(Key::Task(id)) = Key::parse(kv.key()) {
                listed.insert(id);
                changes.extend(self.put_task(id, kv));
            }
        }
        let known = self.tasks.keys().chain(self.unreadable.keys());
        let gone: Vec<TaskId> = known.filter(|id| !listed.contains(id)).copied().collect();
        changes.extend(gone.into_iter().map(|id| self.delete_task(id)));
        self.tasks_at.on_listed(at);
        changes
    }

    pub fn on_nodes_listed(&mut self, kvs: &[KeyValue], at: Revision) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut listed = BTreeSet::new();
        for kv in kvs {
            if let Ok(Key::Node(id)) = Key::parse(kv.key()) {
                listed.insert(id);
                changes.extend(self.put_node(kv));
            }
        }
        let gone: Vec<NodeId> =
            self.nodes.keys().filter(|id| !listed.contains(id)).copied().collect();
        changes.extend(gone.into_iter().filter_map(|id| self.delete_node(id)));
        self.nodes_at.on_listed(at);
        changes
    }

    /// One change of one key below `/task/` or `/node/`. What is older than the last list is known.
    pub fn on_event(&mut self, event: &Event) -> Vec<Change> {
        let kv = event.kv();
        let at = Revision(kv.mod_revision());
        let is_put = event.kind() == EventType::Put;
        match Key::parse(kv.key()) {
            Ok(Key::Task(id)) if self.tasks_at.on_change(at) => {
                if is_put { self.put_task(id, &kv) } else { Some(self.delete_task(id)) }
                    .into_iter()
                    .collect()
            }
            Ok(Key::Node(id)) if self.nodes_at.on_change(at) => {
                if is_put { self.put_node(&kv) } else { self.delete_node(id) }.into_iter().collect()
            }
            // Status keys repeat what the records say.
            _ => Vec::new(),
        }
    }

    fn put_task(&mut self, id: TaskId, kv: &KeyValue) -> Option<Change> {
        if self.tasks.get(&id).is_some_and(|known| known.modified.0 == kv.mod_revision()) {
            return None;
        }
        let summary = Record::decode(kv).and_then(|record| {
            // A spec that this version cannot read is one that it cannot run.
            Summary::new(&record).or(Err(RecordError::Newer { id, schema: record.task.schema }))
        });
        self.forget_task(id);
        match summary {
            Ok(summary) => {
                if matches!(summary.phase, Phase::Queued { .. }) {
                    self.kept.insert(id, kv);
                }
                self.index(summary);
                Some(Change::Task(id))
            }
            Err(error) => {
                self.unreadable.insert(id, error.clone());
                Some(Change::UnreadableTask(id, error))
            }
        }
    }

    fn delete_task(&mut self, id: TaskId) -> Change {
        self.forget_task(id);
        Change::TaskDeleted(id)
    }

    fn index(&mut self, summary: Summary) {
        match summary.phase {
            Phase::Queued { .. } => drop(self.queue.insert(summary.place())),
            Phase::Running { node, .. } => {
                self.running.entry(node).or_default().insert(summary.id);
            }
            Phase::Ended(_, epoch) => drop(self.ended.insert((epoch, summary.id))),
        }
        self.tasks.insert(summary.id, summary);
    }

    fn forget_task(&mut self, id: TaskId) {
        self.unreadable.remove(&id);
        self.kept.remove(id);
        let Some(summary) = self.tasks.remove(&id) else { return };
        match summary.phase {
            Phase::Queued { .. } => drop(self.queue.remove(&summary.place())),
            Phase::Running { node, .. } => {
                if let Some(tasks) = self.running.get_mut(&node) {
                    tasks.remove(&id);
                    if tasks.is_empty() {
                        self.running.remove(&node);
                    }
                }
            }
            Phase::Ended(_, epoch) => drop(self.ended.remove(&(epoch, id))),
        }
    }

    fn put_node(&mut self, kv: &KeyValue) -> Option<Change> {
        match Node::decode(kv) {
            Ok((node, registered)) => {
                let id = node.id;
                let before = self.nodes.insert(id, (node.clone(), registered));
                let is_same = before.is_some_and(|(before, _)| before == node);
                (!is_same).then_some(Change::Node(id))
            }
            Err(error) => Some(Change::UnreadableNode(error)),
        }
    }

    fn delete_node(&mut self, id: NodeId) -> Option<Change> {
        self.nodes.remove(&id).map(|_| Change::NodeGone(id))
    }
}

// === impl Kept ===

impl Kept {
    fn insert(&mut self, id: TaskId, kv: &KeyValue) {
        let added = kv.encoded().len();
        if self.bytes + added <= self.bytes_max {
            self.bytes += added;
            self.records.insert(id, kv.clone());
        }
    }

    fn remove(&mut self, id: TaskId) {
        if let Some(kv) = self.records.remove(&id) {
            self.bytes -= kv.encoded().len();
        }
    }
}
