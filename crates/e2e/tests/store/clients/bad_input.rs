//! Bytes that no client library sends: gRPC by hand over HTTP/2, to etcd and to windlass. Both refuse
//! them with the same code and go on serving the connection.

use anyhow::{Context, Result, ensure};
use bytes::{BufMut, Bytes, BytesMut};
use e2e::scene::suite;
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb::PutRequest;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What is sent, framed, and where.
static BAD: &[(&str, &str, &[u8])] = &[
    ("a length out of bounds", "/etcdserverpb.KV/Range", b"\x0a\xff\x01a"),
    ("no wire type", "/etcdserverpb.KV/Txn", b"\x0f"),
    ("an endless number", "/etcdserverpb.KV/Put", &[0xff; 11]),
    ("a name that is no text", "/etcdserverpb.Auth/UserAdd", b"\x0a\x04ann\xff\x12\x01p"),
    ("more than is taken", "/etcdserverpb.KV/Put", &[0; 2 * 1024 * 1024 + 1]),
    ("a method that is not there", "/etcdserverpb.KV/Nothing", b""),
];

#[test]
fn bad_input_is_refused_alike() {
    let needs = [Lane::Etcd.asset(), Lane::Windlass.asset()];
    suite("bad_input_is_refused_alike", &needs, async |scene| {
        let etcd = Store::start(scene, &StoreOptions::new(Lane::Etcd, "etcd")).await?;
        let windlass = Store::start(scene, &StoreOptions::new(Lane::Windlass, "windlass")).await?;
        let (mut left, mut right) = (Raw::connect(&etcd).await?, Raw::connect(&windlass).await?);
        for (what, path, message) in BAD {
            let (left, right) = (left.call(path, message).await?, right.call(path, message).await?);
            ensure!(left.code == right.code && left.code != OK, "{what}: {left:?} and {right:?}");
        }
        for raw in [&mut left, &mut right] {
            let put = PutRequest { key: "a".into(), ..Default::default() }.encode_to_vec();
            let answer = raw.call("/etcdserverpb.KV/Put", &put).await?;
            ensure!(answer.code == OK, "the connection is not served any more: {answer:?}");
        }
        Ok(())
    });
}

const OK: &str = "0";

/// A connection of a client that says what it is told.
struct Raw {
    sender: SendRequest<Full<Bytes>>,
    _running: JoinSet<Result<(), hyper::Error>>,
}

/// How a call ended.
#[derive(Debug)]
struct Outcome {
    code: String,
    #[expect(dead_code, reason = "printed where codes differ; each library has its own words")]
    message: String,
}

// === impl Raw ===

impl Raw {
    async fn connect(store: &Store) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", store.port())).await.context("connect")?;
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = handshake.context("begin HTTP/2")?;
        let mut running = JoinSet::new();
        running.spawn(connection);
        Ok(Self { sender, _running: running })
    }

    async fn call(&mut self, path: &str, message: &[u8]) -> Result<Outcome> {
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(message.len().try_into()?);
        framed.put_slice(message);
        let request = Request::post(format!("http://127.0.0.1{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(framed.freeze()))?;
        let answer = self.sender.send_request(request).await.with_context(|| path.to_owned())?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await.with_context(|| path.to_owned())?;
        let told = outcome(&head.headers).or_else(|| outcome(body.trailers()?));
        told.with_context(|| format!("{path} has no outcome"))
    }
}

fn outcome(headers: &HeaderMap) -> Option<Outcome> {
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let code = text("grpc-status")?.into_owned();
    Some(Outcome { code, message: text("grpc-message").unwrap_or_default().into_owned() })
}
