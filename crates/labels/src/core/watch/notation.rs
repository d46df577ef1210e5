//! Nodes, checkpoints and posts as lines of text, for tables in tests:
//! `a u1 5 x=1 m=3` is node `a`, incarnation `u1`, at version 5, labelled `x=1`, marked `3`.

use super::{
    checkpoints::Saved,
    post::{Content, Post},
};
use crate::core::{
    checkpoint::Checkpoint,
    object::{LiveNode, Marker, Uid},
    rv::ResourceVersion,
    transaction::{Kind, Source},
};

pub(super) fn rv(text: &str) -> ResourceVersion {
    text.parse().unwrap()
}

pub(super) fn uid(text: &str) -> Uid {
    Uid(text.to_owned())
}

pub(super) fn node(text: &str) -> LiveNode {
    let mut words = text.split(' ');
    let mut next = || words.next().unwrap();
    let (name, uid, version) = (next().to_owned(), uid(next()), rv(next()));
    let mut live = LiveNode {
        name,
        uid,
        rv: version,
        created: "2026-03-01T08:00:00Z".parse().unwrap(),
        labels: [].into(),
        marker: None,
        is_terminating: false,
    };
    for (key, value) in words.map(|word| word.split_once('=').unwrap()) {
        match key {
            "m" => live.marker = Some(Marker(value.to_owned())),
            _ => drop(live.labels.insert(key.to_owned(), value.to_owned())),
        }
    }
    live
}

/// The node's checkpoint, as the ConfigMap `object` at version 1.
pub(super) fn saved(text: &str) -> Saved {
    let document = Checkpoint::of(&node(text)).encode().unwrap();
    let mut saved = Saved::decode(&document).unwrap();
    (saved.object_uid, saved.object_rv) = (Some(uid("object")), Some("1".to_owned()));
    saved
}

/// `a.5 added u1 (watch)`, with the labels of a deletion.
pub(super) fn show(post: &Post) -> String {
    let transaction = match &post.content {
        Content::Checkpoint { uid } => return format!("deleted {uid} (checkpoint)"),
        Content::Transaction(transaction) => transaction,
    };
    let source = transaction.source.map_or("", Source::as_str);
    let uid = transaction.uid.as_ref().unwrap();
    let name = format!("{}.{}", transaction.node, transaction.name.rv());
    let labels = match &transaction.kind {
        Kind::Added => String::new(),
        Kind::Deleted(snapshot) => {
            let labels = snapshot.labels.iter().map(|(key, value)| format!(" {key}={value}"));
            let marker = snapshot.marker.iter().map(|marker| format!(" m={marker}"));
            labels.chain(marker).collect()
        }
    };
    format!("{name} {} {uid} ({source}){labels}", transaction.kind.as_str())
}

pub(super) fn show_all<'a>(posts: impl IntoIterator<Item = &'a Post>) -> Vec<String> {
    posts.into_iter().map(show).collect()
}
