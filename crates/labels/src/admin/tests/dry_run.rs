//! What would be done is told, and nothing is written.

use serde_json::json;

use super::{admin, object, record, stored};
use crate::{
    admin::{
        Mode,
        transfer::{Export, Outcome},
    },
    asked::{CHECKPOINTS, NODES, RECORDS, Server},
    core::names::NodeHash,
};

/// A record of `n`, whose Node lives and is marked.
fn server() -> Server {
    let record = object(&stored(&record("n", 7, "rack=r7")));
    let node = json!({"metadata": {
        "name": "n", "uid": "u", "resourceVersion": "80", "labels": {"labels_restored": "7"},
        "creationTimestamp": "2026-03-01T08:00:00Z",
    }});
    let checkpoint = json!({"metadata": {
        "name": NodeHash::of("n").to_string(), "uid": "c", "resourceVersion": "81",
        "labels": {"app.kubernetes.io/managed-by": "windlass-labels"},
    }});
    Server::default()
        .with_list(NODES, &[node])
        .with_list(RECORDS, std::slice::from_ref(&record))
        .with(&format!("{RECORDS}/n"), record)
        .with_list(CHECKPOINTS, &[checkpoint])
}

#[tokio::test]
async fn forget_says_whose_record_would_go() {
    let server = server();
    let forgotten = admin(&server).forget("n", false, Mode::DryRun).await.unwrap();
    assert_eq!((forgotten.node.as_str(), forgotten.labels), ("n", Some(1)));
    assert_eq!(server.writes(), [""; 0]);
    admin(&server).forget("n", false, Mode::Write).await.unwrap();
    assert_eq!(server.writes(), [format!("DELETE {RECORDS}/n")], "without a dry run it goes");
}

#[tokio::test]
async fn import_says_what_would_be_stored() {
    let server = server();
    let (changed, new) = (record("n", 9, "rack=r9"), record("m", 8, "rack=r8"));
    let export = Export::of(&[stored(&changed), stored(&new)]).records;
    let imports = admin(&server).import(export, true, Mode::DryRun).await.unwrap();
    let outcomes: Vec<_> = imports.iter().map(|import| import.outcome).collect();
    assert_eq!(outcomes, [Outcome::Replaced, Outcome::Created]);
    assert_eq!(server.writes(), [""; 0]);
}

/// Its name would be part of a path, and mean something else there.
#[tokio::test]
async fn a_record_that_can_be_no_nodes_is_refused_and_the_others_are_imported() {
    let server = Server::default();
    let named = |name: &str| stored(&record(name, 7, "rack=r7"));
    let export = Export::of(&[named(""), named("n?x"), named("n")]).records;
    let imports = admin(&server).import(export, false, Mode::Write).await.unwrap();
    let outcomes: Vec<_> = imports.iter().map(|import| import.outcome).collect();
    assert_eq!(outcomes, [Outcome::Refused, Outcome::Refused, Outcome::Created]);
    assert_eq!(server.writes(), [format!("POST {RECORDS}")]);
}

#[tokio::test]
async fn uninstall_says_what_would_be_removed() {
    let server = server();
    let uninstalled = admin(&server).uninstall(true, Mode::DryRun).await.unwrap();
    assert_eq!(uninstalled.nodes, ["n"]);
    let purged = uninstalled.purged.unwrap();
    assert_eq!((purged.records, purged.checkpoints), (1, 1));
    assert_eq!(server.writes(), [""; 0]);
}
