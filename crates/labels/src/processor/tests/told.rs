//! What people are told of a turn, and how often.

use serde_json::Value;

use super::*;

/// The record of u1, stored at version 10, with more bookkeeping.
fn record(bookkeeping: &Value, data: &Value) -> Value {
    let mut record = json!({
        "metadata": {"name": NODE, "annotations": {
            "labels.windlass.dev/stored-uid": "u1",
            "labels.windlass.dev/stored-rv": "10",
        }},
        "data": {"labels_restored": "10"},
    });
    for (into, from) in [("/metadata/annotations", bookkeeping), ("/data", data)] {
        let fields = record.pointer_mut(into).and_then(Value::as_object_mut).unwrap();
        fields.extend(from.as_object().unwrap().clone());
    }
    record
}

/// Works off what is queued, as one process, and returns the reasons of its Events.
async fn told(server: &Server) -> Vec<String> {
    let scene = Scene::new(server, "this");
    scene.list();
    assert_eq!(scene.turn().await, TurnEnd::Done);
    let conversation = scene.conversation().await;
    let reasons = conversation.lines().filter_map(|line| line.strip_prefix("POST event "));
    reasons.map(|reason| reason.replace(" 201", "")).collect()
}

/// Somebody edited the keys that are there to be read, and left alone what counts.
#[tokio::test(start_paused = true)]
async fn a_mirror_that_differs_is_told_of_and_rewritten_when_labels_are_stored() {
    let server = world(Some(("u2", "x=1")), &[added("u2", "20")]);
    let end = deleted("u1", "10", None, "tier=gold").encode().unwrap();
    let data = json!({"snapshot.json": end.data["snapshot.json"], "tier": "edited"});
    server.put("record a", record(&json!({}), &data));
    assert_eq!(told(&server).await, ["LabelsRestored", "RestoreSkipped"]);
    assert_eq!(server.get("node a").unwrap()["metadata"]["labels"]["tier"], "gold");
    assert_eq!(server.get("record a").unwrap()["data"]["tier"], "edited");

    server.remove("node a");
    server.post(&deleted("u2", "30", Some("10"), "tier=silver").encode().unwrap());
    assert_eq!(told(&server).await, ["LabelsStored", "RestoreSkipped"]);
    assert_eq!(server.get("record a").unwrap()["data"]["tier"], "silver");
}

/// The `added` said it, and so did the final settle.
#[tokio::test(start_paused = true)]
async fn what_is_skipped_for_its_age_is_told_once() {
    let server = world(Some(("u2", "x=1")), &[added("u2", "20")]);
    let long_ago = json!({"labels.windlass.dev/stored-at": "2026-01-01T00:00:00Z"});
    server.put("record a", record(&long_ago, &json!({"tier": "gold"})));
    assert_eq!(told(&server).await, ["RestoreSkipped"]);
    assert_eq!(server.get("node a").unwrap()["metadata"]["labels"], json!({"x": "1"}));
    assert!(server.transactions().is_empty());
}
