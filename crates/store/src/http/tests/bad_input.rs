//! Clients that are slow, silent, gone or confused. Time is paused: what waits is over at once.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{ask, request};
use super::server::Server;

/// The HTTP/2 preface and empty settings: a client that then says nothing.
const HTTP2_OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Sends bytes, then nothing, and returns what came back before the server closed.
async fn check_closes(sent: &[u8]) -> Vec<u8> {
    let server = Server::plain().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    let healthy = ask(server.address(), request("GET /health", &[], "")).await;
    assert!(healthy.starts_with("200 OK"), "others are served: {healthy}");
    received
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing() {
    assert_eq!(check_closes(b"").await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_in_the_preface() {
    assert_eq!(check_closes(b"PRI * HT").await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_in_the_head() {
    check_closes(b"POST /v3/kv/range HTTP/1.1\r\nhost: x\r\nconte").await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_no_ping() {
    let received = check_closes(HTTP2_OPENING).await;
    assert!(!received.is_empty(), "settings and a ping are sent before");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_no_http() {
    let received = check_closes(b"\x16\x03\x01 hello over TLS\r\n\r\n").await;
    assert!(received.starts_with(b"HTTP/1.1 400 "), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end() {
    let head = format!("GET /health HTTP/1.1\r\nx: {}", "y".repeat(100_000));
    let received = check_closes(head.as_bytes()).await;
    assert!(received.starts_with(b"HTTP/1.1 431 "), "{:?}", String::from_utf8_lossy(&received));
}

/// gRPC needs HTTP/2; whoever sends it over HTTP/1 is told so by the HTTP side.
#[tokio::test]
async fn grpc_over_http1() {
    let server = Server::plain().await;
    let grpc = request("POST /etcdserverpb.KV/Range", &[("content-type", "application/grpc")], "x");
    let answer = ask(server.address(), grpc).await;
    assert!(answer.starts_with("404 Not Found"), "{answer}");
}
