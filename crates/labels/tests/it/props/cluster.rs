//! The API server with one node's worth of objects: one revision for all, guarded writes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use labels::core::{
    checkpoint::Checkpoint,
    command::NodePatch,
    keys::{MARKER_ANNOTATION, QUARANTINED},
    names::{NodeHash, TransactionName},
    object::{Document, Labels, LiveNode, Marker, Uid},
    reading::Reading,
    record::Stored,
    rv::ResourceVersion,
    snapshot::Snapshot,
    transaction::{Kind, Source, Transaction},
};

pub(crate) const NODE: &str = "worker-7";

#[derive(Default)]
pub(crate) struct Cluster {
    revision: u64,
    pub(crate) node: Option<Node>,
    pub(crate) record: Option<Document>,
    pub(crate) queue: BTreeMap<TransactionName, Document>,
    pub(crate) checkpoint: Option<Checkpoint>,
    /// Births and deaths, as a watch reports them.
    pub(crate) events: Vec<Transaction>,
    /// How often a node was patched.
    pub(crate) patches: usize,
    /// Every name that was ever queued.
    pub(crate) queued: BTreeSet<TransactionName>,
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) uid: Uid,
    rv: u64,
    created: Timestamp,
    pub(crate) labels: Labels,
    annotations: BTreeMap<String, String>,
    pub(crate) is_terminating: bool,
}

/// The object is not as the writer believes.
#[derive(Debug)]
pub(crate) struct Conflict;

// === impl Cluster ===

impl Cluster {
    /// A second a revision.
    pub(crate) fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.revision).expect("small");
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24) + SignedDuration::from_secs(seconds)
    }

    fn bump(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    pub(crate) fn live(&self) -> Option<LiveNode> {
        self.node.as_ref().map(Node::observed)
    }

    pub(crate) fn read(&self) -> Reading {
        Reading { stored: Stored::read(self.record.as_ref()), live: self.live() }
    }

    pub(crate) fn bear(&mut self, uid: Uid, labels: Labels) {
        let (rv, created) = (self.bump(), self.now());
        let annotations = BTreeMap::new();
        let node = Node { uid, rv, created, labels, annotations, is_terminating: false };
        self.report(&node, Kind::Added);
        self.node = Some(node);
    }

    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut Node)) {
        let rv = self.bump();
        let node = self.node.as_mut().expect("there is a node to edit");
        edit(node);
        node.rv = rv;
    }

    /// The event has the deletion's own revision, and the labels the node had.
    pub(crate) fn delete_node(&mut self) {
        let rv = self.bump();
        let node = Node { rv, ..self.node.take().expect("there is a node to delete") };
        self.report(&node, Kind::Deleted(snapshot_of(&node.observed())));
    }

    fn report(&mut self, node: &Node, kind: Kind) {
        self.events.push(node.transaction(Source::Watch, kind));
    }

    /// Whether nothing is queued but what is quarantined.
    pub(crate) fn is_worked_off(&self) -> bool {
        self.queue.values().all(|document| document.labels.contains_key(QUARANTINED))
    }

    /// 201 and 409 are one: it is there.
    pub(crate) fn post(&mut self, transaction: &Transaction) {
        let mut document = transaction.encode().expect("small");
        document.uid = Some(Uid(format!("transaction-{}", self.bump())));
        self.queued.insert(transaction.name.clone());
        self.queue.entry(transaction.name.clone()).or_insert(document);
    }

    /// Only the one that is meant: another may have come under its name meanwhile.
    pub(crate) fn delete_transaction(&mut self, meant: &Document) -> bool {
        let name = meant.name.parse().expect("only transactions are queued");
        let is_meant = self.queue.get(&name).is_some_and(|found| found.uid == meant.uid);
        is_meant && self.queue.remove(&name).is_some()
    }

    pub(crate) fn put_record(&mut self, document: &Document) -> Result<Document, Conflict> {
        let found = self.record.as_ref().map(|record| (&record.uid, &record.rv));
        let expected = document.rv.is_some().then_some((&document.uid, &document.rv));
        if found != expected {
            return Err(Conflict);
        }
        let uid = document.uid.clone().or_else(|| Some(Uid(format!("record-{}", self.revision))));
        let written = Document { rv: Some(self.bump().to_string()), uid, ..document.clone() };
        self.record = Some(written.clone());
        Ok(written)
    }

    pub(crate) fn patch_node(
        &mut self,
        patch: &NodePatch,
        is_guarded: bool,
    ) -> Result<(), Conflict> {
        let node = self.node.as_ref().ok_or(Conflict)?;
        let is_expected = node.uid == patch.uid && node.rv.to_string() == patch.rv.as_str();
        if is_guarded && !is_expected {
            return Err(Conflict);
        }
        self.edit(|node| {
            merge(&mut node.labels, &patch.labels);
            merge(&mut node.annotations, &patch.annotations);
        });
        self.patches += 1;
        Ok(())
    }
}

fn merge(into: &mut BTreeMap<String, String>, changes: &BTreeMap<String, Option<String>>) {
    for (key, value) in changes {
        match value {
            Some(value) => into.insert(key.clone(), value.clone()),
            None => into.remove(key),
        };
    }
}

pub(crate) fn snapshot_of(live: &LiveNode) -> Snapshot {
    Checkpoint::of(live).snapshot
}

// === impl Node ===

impl Node {
    pub(crate) fn is_marked(&self) -> bool {
        self.annotations.contains_key(MARKER_ANNOTATION)
    }

    pub(crate) fn observed(&self) -> LiveNode {
        let mut labels = self.labels.clone();
        let marker = Marker::take(&mut labels, &self.annotations);
        LiveNode {
            name: NODE.to_owned(),
            uid: self.uid.clone(),
            rv: rv(self.rv),
            created: self.created,
            labels,
            marker,
            is_terminating: self.is_terminating,
        }
    }

    pub(crate) fn transaction(&self, source: Source, kind: Kind) -> Transaction {
        Transaction {
            name: TransactionName::new(NodeHash::of(NODE), rv(self.rv)),
            node: NODE.to_owned(),
            uid: Some(self.uid.clone()),
            created: Some(self.created),
            source: Some(source),
            kind,
        }
    }
}

fn rv(revision: u64) -> ResourceVersion {
    revision.to_string().parse().expect("revisions start at 1")
}
