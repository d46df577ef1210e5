use expect_test::expect;
use k8s_openapi::api::core::v1::ObjectReference;

use super::*;

fn options() -> Options {
    Options {
        controller: "windlass.dev/labels".to_owned(),
        instance: "processor-1".to_owned(),
        clock: || jiff::Timestamp::UNIX_EPOCH,
    }
}

fn event(note: &str, namespace: Option<&str>) -> Queued {
    let regarding = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some("worker-7".to_owned()),
        namespace: namespace.map(ToOwned::to_owned),
        ..ObjectReference::default()
    };
    let event = Event {
        regarding,
        severity: Severity::Warning,
        reason: "LateDelete",
        action: "Store",
        note: note.to_owned(),
    };
    Queued { event, happened: jiff::Timestamp::UNIX_EPOCH }
}

#[test]
fn an_event_says_who_reports_what_about_whom() {
    let object = options().object(event("labels of an older node", None));
    expect![[r#"
        {
          "action": "Store",
          "apiVersion": "events.k8s.io/v1",
          "eventTime": "1970-01-01T00:00:00.000000Z",
          "kind": "Event",
          "metadata": {
            "generateName": "worker-7-",
            "namespace": "default"
          },
          "note": "labels of an older node",
          "reason": "LateDelete",
          "regarding": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "worker-7"
          },
          "reportingController": "windlass.dev/labels",
          "reportingInstance": "processor-1",
          "type": "Warning"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&serde_json::to_value(object).unwrap()).unwrap());
}

#[test]
fn events_are_kept_beside_their_object() {
    let namespace = |namespace| options().object(event("", namespace)).metadata.namespace;
    assert_eq!(namespace(Some("apps")).as_deref(), Some("apps"));
    assert_eq!(namespace(Some("")).as_deref(), Some("default"));
}

#[test]
fn a_long_note_is_cut_between_characters() {
    let long = format!("{}é and more", "x".repeat(NOTE_BYTES_MAX - 1));
    let note = options().object(event(&long, None)).note.unwrap();
    assert_eq!(note, "x".repeat(NOTE_BYTES_MAX - 1));
}

#[test]
fn the_longest_name_leaves_room_for_the_dash() {
    let mut queued = event("", None);
    queued.event.regarding.name = Some("n".repeat(NAME_BYTES_MAX));
    let name = options().object(queued).metadata.generate_name.unwrap();
    assert_eq!(name, format!("{}-", "n".repeat(NAME_BYTES_MAX - 1)));
}
