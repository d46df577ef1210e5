use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::pages::Pages;
use super::{Health, Options, Service};
use crate::metrics::{Asked, Requests};

async fn check(health: &Health, method: &str, target: &str, expected: Expect) {
    let mut registry = Registry::with_prefix("windlass_labels");
    let asked = Asked { verb: "list", resource: "nodes".to_owned(), namespace: String::new() };
    Requests::register(&mut registry).begin(asked).answered(StatusCode::OK);
    let pages = Pages {
        health: health.clone(),
        registry: Arc::new(registry),
        answers: None,
        live_alias: Some("/health-check"),
    };
    let request = Request::builder().method(method).uri(target).body(()).unwrap();
    let (head, body) = pages.answer(&request).into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    expected.assert_eq(&format!("{}\n{text}", head.status.as_u16()));
}

#[tokio::test(start_paused = true)]
async fn another_name_asks_the_same() {
    let health = Health::default();
    let turning = health.live("activity");
    health.ready("watches").fail("no list yet");
    check(&health, "GET", "/health-check", expect!["503\n[-]activity failed: not yet known\n"])
        .await;
    turning.pass();
    check(&health, "GET", "/health-check", expect!["200\nok\n"]).await;
    let other = expect!["404\ntry /livez, /readyz or /metrics\n"];
    check(&health, "GET", "/health-check/activity", other).await;
}

#[tokio::test(start_paused = true)]
async fn one_failed_check_is_told_by_name() {
    let health = Health::default();
    let access = health.ready("access");
    let synced = health.ready("watch-synced");
    synced.pass();
    check(
        &health,
        "GET",
        "/readyz",
        expect![[r#"
        503
        [-]access failed: not yet known
        [+]watch-synced ok
    "#]],
    )
    .await;
    access.fail("cannot list nodes");
    check(
        &health,
        "GET",
        "/readyz/access",
        expect![[r#"
        503
        [-]access failed: cannot list nodes
    "#]],
    )
    .await;
    access.pass();
    check(&health, "GET", "/readyz", expect!["200\nok\n"]).await;
    check(
        &health,
        "GET",
        "/readyz?verbose",
        expect![[r#"
        200
        [+]access ok
        [+]watch-synced ok
        ok
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_nobody_meets_any_more_is_over() {
    let health = Health::default();
    let writes = health.ready("writes");
    writes.fail_for(Duration::from_secs(60), "this account may not");
    tokio::time::advance(Duration::from_secs(59)).await;
    let failing = || expect!["503\n[-]writes failed: this account may not\n"];
    check(&health, "GET", "/readyz", failing()).await;
    writes.fail_for(Duration::from_secs(60), "this account may not");
    tokio::time::advance(Duration::from_secs(59)).await;
    check(&health, "GET", "/readyz", failing()).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    check(&health, "GET", "/readyz", expect!["200\nok\n"]).await;
}

#[tokio::test(start_paused = true)]
async fn silence_fails_what_must_keep_happening() {
    let health = Health::default();
    let events = health.live("events");
    events.pass_for(Duration::from_secs(90));
    tokio::time::advance(Duration::from_millis(89_999)).await;
    check(&health, "GET", "/livez", expect!["200\nok\n"]).await;
    tokio::time::advance(Duration::from_millis(1)).await;
    check(&health, "GET", "/livez", expect!["503\n[-]events failed: silent for 90 s\n"]).await;
    events.pass_for(Duration::from_secs(90));
    check(&health, "GET", "/livez", expect!["200\nok\n"]).await;
    check(&health, "GET", "/readyz?verbose", expect!["200\nok\n"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_not_well() {
    let health = Health::default();
    for path in ["/readyz/unknown", "/readyzz", "/"] {
        check(&health, "GET", path, expect!["404\ntry /livez, /readyz or /metrics\n"]).await;
    }
    check(&health, "POST", "/livez", expect!["405\nonly GET\n"]).await;
}

#[tokio::test(start_paused = true)]
async fn metrics_have_the_prefix_of_the_registry() {
    check(
        &Health::default(),
        "GET",
        "/metrics",
        expect![[r#"
            200
            # HELP windlass_labels_api_requests Requests to the API server, by what they asked and the code of the answer.
            # TYPE windlass_labels_api_requests counter
            windlass_labels_api_requests_total{verb="list",resource="nodes",namespace="",code="200"} 1
            # EOF
        "#]],
    )
    .await;
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_server_answers_past_silent_connections_until_it_is_stopped() {
    let health = Health::default();
    health.live("loop").pass();
    let options = Options { listen: "127.0.0.1:0".parse().unwrap() };
    let service = Service::bind(&options, health, Arc::default()).await.unwrap();
    let (address, shutdown) = (service.address(), CancellationToken::new());
    let asked = async {
        let silent = TcpStream::connect(address).await.unwrap();
        assert_eq!(get(address, "/livez").await, "HTTP/1.1 200 OK");
        assert_eq!(get(address, "/nothing").await, "HTTP/1.1 404 Not Found");
        drop(silent);
        shutdown.cancel();
    };
    tokio::join!(service.run(shutdown.clone()), asked);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let options = Options { listen: "127.0.0.1:0".parse().unwrap() };
    let first = Service::bind(&options, Health::default(), Arc::default()).await.unwrap();
    let options = Options { listen: first.address() };
    let second = Service::bind(&options, Health::default(), Arc::default()).await;
    let message = second.err().unwrap().to_string();
    assert!(message.contains(&first.address().to_string()), "{message}");
}
