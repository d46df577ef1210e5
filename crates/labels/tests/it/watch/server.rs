//! An API server as simple as can be: everything that ever happened, in a list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use labels::core::{
    names::NodeHash,
    object::{Document, Labels, LiveNode, Uid},
    rv::ResourceVersion,
    transaction::{Kind, Transaction},
    watch::{
        checkpoints::Saved,
        engine::Roll,
        index::{EventKind, NodeEvent},
        relist::Listing,
    },
};

/// What was said to a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Refused,
}

/// An incarnation's life.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// All its labels, and from which version on.
    pub(super) labels: Vec<(ResourceVersion, Labels)>,
    /// When it ended, what its checkpoint was seen at.
    pub(super) covered: Option<ResourceVersion>,
}

#[derive(Debug, Default)]
pub(super) struct Server {
    version: u64,
    nodes: BTreeMap<String, LiveNode>,
    pub(super) events: Vec<NodeEvent>,
    /// A watch from before this finds its events gone.
    forgotten: u64,
    pub(super) queue: BTreeMap<String, Document>,
    /// Everything that was ever queued, in order.
    pub(super) created: Vec<Transaction>,
    pub(super) worked_off: Vec<String>,
    pub(super) checkpoints: BTreeMap<String, Document>,
    pub(super) kept: Option<Document>,
    pub(super) lives: BTreeMap<Uid, Life>,
}

// === impl Server ===

impl Server {
    /// Creates the node, edits it, or deletes it, as the kind says; nothing if that is not possible.
    pub(super) fn change(&mut self, name: &str, kind: EventKind, label: u8) {
        let is_possible = self.nodes.contains_key(name) == (kind != EventKind::Added);
        if !is_possible {
            return;
        }
        let rv = self.next();
        let labels: Labels = [("x".to_owned(), label.to_string())].into();
        let born = || LiveNode {
            name: name.to_owned(),
            uid: Uid(format!("{name}-{rv}")),
            rv: rv.clone(),
            created: Timestamp::UNIX_EPOCH,
            labels: labels.clone(),
            marker: None,
            is_terminating: false,
        };
        let mut node = self.nodes.remove(name).unwrap_or_else(born);
        node.rv = rv.clone();
        if kind == EventKind::Modified {
            node.labels = labels;
        }
        self.remember(&node, kind);
        if kind != EventKind::Deleted {
            self.nodes.insert(name.to_owned(), node.clone());
        }
        self.events.push(NodeEvent { kind, node });
    }

    /// Where it is.
    pub(super) fn position(&self) -> ResourceVersion {
        version(self.version.max(1))
    }

    pub(super) fn forget(&mut self) {
        self.forgotten = self.version;
    }

    /// The next event after a position; an error if it is forgotten.
    pub(super) fn after(&self, position: &ResourceVersion) -> Result<Option<NodeEvent>, Forgotten> {
        if *position < version(self.forgotten.max(1)) {
            return Err(Forgotten);
        }
        Ok(self.events.iter().find(|event| event.node.rv > *position).cloned())
    }

    pub(super) fn listing(&self) -> Listing {
        let checkpoints = self.checkpoints.values().map(decoded);
        let queued = self
            .queue
            .values()
            .map(|document| Uid(document.annotations["labels.windlass.dev/node-uid"].clone()));
        Listing {
            position: self.position(),
            nodes: self.nodes.values().cloned().collect(),
            checkpoints: checkpoints.collect(),
            records: BTreeMap::new(),
            queued: queued.collect::<BTreeSet<_>>(),
        }
    }

    /// For a look at forgotten checkpoints. Nobody stores anything here.
    pub(super) fn roll(&self) -> Roll {
        let nodes = self.nodes.values().cloned().collect();
        Roll { position: self.position(), nodes, stored: BTreeSet::new() }
    }

    pub(super) fn post(&mut self, transaction: &Transaction) -> Answer {
        let document = transaction.encode().expect("small");
        if self.queue.contains_key(&document.name) {
            return Answer::Refused;
        }
        self.created.push(transaction.clone());
        self.queue.insert(document.name.clone(), document);
        Answer::Done
    }

    /// A processor has done with one of the transactions.
    pub(super) fn work_off(&mut self, which: usize) {
        let Some(name) = self.queue.keys().nth(which % self.queue.len().max(1)).cloned() else {
            return;
        };
        self.queue.remove(&name);
        self.worked_off.push(name);
    }

    /// Writes a checkpoint if the one that is there is still `over`.
    pub(super) fn save(&mut self, wanted: Document, over: Option<&Saved>) -> Option<Document> {
        let found = self.checkpoints.get(&wanted.name);
        if found.map(|found| &found.rv) != over.map(|over| &over.object_rv) {
            return None;
        }
        let rv = Some(self.next().to_string());
        let document = Document { rv, ..wanted };
        self.checkpoints.insert(document.name.clone(), document.clone());
        Some(document)
    }

    /// Removes a checkpoint if it is still this one.
    pub(super) fn remove(&mut self, saved: &Saved) {
        let name = saved.node_hash().to_string();
        if self.checkpoints.get(&name).is_some_and(|found| found.rv == saved.object_rv) {
            self.checkpoints.remove(&name);
        }
    }

    pub(super) fn keep(&mut self, wanted: Document, over: Option<&Document>) {
        if self.kept.as_ref().map(|kept| &kept.rv) == over.map(|over| &over.rv) {
            let rv = Some(self.next().to_string());
            self.kept = Some(Document { rv, ..wanted });
        }
    }

    fn remember(&mut self, node: &LiveNode, kind: EventKind) {
        let life = self.lives.entry(node.uid.clone()).or_default();
        life.labels.push((node.rv.clone(), node.labels.clone()));
        if kind == EventKind::Deleted {
            let checkpoint = self.checkpoints.get(&NodeHash::of(&node.name).to_string());
            let saved = checkpoint.map(|document| decoded(document).meta);
            life.covered = saved.filter(|saved| saved.uid == node.uid).map(|saved| saved.rv);
        }
    }

    fn next(&mut self) -> ResourceVersion {
        self.version += 1;
        version(self.version)
    }
}

/// The server no longer has what follows.
#[derive(Debug)]
pub(super) struct Forgotten;

// === impl Life ===

impl Life {
    pub(super) fn is_over(&self, events: &[NodeEvent], uid: &Uid) -> bool {
        let end = |event: &NodeEvent| event.kind == EventKind::Deleted && event.node.uid == *uid;
        events.iter().any(end)
    }

    /// Whether the transaction tells the labels as they were when they were seen. That may be before
    /// the version it is named with, if it had to step aside for the arrival.
    pub(super) fn is_told_by(&self, transaction: &Transaction) -> bool {
        let Kind::Deleted(snapshot) = &transaction.kind else { return false };
        let then = self.labels.iter().rev().find(|(rv, _)| *rv <= snapshot.rv);
        let is_late_enough = self.covered.as_ref().is_none_or(|at| snapshot.rv >= *at);
        is_late_enough && then.is_some_and(|(_, labels)| *labels == snapshot.labels)
    }
}

/// A checkpoint that a watcher wrote.
pub(super) fn decoded(document: &Document) -> Saved {
    Saved::decode(document).expect("watchers write what they can read")
}

fn version(number: u64) -> ResourceVersion {
    number.to_string().parse().expect("a number")
}
