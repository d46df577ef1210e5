//! Bytes that no client library sends: gRPC by hand over HTTP/2. Each is answered as etcd answers it,
//! and the connection it came on goes on to be served.

use bytes::{BufMut, Bytes, BytesMut};
use etcd_api::etcdserverpb::{AuthUserListRequest, PutRequest};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{net::TcpStream, task::JoinSet};

use crate::harness::{Store, soon};

/// A length that runs out of the message, and a field that no wire type can have.
const MALFORMED: &[&[u8]] =
    &[b"\x0a\xff\x01a", b"\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"];

/// A user's name with a byte that is no UTF-8.
const NO_TEXT: &[u8] = b"\x0a\x04ann\xff\x12\x01p";

/// A connection of a client that speaks no gRPC but what it is told.
struct Raw {
    sender: SendRequest<Full<Bytes>>,
    _running: JoinSet<()>,
}

// === impl Raw ===

impl Raw {
    async fn connect(store: &Store) -> Self {
        let stream = TcpStream::connect(store.address()).await.unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.unwrap();
        let mut running = JoinSet::new();
        running.spawn(async move { connection.await.expect("the connection goes on") });
        Self { sender, _running: running }
    }

    /// The code and the words of the answer to one framed message.
    async fn call(&mut self, path: &str, message: &[u8]) -> String {
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(message.len().try_into().unwrap());
        framed.put_slice(message);
        self.send(path, framed.freeze()).await
    }

    /// The same with a body that is no framed message.
    async fn send(&mut self, path: &str, body: Bytes) -> String {
        let request = Request::post(format!("http://localhost{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(body));
        let answer = soon(self.sender.send_request(request.unwrap())).await.unwrap();
        let (head, body) = answer.into_parts();
        let body = soon(body.collect()).await.unwrap();
        outcome(&head.headers).or_else(|| outcome(body.trailers()?)).expect("a call has an outcome")
    }

    async fn expect_served(&mut self) {
        let put = PutRequest { key: "a".into(), ..Default::default() }.encode_to_vec();
        assert_eq!(self.call("/etcdserverpb.KV/Put", &put).await, "0");
    }
}

fn outcome(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let code = text("grpc-status")?;
    Some(text("grpc-message").map_or(code.clone(), |message| format!("{code} {message}")))
}

/// `Internal`, as of etcd's gRPC library.
#[tokio::test]
async fn malformed_messages() {
    let store = Store::start().await;
    let mut raw = Raw::connect(&store).await;
    for path in ["/etcdserverpb.KV/Range", "/etcdserverpb.Watch/Watch", "/etcdserverpb.KV/Txn"] {
        for message in MALFORMED {
            let answer = raw.call(path, message).await;
            assert!(answer.starts_with("13 "), "{path} {message:?}: {answer}");
            raw.expect_served().await;
        }
    }
}

#[tokio::test]
async fn a_message_above_the_limit() {
    let store = Store::start().await;
    let mut raw = Raw::connect(&store).await;
    let answer = raw.call("/etcdserverpb.KV/Put", &vec![0; 2 * 1024 * 1024 + 1]).await;
    let told = "8 grpc:%20received%20message%20larger%20than%20max%20(2097153%20vs.%202097152)";
    assert_eq!(answer, told);
    raw.expect_served().await;
}

/// A length that is announced and never sent takes no room: it is refused before anything is read.
#[tokio::test]
async fn a_message_that_says_it_is_huge() {
    let store = Store::start().await;
    let mut raw = Raw::connect(&store).await;
    let body = Bytes::from_static(b"\0\xff\xff\xff\xff");
    let answer = raw.send("/etcdserverpb.KV/Put", body).await;
    assert!(answer.starts_with("8 grpc:%20received%20message%20larger%20than%20max"), "{answer}");
    raw.expect_served().await;
}

#[tokio::test]
async fn a_message_that_ends_too_soon() {
    let store = Store::start().await;
    let mut raw = Raw::connect(&store).await;
    let answer = raw.send("/etcdserverpb.KV/Put", Bytes::from_static(b"\0\0\0\0\x09ab")).await;
    assert!(answer.starts_with("13 "), "{answer}");
    raw.expect_served().await;
}

/// Nobody is added, and `Internal` is told, as of etcd's gRPC library.
#[tokio::test]
async fn a_user_name_that_is_no_text() {
    let store = Store::start().await;
    let mut raw = Raw::connect(&store).await;
    let answer = raw.call("/etcdserverpb.Auth/UserAdd", NO_TEXT).await;
    assert!(answer.starts_with("13 "), "{answer}");
    raw.expect_served().await;
    let mut clients = store.clients().await;
    let users = clients.auth.user_list(AuthUserListRequest {}).await.unwrap().into_inner().users;
    assert_eq!(users, Vec::<String>::new());
}
