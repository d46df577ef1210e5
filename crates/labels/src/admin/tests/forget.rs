//! What has to go so that a node starts afresh.

use serde_json::{Value, json};

use super::{admin, live, object, record, stored};
use crate::{
    admin::{Mode, forget::Forgotten},
    asked::{CHECKPOINTS, NODES, RECORDS, Server},
    core::{
        checkpoint::Checkpoint,
        names::NodeHash,
        object::{Document, Uid},
    },
    kubernetes::Kind,
};

/// A record of `n`, and a checkpoint of its incarnation `uid of n`.
fn server(checkpoint: &Value) -> Server {
    Server::default()
        .with(&format!("{RECORDS}/n"), object(&stored(&record("n", 7, "rack=r7"))))
        .with(&checkpoint_path(), checkpoint.clone())
}

fn checkpoint() -> Value {
    let document = Checkpoint::of(&live("n", "rack=r7")).encode().unwrap();
    let (uid, rv) = (Some(Uid("c".to_owned())), Some("81".to_owned()));
    object(&Document { uid, rv, ..document })
}

fn checkpoint_path() -> String {
    format!("{CHECKPOINTS}/{}", NodeHash::of("n"))
}

fn living(uid: &str) -> Value {
    json!({"metadata": {
        "name": "n", "uid": uid, "resourceVersion": "90",
        "creationTimestamp": "2026-03-01T08:00:00Z",
    }})
}

/// Forgets, and tells what was asked to be written; `checkpoints` is what is said of them.
#[track_caller]
fn told(forgotten: &Forgotten, checkpoints: usize) {
    let Forgotten { node, labels, checkpoints: found, queued } = forgotten;
    assert_eq!((node.as_str(), *labels, *found, *queued), ("n", Some(1), checkpoints, 0));
}

/// Only the record went. When a watcher started again, it found the checkpoint of a node that was
/// gone, and told the end from it a second time: the labels that were forgotten came back.
#[tokio::test]
async fn what_is_forgotten_does_not_come_back_from_a_checkpoint() {
    let server = server(&checkpoint());
    told(&admin(&server).forget("n", false, Mode::DryRun).await.unwrap(), 1);
    assert_eq!(server.writes(), [""; 0]);
    told(&admin(&server).forget("n", false, Mode::Write).await.unwrap(), 1);
    let gone = [format!("DELETE {}", checkpoint_path()), format!("DELETE {RECORDS}/n")];
    assert_eq!(server.writes(), gone);
}

#[tokio::test]
async fn the_checkpoint_of_another_incarnation_goes_and_that_of_the_living_stays() {
    let checkpoint = checkpoint();
    for (uid, checkpoints) in [("another", 1), ("uid of n", 0)] {
        let server = server(&checkpoint).with(&format!("{NODES}/n"), living(uid));
        told(&admin(&server).forget("n", false, Mode::Write).await.unwrap(), checkpoints);
        assert_eq!(server.writes().len(), 1 + checkpoints, "{uid}: {:?}", server.writes());
    }
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_read_goes_too() {
    let mut broken = checkpoint();
    broken["metadata"]["annotations"] = json!({});
    let server = server(&broken);
    told(&admin(&server).forget("n", false, Mode::Write).await.unwrap(), 1);
}

#[tokio::test]
async fn a_checkpoint_that_is_written_meanwhile_keeps_the_record() {
    let conflict = json!({"code": 409, "reason": "Conflict", "message": "changed"});
    let server = server(&checkpoint()).refusing(&format!("DELETE {}", checkpoint_path()), conflict);
    admin(&server).forget("n", false, Mode::Write).await.unwrap_err();
    assert_eq!(server.writes(), [format!("DELETE {}", checkpoint_path())]);
}

#[tokio::test]
async fn a_checkpoint_that_a_watcher_removed_meanwhile_stops_nobody() {
    let missing = json!({"code": 404, "reason": "NotFound", "message": "gone"});
    let server = server(&checkpoint()).refusing(&format!("DELETE {}", checkpoint_path()), missing);
    admin(&server).forget("n", false, Mode::Write).await.unwrap();
    assert_eq!(server.writes().len(), 2);
}

/// A reader who was refused was told who may write.
#[tokio::test]
async fn who_may_not_read_is_told_from_who_may_not_write() {
    for (refused, is_read) in
        [(format!("GET {RECORDS}/n"), true), (format!("DELETE {RECORDS}/n"), false)]
    {
        let forbidden = json!({"code": 403, "reason": "Forbidden", "message": "no"});
        let server = server(&checkpoint()).refusing(&refused, forbidden);
        let error = admin(&server).forget("n", false, Mode::Write).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_of_a_read()),
            (Some(Kind::Forbidden), is_read),
            "{error}"
        );
    }
}
