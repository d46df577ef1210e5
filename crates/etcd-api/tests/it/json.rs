//! The JSON that etcd's gateway speaks.

use etcd_api::authpb::Permission;
use etcd_api::etcdserverpb::watch_create_request::FilterType;
use etcd_api::etcdserverpb::{
    Compare, LeaseGrantRequest, Member, RangeRequest, RequestOp, ResponseHeader, TxnRequest,
    WatchCreateRequest, WatchResponse, compare, request_op,
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

/// An enum's number is kept without a name of ours, and a name that nobody knows is no value.
#[test]
fn enums_are_open() {
    let sort_order = |json: &str| {
        let read: RangeRequest = serde_json::from_str(&format!(r#"{{"sort_order":{json}}}"#))?;
        Ok::<_, serde_json::Error>(read.sort_order)
    };
    for (json, number) in [(r#""DESCEND""#, 2), ("2", 2), ("99", 99), ("-1", -1), (r#""NIX""#, 0)] {
        assert_eq!(sort_order(json).unwrap(), number, "{json}");
    }
    for json in ["true", "1.5", "3000000000", "[1]"] {
        assert!(sort_order(json).is_err(), "{json} was read");
    }
    let filters = r#"{"filters":["NIX","NODELETE",7]}"#;
    let read: WatchCreateRequest = serde_json::from_str(filters).unwrap();
    assert_eq!(read.filters, [FilterType::Nodelete as i32, 7]);
    check(&read, expect![[r#"{"filters":["NODELETE",7]}"#]]);
    check(&Permission { perm_type: 42, ..Default::default() }, expect![[r#"{"permType":42}"#]]);
}
