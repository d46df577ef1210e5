//! Answers, from what was read to what is told. What needs a cluster is tested with one, in `e2e`,
//! but for what takes time or must not happen at all.

mod diff;
mod dry_run;
mod forget;
mod history;
mod list;
mod transfer;
mod uninstall;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Admin, Options};
use crate::{
    asked::Server,
    core::{
        object::{Document, Labels, LiveNode, Marker, Uid},
        policy::Policy,
        record::Record,
        snapshot::Snapshot,
    },
    options::Namespaces,
};

/// A person before this server.
fn admin(server: &Server) -> Admin {
    Admin::new(Options {
        client: server.client(),
        lease_client: server.client(),
        namespaces: Namespaces::default(),
        policy: Policy::default(),
        identity: "person".to_owned(),
        clock: || at(5),
    })
}

fn at(minute: i8) -> Timestamp {
    let text = format!("2026-03-01T08:{minute:02}:00Z");
    text.parse().unwrap()
}

/// `a=1 b=2`.
fn labels(text: &str) -> Labels {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}

fn snapshot(node: &str, rv: u32, text: &str) -> Snapshot {
    Snapshot {
        node: node.to_owned(),
        uid: Some(Uid(format!("uid-{rv}"))),
        rv: rv.to_string().parse().unwrap(),
        marker: None,
        labels: labels(text),
    }
}

fn record(node: &str, rv: u32, text: &str) -> Record {
    Record::new(snapshot(node, rv, text), at(0))
}

/// As the API server has it.
fn stored(record: &Record) -> Document {
    let uid = Uid(format!("uid of {}", record.snapshot.node));
    Document { uid: Some(uid), rv: Some("90".to_owned()), ..record.encode() }
}

/// As the API server answers.
fn object(document: &Document) -> Value {
    let Document { name, uid, rv, labels, annotations, data, .. } = document;
    json!({
        "metadata": {
            "name": name, "uid": uid.as_ref().map(ToString::to_string), "resourceVersion": rv,
            "labels": labels, "annotations": annotations,
        },
        "data": data,
    })
}

fn live(node: &str, text: &str) -> LiveNode {
    LiveNode {
        name: node.to_owned(),
        uid: Uid(format!("uid of {node}")),
        rv: "80".parse().unwrap(),
        created: at(1),
        labels: labels(text),
        marker: None,
        is_terminating: false,
    }
}

fn marked(node: LiveNode, marker: &str) -> LiveNode {
    LiveNode { marker: Some(Marker(marker.to_owned())), ..node }
}

fn foreign(name: &str) -> Document {
    let data = BTreeMap::from([("ca.crt".to_owned(), "-----".to_owned())]);
    Document { name: name.to_owned(), data, ..Document::default() }
}
