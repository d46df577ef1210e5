//! Clients that are slow, silent, gone or confused. Time is paused: what waits is over at once.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{ask, request};
use super::server::Server;

/// The HTTP/2 preface and empty settings: a client that then says nothing.
const HTTP2_OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const PING: u8 = 6;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

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

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[0, 0, length, kind, flags, 0, 0, 0, stream][..], content].concat()
}

/// The kinds of the frames that come up to the answer to a ping.
async fn frames_before_pong(stream: &mut TcpStream) -> Vec<u8> {
    stream.write_all(&frame(PING, 0, 0, b"anybody?")).await.unwrap();
    let mut kinds = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut content = vec![0; length as usize];
        stream.read_exact(&mut content).await.unwrap();
        if head[3..5] == [PING, ACK] {
            return kinds;
        }
        kinds.push(head[3]);
    }
}

/// What needs no body was answered before it had come, and its stream was reset under the client's
/// hands: a third of curl's requests that the gateway refused ended without an answer.
#[tokio::test]
async fn a_request_was_cut_off_because_its_answer_did_not_need_it() {
    let server = Server::plain().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(HTTP2_OPENING).await.unwrap();
    // POST /nope, of the host x: names from the table, and two short texts.
    let head = b"\x83\x86\x04\x05/nope\x01\x01x";
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, head)).await.unwrap();
    let mut told = frames_before_pong(&mut stream).await;
    stream.write_all(&frame(DATA, END_STREAM, 1, b"{}")).await.unwrap();
    while !told.contains(&DATA) {
        told.extend(frames_before_pong(&mut stream).await);
    }
    told.extend(frames_before_pong(&mut stream).await);
    assert!(told.contains(&HEADERS) && !told.contains(&RST_STREAM), "{told:?}");
}

/// gRPC needs HTTP/2; whoever sends it over HTTP/1 is told so by the HTTP side.
#[tokio::test]
async fn grpc_over_http1() {
    let server = Server::plain().await;
    let grpc = request("POST /etcdserverpb.KV/Range", &[("content-type", "application/grpc")], "x");
    let answer = ask(server.address(), grpc).await;
    assert!(answer.starts_with("404 Not Found"), "{answer}");
}
