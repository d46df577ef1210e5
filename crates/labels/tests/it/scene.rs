//! A record, a node and a transaction in few words, and a decision in few lines.
//!
//! ```text
//! record rv=10 uid=u1 given=u2:10@25 at=60 {team=gold}   labels as stored `at` minutes ago, given
//!                                                        to u2 as snapshot 10, decided at its 25
//! past rv=5 uid=u0 {team=silver}                         a snapshot before that
//! live uid=u2 rv=30 marker=10 terminating {team=gold}
//! deleted uid=u1 rv=20 marker=5 created=30 {team=tin}    of a node created 30 minutes ago
//! added uid=u2 rv=21
//! policy merge no-restriction system=stored marker=label rule=a/*=live
//! ```

use std::{collections::BTreeMap, fmt::Write};

use expect_test::Expect;
use jiff::{SignedDuration, Timestamp};
use labels::core::{
    command::{Command, Decision, NodePatch},
    decide::decide,
    ledger::Restored,
    names::{NodeHash, TransactionName},
    object::{Document, Labels, LiveNode, Marker, Uid},
    policy::{MarkerPlace, NodeRestriction, Policy, RestoreMode, SystemLabels},
    reading::Reading,
    record::{Record, Stored},
    rv::ResourceVersion,
    settle::{Cause, settle},
    snapshot::Snapshot,
    transaction::{Kind, Transaction},
};

pub(crate) const NODE: &str = "worker-7";

/// Everything that is decided on.
pub(crate) struct Scene {
    pub(crate) reading: Reading,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) policy: Policy,
}

/// One line: its word, its fields, its labels.
struct Line<'a> {
    word: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
    labels: Labels,
}

/// Decides on the transaction.
#[track_caller]
pub(crate) fn check(text: &str, expected: &Expect) {
    let scene = Scene::parse(text);
    let transaction = scene.transaction.as_ref().expect("the scene has a transaction");
    expected.assert_eq(&show(&decide(&scene.reading, transaction, &scene.policy, now())));
}

/// Settles what is there.
#[track_caller]
pub(crate) fn check_settle(cause: Cause, text: &str, expected: &Expect) {
    let scene = Scene::parse(text);
    expected.assert_eq(&show(&settle(&scene.reading, cause, &scene.policy, now())));
}

pub(crate) fn now() -> Timestamp {
    "2026-03-01T08:00:00Z".parse().expect("a time")
}

// === impl Scene ===

impl Scene {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut stored, mut live, mut transaction) = (None, None, None);
        let mut policy = Policy::default();
        let mut past = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Line::parse) {
            match line.word {
                "record" => stored = Some(line.record()),
                "past" => past.push(line.snapshot()),
                "live" => live = Some(line.live()),
                "added" | "deleted" => transaction = Some(line.transaction()),
                "policy" => policy = line.policy(),
                other => panic!("unknown word {other:?}"),
            }
        }
        let document = stored.map(|mut record: Record| {
            record.past = past.into_iter().collect();
            record.encode()
        });
        let stored = Stored::read(document.as_ref());
        Self { reading: Reading { stored, live }, transaction, policy }
    }
}

