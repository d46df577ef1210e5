//! What cannot be read is refused with a reason; what can is kept to the byte.

use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use expect_test::expect;
use prost::Message;

use super::*;
use crate::core::status::{Queued, QueuedReason, Running};
use crate::wire;

const ID: &str = "0190a7e6-8c00-7d3e-8000-00000000002a";
const NODE: &str = "6f1c83a2-52d7-4e0e-9b5d-0c2f7a4190e6";

fn task() -> Task {
    let spec = wire::TaskSpec { command: "true".to_owned(), ..Default::default() };
    let spec = Bytes::from(spec.encode_to_vec());
    Task {
        id: ID.parse().unwrap(),
        schema: SCHEMA,
        spec_hash: SpecHash::of(&spec),
        spec,
        status: Status::Queued(Queued { not_before: None, reason: QueuedReason::Submitted }),
        attempts: Vec::new(),
        counters: Counters::default(),
        write_id: NODE.parse().unwrap(),
        submitted_at: Timestamp::from_second(1_700_000_000).unwrap(),
        submitted_by: "tests".to_owned(),
    }
}

fn running() -> Task {
    let attempt = Attempt {
        number: AttemptNumber(3),
        node: NODE.parse().unwrap(),
        host: NODE.parse().unwrap(),
        node_name: "node1".to_owned(),
        fence: Fence(0),
        start: Timestamp::UNIX_EPOCH,
        end: None,
        cause: None,
        usage: Usage::default(),
    };
    let since = Timestamp::UNIX_EPOCH;
    let status = Status::Running(Running { node: attempt.node, attempt: attempt.number, since });
    Task { status, attempts: vec![attempt], ..task() }
}

fn kept(key: &str, value: &[u8]) -> KeyValue {
    let (mod_revision, create_revision) = (7, 5);
    let parts = KeyValueParts {
        key: key.as_bytes(),
        value,
        mod_revision,
        create_revision,
        ..Default::default()
    };
    KeyValue::new(&parts)
}

fn decode(message: &wire::Task) -> Result<Record, RecordError> {
    Record::decode(&kept(&format!("/task/{ID}"), &message.encode_to_vec()))
}

/// Why the task is refused after this was done to its message.
fn refusal(task: &Task, harm: impl FnOnce(&mut wire::Task)) -> String {
    let mut message = task.to_message();
    harm(&mut message);
    format!("{}\n", decode(&message).unwrap_err())
}

#[test]
fn what_was_written_is_read() {
    for task in [task(), running()] {
        let record = decode(&task.to_message()).unwrap();
        let expected = Record::new(task, Revision(7), Revision(5));
        assert_eq!(record, expected);
    }
}

#[test]
fn a_claim_has_its_own_revision_as_fence() {
    let record = decode(&running().to_message()).unwrap();
    assert_eq!(record.task.last_attempt().unwrap().fence, Fence(7));
}

#[test]
fn unmarshal_invalid_task_errors() {
    let garbage = Record::decode(&kept(&format!("/task/{ID}"), b"\xff\xff\xff"));
    assert!(matches!(garbage, Err(RecordError::Unparsable { .. })), "{garbage:?}");

    let told = [
        refusal(&task(), |message| *message = wire::Task::default()),
        refusal(&task(), |message| message.schema = 0),
        refusal(&task(), |message| message.status = None),
        refusal(&task(), |message| message.status = Some(wire::Status { status: None })),
        refusal(&task(), |message| message.write_id.clear()),
        refusal(&task(), |message| message.write_id = "x".to_owned()),
        refusal(&task(), |message| message.submitted_at_ms = i64::MAX),
        refusal(&task(), |message| message.spec = Bytes::from_static(b"other")),
        refusal(&task(), |message| message.spec_hash.clear()),
        refusal(&running(), |message| message.attempts.clear()),
        refusal(&running(), |message| message.attempts[0].cause = 99),
        refusal(&running(), |message| message.attempts[0].host_id.clear()),
    ];
    expect![[r#"
        0190a7e6-8c00-7d3e-8000-00000000002a has no id
        0190a7e6-8c00-7d3e-8000-00000000002a has no schema
        0190a7e6-8c00-7d3e-8000-00000000002a has no status
        0190a7e6-8c00-7d3e-8000-00000000002a has no status
        0190a7e6-8c00-7d3e-8000-00000000002a has no write_id
        0190a7e6-8c00-7d3e-8000-00000000002a: write_id is no id
        0190a7e6-8c00-7d3e-8000-00000000002a: submitted_at_ms is 9223372036854775807, which means nothing
        0190a7e6-8c00-7d3e-8000-00000000002a: the spec does not have the hash it was submitted with
        0190a7e6-8c00-7d3e-8000-00000000002a: the spec does not have the hash it was submitted with
        0190a7e6-8c00-7d3e-8000-00000000002a has no attempt that runs
        0190a7e6-8c00-7d3e-8000-00000000002a: attempts.cause is 99, which means nothing
        0190a7e6-8c00-7d3e-8000-00000000002a has no attempts.host_id
    "#]].assert_eq(&told.concat());
}

#[test]
fn unmarshal_mismatched_id_errors() {
    let other = "0190a7e6-8c00-7d3e-8000-0000000000ff";
    let refused = Record::decode(&kept(&format!("/task/{other}"), &task().encode()));
    let (key, id) = (other.parse().unwrap(), ID.parse().unwrap());
    assert_eq!(refused, Err(RecordError::MismatchedId { key, id }));

    let status_key = format!("/task/status/queued/{ID}");
    let refused = Record::decode(&kept(&status_key, &task().encode()));
    assert!(matches!(refused, Err(RecordError::NotATask(_))), "{refused:?}");
}

#[test]
fn a_newer_schema_is_told_from_damage() {
    let newer = |harm: fn(&mut wire::Task)| {
        refusal(&running(), |message| {
            message.schema = SCHEMA + 1;
            harm(message);
        })
    };
    let told =
        [newer(|message| message.status = None), newer(|message| message.attempts[0].cause = 99)];
    expect![[r#"
        0190a7e6-8c00-7d3e-8000-00000000002a has schema 2, newer than 1, and cannot be read
        0190a7e6-8c00-7d3e-8000-00000000002a has schema 2, newer than 1, and cannot be read
    "#]]
    .assert_eq(&told.concat());
    let readable = Task { schema: SCHEMA + 1, ..task() };
    assert_eq!(decode(&readable.to_message()).unwrap().task, readable);
}

/// A newer client's fields survive every rewrite, because the spec is never decoded and encoded.
#[test]
fn spec_bytes_are_untouched() {
    let unknown_field: &[u8] = &[0xf8, 0x3f, 1];
    let spec = Bytes::from([&task().spec[..], unknown_field].concat());
    let task = Task { spec_hash: SpecHash::of(&spec), spec: spec.clone(), ..task() };
    let read = decode(&task.to_message()).unwrap().task;
    assert_eq!(read.encode(), task.encode());
    assert_eq!(read.spec, spec);
    assert_eq!(read.decode_spec().unwrap().command, "true");
}

#[test]
fn cutting_keeps_characters_whole() {
    assert_eq!(cut("añb", 2), "a");
    assert_eq!(cut("añb", 3), "añ");
    assert_eq!(cut("añb", 9), "añb");
}
