//! The JSON gateway. What etcd 3.7.1 answers to the same text is the model, but for white space,
//! which it varies, and the wording of malformed values.

use expect_test::{Expect, expect};
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::client::{ask, request};
use super::server::Server;

async fn check(line: &str, headers: &[(&str, &str)], body: &str, expected: &Expect) {
    let server = Server::plain().await;
    expected.assert_eq(&ask(server.address(), request(line, headers, body)).await);
}

/// Asks for each line and body, and lists status and body of the answers.
async fn check_refusals(asked: &[(&str, &str)], expected: &Expect) {
    let server = Server::plain().await;
    let mut refusals = String::new();
    for (line, body) in asked {
        let answer = ask(server.address(), request(line, &[], body)).await;
        let (head, body) = answer.split_once("\n\n").expect("an answer has a head and a body");
        let status = head.lines().next().unwrap_or_default();
        refusals += &format!("{status}: {body}\n");
    }
    expected.assert_eq(&refusals);
}

#[tokio::test]
async fn one_message_there_one_back() {
    let answer = expect![[r#"
        200 OK
        content-type: application/json

        {"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"3","version":"1","value":"bm9ib2R5IG5vbmU="}],"count":"1"}"#]];
    for line in ["POST /v3/kv/range", "POST /v3beta/kv/range", "POST /v3/kv/range?ignored"] {
        check(line, &[], r#"{"key":"Zm9v"}"#, &answer).await;
    }
    // What follows the first message, and fields nobody knows, are ignored.
    check("POST /v3/kv/range", &[], r#"{"key":"Zm9v"} x"#, &answer).await;
    check("POST /v3/kv/range", &[], r#"{"nix":[1],"key":"Zm9v"}"#, &answer).await;
    // So is what the client calls it.
    check(
        "POST /v3/kv/range",
        &[("content-type", "application/grpc")],
        r#"{"key":"Zm9v"}"#,
        &answer,
    )
    .await;
}

#[tokio::test]
async fn old_and_new_names_of_leases() {
    let answer = expect![[r#"
        200 OK
        content-type: application/json

        {"ID":"7","TTL":"-1"}"#]];
    for path in ["/v3/lease/timetolive", "/v3/kv/lease/timetolive"] {
        check(&format!("POST {path}"), &[], r#"{"ID":"7"}"#, &answer).await;
    }
    check(
        "POST /v3/lease/grant",
        &[],
        r#"{"TTL":60,"ID":"7"}"#,
        &expect![[r#"
            200 OK
            content-type: application/json

            {"ID":"7","TTL":"60"}"#]],
    )
    .await;
}

/// What etcd's library takes beyond the rules: nulls, whole numbers with a fraction of zero, and
/// enums that nobody knows.
#[tokio::test]
async fn loose_values() {
    let found = expect![[r#"
        200 OK
        content-type: application/json

        {"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"3","version":"1","value":"bm9ib2R5IG5vbmU="}],"count":"1"}"#]];
    for field in [
        r#""limit":null"#,
        r#""sort_order":null"#,
        r#""limit":1.0"#,
        r#""limit":1e0"#,
        r#""limit":-0"#,
        r#""sort_order":1.0"#,
        r#""sort_order":"NIX""#,
        r#""sort_order":99"#,
    ] {
        let body = format!(r#"{{"key":"Zm9v",{field}}}"#);
        check("POST /v3/kv/range", &[], &body, &found).await;
    }
    let refused = ["1.5", "9223372036854775808", "[null]", "{}"];
    for value in refused {
        let server = Server::plain().await;
        let body = format!(r#"{{"key":"Zm9v","limit":{value}}}"#);
        let answer = ask(server.address(), request("POST /v3/kv/range", &[], &body)).await;
        assert!(answer.starts_with("400 Bad Request"), "{value}: {answer}");
    }
}

/// The values are base64 of who asked, and the token.
#[tokio::test]
async fn tokens_reach_the_service() {
    for (header, value) in [
        ("authorization", "bm9ib2R5IHNlY3JldA=="),
        ("grpc-metadata-token", "bm9ib2R5IHNlY3JldA=="),
        ("token", "bm9ib2R5IG5vbmU="),
    ] {
        let server = Server::plain().await;
        let asked = request("POST /v3/kv/range", &[(header, "secret")], r#"{"key":"Zm9v"}"#);
        let answer = ask(server.address(), asked).await;
        assert!(answer.contains(&format!(r#""value":"{value}""#)), "{header}: {answer}");
    }
}

#[tokio::test]
async fn refusals() {
    check_refusals(
        &[
            ("POST /v3/kv/range", ""),
            ("POST /v3/kv/range", "{}"),
            ("POST /v3/kv/compaction", "{}"),
            ("POST /v3/lease/revoke", r#"{"ID":"7"}"#),
            ("POST /v3/kv/deleterange", "{}"),
            ("POST /v3/lock/lock", "{}"),
            ("GET /v3/kv/range", ""),
            ("PUT /v3/kv/range", "{}"),
            ("POST /v3/", "{}"),
            ("GET /v3/nope", ""),
            ("POST /v3/kv/range/", "{}"),
        ],
        &expect![[r#"
            400 Bad Request: {"code":3,"message":"etcdserver: key is not provided"}
            400 Bad Request: {"code":3,"message":"etcdserver: key is not provided"}
            400 Bad Request: {"code":11,"message":"etcdserver: mvcc: required revision is a future revision"}
            404 Not Found: {"code":5,"message":"etcdserver: requested lease not found"}
            401 Unauthorized: {"code":16,"message":"etcdserver: invalid auth token"}
            501 Not Implemented: {"code":12,"message":"unknown service v3lockpb.Lock"}
            501 Not Implemented: {"code":12,"message":"Method Not Allowed"}
            501 Not Implemented: {"code":12,"message":"Method Not Allowed"}
            404 Not Found: {"code":5,"message":"Not Found"}
            404 Not Found: {"code":5,"message":"Not Found"}
            404 Not Found: {"code":5,"message":"Not Found"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_missing_token_is_asked_for() {
    let challenge = expect![[r#"
        401 Unauthorized
        content-type: application/json
        www-authenticate: etcdserver: invalid auth token

        {"code":16,"message":"etcdserver: invalid auth token"}"#]];
    check("POST /v3/kv/deleterange", &[], "{}", &challenge).await;
}

#[tokio::test]
async fn malformed_messages() {
    let line = "POST /v3/kv/range";
    check_refusals(
        &[
            (line, "hello"),
            (line, r#"{"key":"Zm9v""#),
            (line, r#"{"key":"Zm9v","key":"Zm9v"}"#),
            (line, r#"{"key":"Zm9v",}"#),
            (line, r#"{"key":1}"#),
            (line, r#"{"key":"*"}"#),
            (line, r#"{"key":"Zm9v","limit":"x"}"#),
            (line, "[]"),
            (line, "null"),
            ("POST /v3/maintenance/snapshot", "{]"),
        ],
        &expect![[r#"
            400 Bad Request: {"code":3,"message":"invalid character 'h' looking for beginning of value"}
            400 Bad Request: {"code":3,"message":"unexpected EOF"}
            400 Bad Request: {"code":3,"message":"proto: (line 1:19): duplicate field \"key\""}
            400 Bad Request: {"code":3,"message":"proto: syntax error (line 1:15): trailing comma"}
            400 Bad Request: {"code":3,"message":"proto: (line 1:8): invalid value for field key: invalid type: integer \"1\", expected a base64 string"}
            400 Bad Request: {"code":3,"message":"proto: (line 1:10): invalid value for field key: Invalid symbol 42, offset 0."}
            400 Bad Request: {"code":3,"message":"proto: (line 1:26): invalid value for field limit: invalid digit found in string"}
            400 Bad Request: {"code":3,"message":"proto: (line 1:2): invalid type: sequence, expected struct etcdserverpb.RangeRequest"}
            400 Bad Request: {"code":3,"message":"proto: (line 1:4): invalid type: null, expected struct etcdserverpb.RangeRequest"}
            400 Bad Request: {"code":3,"message":"proto: syntax error (line 1:2): key must be a string"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn requests_above_the_limit() {
    let large = format!(r#"{{"key":"Zm9v","value":"{}"}}"#, "AAAA".repeat(800_000));
    let endless = " ".repeat(9 * 1024 * 1024);
    check_refusals(
        &[("POST /v3/kv/put", &large), ("POST /v3/kv/put", &endless)],
        &expect![[r#"
            429 Too Many Requests: {"code":8,"message":"grpc: received message larger than max (2400010 vs. 2097152)"}
            429 Too Many Requests: {"code":8,"message":"grpc: received message larger than max (8388608 vs. 2097152)"}
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline() {
    let late = expect![[r#"
        504 Gateway Timeout
        content-type: application/json

        {"code":4,"message":"context deadline exceeded"}"#]];
    check("POST /v3/kv/txn", &[("grpc-timeout", "100m")], "{}", &late).await;
    for nonsense in ["nix", "", "S", "-1S", "1é"] {
        let server = Server::plain().await;
        let asked = request("POST /v3/kv/txn", &[("grpc-timeout", nonsense)], "{}");
        let answer = ask(server.address(), asked).await;
        assert!(answer.contains(r#"{"code":3,"message":"invalid grpc-timeout: "#), "{answer}");
    }
}

#[tokio::test]
async fn streams_are_lines() {
    let line = "POST /v3/lease/keepalive";
    check(
        line,
        &[],
        r#"{"ID":"7"} {"ID":8}"#,
        &expect![[r#"
        200 OK
        content-type: application/json

        {"result":{"ID":"7","TTL":"60"}}
        {"result":{"ID":"8","TTL":"60"}}
    "#]],
    )
    .await;
    check(
        line,
        &[],
        r#"{"ID":"7"}{"ID":"x"}{"ID":"8"}"#,
        &expect![[r#"
        200 OK
        content-type: application/json

        {"result":{"ID":"7","TTL":"60"}}
    "#]],
    )
    .await;
    check(
        line,
        &[],
        r#"{"ID":"7"}{"ID":"-13"}"#,
        &expect![[r#"
        200 OK
        content-type: application/json

        {"result":{"ID":"7","TTL":"60"}}
        {"error":{"code":14,"message":"etcdserver: no leader"}}
    "#]],
    )
    .await;
    check(
        line,
        &[],
        r#"{"ID":"-13"}"#,
        &expect![[r#"
        503 Service Unavailable
        content-type: application/json

        {"error":{"code":14,"message":"etcdserver: no leader"}}
    "#]],
    )
    .await;
    for nothing in ["", "{"] {
        check(line, &[], nothing, &expect!["200 OK\n\n"]).await;
    }
}

/// The first answer comes while the request is still open: a watch never ends its request.
#[tokio::test]
async fn a_stream_answers_before_its_request_ends() {
    let server = Server::plain().await;
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let (mut text, body) = http_body_util::channel::Channel::<bytes::Bytes>::new(1);
    let asked = http::Request::post("/v3/lease/keepalive").header("host", "localhost").body(body);
    let answered = sender.send_request(asked.unwrap());
    let sent = async {
        for part in [r#"{"I"#, r#"D":"7"}"#] {
            text.send_data(part.into()).await.unwrap();
        }
    };
    let (answered, ()) = tokio::join!(answered, sent);
    let mut body = answered.unwrap().into_body();
    let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&line[..], b"{\"result\":{\"ID\":\"7\",\"TTL\":\"60\"}}\n");
    text.send_data(r#"{"ID":"8"}"#.into()).await.unwrap();
    let line = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(&line[..], b"{\"result\":{\"ID\":\"8\",\"TTL\":\"60\"}}\n");
    drop(text);
    assert!(body.frame().await.is_none());
}
