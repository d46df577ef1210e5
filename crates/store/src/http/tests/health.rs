//! Health, version and metrics, word for word as etcd 3.7 answers.

use etcd_api::etcdserverpb::AlarmType;
use expect_test::{Expect, expect};
use tonic::Status;

use super::client::{ask, request};
use super::server::{Server, options, tcp};

async fn check(server: &Server, line: &str, expected: &Expect) {
    expected.assert_eq(&ask(server.address(), request(line, &[], "")).await);
}

#[tokio::test]
async fn a_well_store() {
    let server = Server::plain().await;
    let healthy = expect![[r#"
        200 OK
        content-type: text/plain; charset=utf-8

        {"health":"true","reason":""}"#]];
    check(&server, "GET /health", &healthy).await;
    check(&server, "GET /health?serializable=true", &healthy).await;
    check(&server, "GET /health?exclude=NOSPACE", &healthy).await;
    let ok = expect![[r#"
        200 OK
        content-type: text/plain; charset=utf-8
        x-content-type-options: nosniff

        ok
    "#]];
    for path in ["/livez", "/livez/serializable_read", "/readyz", "/readyz/linearizable_read"] {
        check(&server, &format!("GET {path}"), &ok).await;
    }
    check(
        &server,
        "GET /readyz?verbose&exclude=non_learner&exclude=nothing_we_know",
        &expect![[r#"
            200 OK
            content-type: text/plain; charset=utf-8
            x-content-type-options: nosniff

            [+]data_corruption ok
            [+]serializable_read ok
            [+]linearizable_read ok
            ok
        "#]],
    )
    .await;
    check(
        &server,
        "GET /version",
        &expect![[r#"
            200 OK
            content-type: application/json

            {"etcdserver":"3.7.1","etcdcluster":"3.7.0","storage":"3.7.0"}"#]],
    )
    .await;
}

#[tokio::test]
async fn an_alarm() {
    let server = Server::plain().await;
    *server.health.alarms.lock() = vec![AlarmType::Corrupt];
    check(
        &server,
        "GET /health",
        &expect![[r#"
            503 Service Unavailable
            content-type: text/plain; charset=utf-8
            x-content-type-options: nosniff

            {"health":"false","reason":"ALARM CORRUPT"}
        "#]],
    )
    .await;
    check(
        &server,
        "GET /health?exclude=CORRUPT",
        &expect![[r#"
            200 OK
            content-type: text/plain; charset=utf-8

            {"health":"true","reason":""}"#]],
    )
    .await;
    check(
        &server,
        "GET /readyz",
        &expect![[r#"
            503 Service Unavailable
            content-type: text/plain; charset=utf-8
            x-content-type-options: nosniff

            [-]data_corruption failed: alarm activated: CORRUPT
            [+]serializable_read ok
            [+]linearizable_read ok
            [+]non_learner ok

        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_read_that_fails() {
    let server = Server::plain().await;
    let failure = Status::unavailable("etcdserver: request timed out");
    *server.health.linearizable_failure.lock() = Some(failure);
    check(
        &server,
        "GET /health",
        &expect![[r#"
            503 Service Unavailable
            content-type: text/plain; charset=utf-8
            x-content-type-options: nosniff

            {"health":"false","reason":"RANGE ERROR:etcdserver: request timed out"}
        "#]],
    )
    .await;
    check(
        &server,
        "GET /readyz/linearizable_read",
        &expect![[r#"
            503 Service Unavailable
            content-type: text/plain; charset=utf-8
            x-content-type-options: nosniff

            [-]linearizable_read failed: etcdserver: request timed out

        "#]],
    )
    .await;
    let local = ask(server.address(), request("GET /health?serializable=true", &[], "")).await;
    assert!(local.starts_with("200 OK"), "{local}");
}

#[tokio::test]
async fn what_is_not_there() {
    let server = Server::plain().await;
    let missing = expect![[r#"
        404 Not Found
        content-type: text/plain; charset=utf-8
        x-content-type-options: nosniff

        404 page not found
    "#]];
    for line in ["GET /", "GET /nope", "GET /livez/nope", "GET /livezy", "POST /v3alpha/kv/range"] {
        check(&server, line, &missing).await;
    }
    check(
        &server,
        "POST /health",
        &expect![[r#"
            405 Method Not Allowed
            content-type: text/plain; charset=utf-8
            allow: GET
            x-content-type-options: nosniff

            Method Not Allowed
        "#]],
    )
    .await;
    check(&server, "OPTIONS /v3/kv/range", &expect!["200 OK\n\n"]).await;
}

/// Monitors that ask for the head alone were told that they must not. etcd answers them here, and only
/// here.
#[tokio::test]
async fn the_head_of_the_metrics_was_refused() {
    let server = Server::plain().await;
    let head = "200 OK\ncontent-type: text/plain; version=0.0.4; charset=utf-8\n\n";
    assert_eq!(ask(server.address(), request("HEAD /metrics", &[], "")).await, head);
    assert!(ask(server.address(), request("HEAD /health", &[], "")).await.starts_with("405"));
}

#[tokio::test]
async fn a_metrics_listener_serves_nothing_else() {
    let mut options = options(Vec::new());
    options.metrics_listeners = vec![tcp(None)];
    let server = Server::start(&options).await;
    check(
        &server,
        "GET /metrics",
        &expect![[r#"
            200 OK
            content-type: text/plain; version=0.0.4; charset=utf-8

        "#]],
    )
    .await;
    for (line, status) in
        [("GET /health", "200"), ("GET /version", "404"), ("POST /v3/kv/range", "404")]
    {
        let answer = ask(server.address(), request(line, &[], "")).await;
        assert!(answer.starts_with(status), "{line}: {answer}");
    }
}
