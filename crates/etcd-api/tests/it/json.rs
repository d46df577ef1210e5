//! The JSON that etcd's gateway speaks.

use etcd_api::etcdserverpb::{
    Compare, LeaseGrantRequest, Member, RangeRequest, RequestOp, ResponseHeader, TxnRequest,
    WatchResponse, compare, request_op,
};
use etcd_api::mvccpb::{Event, EventType, KeyValue, KeyValueParts};
use expect_test::{Expect, expect};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes the message as JSON, and reads it back.
fn check<M>(message: &M, expected: Expect)
where
    M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let json = serde_json::to_string(message).expect("every message has a JSON form");
    expected.assert_eq(&json);
    let read: M = serde_json::from_str(&json).expect("what was written can be read");
    assert_eq!(&read, message);
}

fn kv() -> KeyValue {
    KeyValue::new(&KeyValueParts {
        key: b"k",
        create_revision: 2,
        mod_revision: 9_007_199_254_740_993,
        version: 4,
        value: b"\xff\xfe",
        lease: -1,
    })
}

#[test]
fn key_value() {
    check(
        &kv(),
        expect![[
            r#"{"key":"aw==","create_revision":"2","mod_revision":"9007199254740993","version":"4","value":"//4=","lease":"-1"}"#
        ]],
    );
    check(&KeyValue::default(), expect!["{}"]);
}

#[test]
fn event() {
    check(
        &Event::new(EventType::Put, &kv().without_value(), None),
        expect![[
            r#"{"kv":{"key":"aw==","create_revision":"2","mod_revision":"9007199254740993","version":"4","lease":"-1"}}"#
        ]],
    );
    check(
        &Event::new(EventType::Delete, &KeyValue::tombstone(b"k", 3), Some(&KeyValue::default())),
        expect![[r#"{"type":"DELETE","kv":{"key":"aw==","mod_revision":"3"},"prev_kv":{}}"#]],
    );
    check(&Event::default(), expect!["{}"]);
}

#[test]
fn messages() {
    check(
        &WatchResponse {
            header: Some(ResponseHeader {
                cluster_id: u64::MAX,
                revision: 7,
                ..Default::default()
            }),
            created: true,
            events: vec![Event::new(EventType::Put, &KeyValue::tombstone(b"k", 7), None)],
            ..Default::default()
        },
        expect![[
            r#"{"header":{"cluster_id":"18446744073709551615","revision":"7"},"created":true,"events":[{"kv":{"key":"aw==","mod_revision":"7"}}]}"#
        ]],
    );
    check(
        &TxnRequest {
            compare: vec![Compare {
                result: compare::CompareResult::NotEqual.into(),
                target: compare::CompareTarget::Mod.into(),
                key: "k".into(),
                target_union: Some(compare::TargetUnion::ModRevision(0)),
                ..Default::default()
            }],
            success: vec![RequestOp {
                request: Some(request_op::Request::RequestRange(RangeRequest {
                    key: "k".into(),
                    ..Default::default()
                })),
            }],
            failure: vec![],
        },
        expect![[
            r#"{"compare":[{"result":"NOT_EQUAL","target":"MOD","key":"aw==","mod_revision":"0"}],"success":[{"request_range":{"key":"aw=="}}]}"#
        ]],
    );
    check(
        &Member { id: 1, peer_ur_ls: vec!["http://a:2380".into()], ..Default::default() },
        expect![[r#"{"ID":"1","peerURLs":["http://a:2380"]}"#]],
    );
}

/// Clients also send plain numbers, lowerCamelCase, URL-safe base64 without padding, and fields
/// that this version does not know.
#[test]
fn lenient_reading() {
    let read: KeyValue =
        serde_json::from_str(r#"{"key":"_-8","modRevision":5,"unknown":[1]}"#).unwrap();
    assert_eq!(read, KeyValue::tombstone(b"\xff\xef", 5));

    let read: Event = serde_json::from_str(r#"{"type":1,"prevKv":null}"#).unwrap();
    assert_eq!((read.kind(), read.prev_kv()), (EventType::Delete, None));

    let read: LeaseGrantRequest = serde_json::from_str(r#"{"TTL":10,"ID":"3"}"#).unwrap();
    assert_eq!(read, LeaseGrantRequest { ttl: 10, id: 3 });
}

#[test]
fn what_is_no_key_value_is_refused() {
    for json in [r#"{"key":1}"#, r#"{"key":"*"}"#, r#"{"version":"x"}"#, "[]"] {
        assert!(serde_json::from_str::<KeyValue>(json).is_err(), "{json} was read");
    }
}