// === impl Line ===

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Self {
        let (fields, labels) = line.split_once('{').unwrap_or((line, "}"));
        let labels = labels.strip_suffix('}').expect("labels end with a brace");
        let mut words = fields.split_whitespace();
        let word = words.next().expect("a line has a word");
        let pair = |text: &'a str| text.split_once('=').unwrap_or((text, ""));
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let labels = labels.split_whitespace().map(|label| owned(pair(label))).collect();
        Self { word, fields: words.map(pair).collect(), labels }
    }

    fn get(&self, field: &str) -> Option<&'a str> {
        self.fields.get(field).copied()
    }

    fn uid(&self) -> Option<Uid> {
        self.get("uid").map(|uid| Uid(uid.to_owned()))
    }

    fn marker(&self) -> Option<Marker> {
        self.get("marker").map(|marker| Marker(marker.to_owned()))
    }

    fn rv(&self) -> ResourceVersion {
        rv(self.get("rv").expect("an rv"))
    }

    /// So many minutes before now.
    fn ago(&self, field: &str) -> Option<Timestamp> {
        let minutes = self.get(field)?.parse().expect("minutes");
        Some(now() - SignedDuration::from_mins(minutes))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            node: NODE.to_owned(),
            uid: self.uid(),
            rv: self.rv(),
            marker: self.marker(),
            labels: self.labels.clone(),
        }
    }

    fn record(&self) -> Record {
        let mut record = Record::new(self.snapshot(), now() - SignedDuration::from_mins(60));
        record.ledger.stored_at = self.ago("at").or(record.ledger.stored_at);
        record.ledger.restored = self.get("given").map(given);
        record
    }

    fn live(&self) -> LiveNode {
        LiveNode {
            name: NODE.to_owned(),
            uid: self.uid().expect("a live node has a uid"),
            rv: self.rv(),
            created: now(),
            labels: self.labels.clone(),
            marker: self.marker(),
            is_terminating: self.fields.contains_key("terminating"),
        }
    }

    fn transaction(&self) -> Transaction {
        Transaction {
            name: TransactionName::new(NodeHash::of(NODE), self.rv()),
            node: NODE.to_owned(),
            uid: self.uid(),
            created: self.ago("created"),
            source: None,
            kind: match self.word {
                "added" => Kind::Added,
                _ => Kind::Deleted(self.snapshot()),
            },
        }
    }

    fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        for (field, value) in &self.fields {
            match (*field, *value) {
                ("merge", "") => policy.restore_mode = RestoreMode::Merge,
                ("no-restriction", "") => policy.node_restriction = NodeRestriction::Skip,
                ("system", "stored") => policy.system_labels = SystemLabels::Stored,
                ("marker", "label") => policy.marker = MarkerPlace::Label,
                ("marker", "annotation") => policy.marker = MarkerPlace::Annotation,
                ("rule", rule) => policy.rules = vec![rule.parse().expect("a rule")],
                other => panic!("unknown policy {other:?}"),
            }
        }
        policy
    }
}

/// `u2:10@25`
fn given(text: &str) -> Restored {
    let (uid, rest) = text.split_once(':').expect("a version after the uid");
    let (of, node_rv) = rest.split_once('@').map_or((rest, None), |(of, at)| (of, Some(at)));
    let node_rv = node_rv.map(rv);
    Restored { uid: Uid(uid.to_owned()), rv: rv(of), at: None, node_rv }
}

fn rv(text: &str) -> ResourceVersion {
    text.parse().expect("a resource version")
}

/// The rows in the first line, then each command in one.
pub(crate) fn show(decision: &Decision) -> String {
    let mut text = decision.to_string();
    for command in &decision.commands {
        text.push('\n');
        match command {
            Command::StoreRecord(document) => show_record(&mut text, document),
            Command::PatchNode(patch) => show_patch(&mut text, patch),
            Command::MarkRestored(document) => {
                let record = Record::decode(document).expect("our own record");
                let restored = record.ledger.restored.expect("a mark");
                write!(text, "mark {}:{}", restored.uid, restored.rv).expect("text");
            }
            Command::DeleteTransaction(_) => text.push_str("delete"),
            Command::Quarantine { reason, .. } => {
                write!(text, "quarantine {reason}").expect("text")
            }
            Command::Event(event) => write!(text, "event {}", event.reason.as_str()).expect("text"),
        }
    }
    text
}

fn show_record(text: &mut String, document: &Document) {
    let record = Record::decode(document).expect("our own record");
    let uid = record.uid().map_or("-", |uid| &uid.0);
    write!(text, "store {} {uid} {}", record.rv(), show_labels(record.labels())).expect("text");
    for snapshot in record.past.iter() {
        write!(text, ", past {} {}", snapshot.rv, show_labels(&snapshot.labels)).expect("text");
    }
}

fn show_patch(text: &mut String, patch: &NodePatch) {
    write!(text, "patch {}@{}", patch.uid, patch.rv).expect("text");
    for (kind, changes) in [("label", &patch.labels), ("annotation", &patch.annotations)] {
        for (key, value) in changes {
            let short = if kind == "label" { key } else { "annotation" };
            match value {
                Some(value) => write!(text, " {short}={value}").expect("text"),
                None => write!(text, " -{short}").expect("text"),
            }
        }
    }
}

pub(crate) fn show_labels(labels: &Labels) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
}
