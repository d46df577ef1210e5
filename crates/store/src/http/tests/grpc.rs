//! gRPC through the edge.

use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use etcd_api::etcdserverpb::{LeaseKeepAliveRequest, PutRequest, RangeRequest, TxnRequest};
use etcd_api::v3lockpb::LockRequest;
use etcd_api::v3lockpb::lock_client::LockClient;
use futures::future::try_join_all;
use futures::stream::{self, StreamExt};
use tokio::net::UnixStream;
use tonic::{Code, Status};

use super::client::Connections;
use super::server::{Server, options, unix};

/// More than any client opens, and more than the default of the HTTP library allows.
const STREAMS: i64 = 3000;

fn range(key: &'static str) -> RangeRequest {
    RangeRequest { key: key.into(), ..Default::default() }
}

#[tokio::test]
async fn over_tcp() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.tcp(server.address()).await);
    let reply = kv.range(range("a")).await.unwrap().into_inner();
    assert_eq!((reply.kvs[0].key(), reply.kvs[0].value()), (&b"a"[..], &b"nobody none"[..]));
    let refused = kv.range(range("")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "etcdserver: key is not provided");
}

#[tokio::test]
async fn over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("client.sock");
    let _server = Server::start(&options(vec![unix(path.clone())])).await;
    let mut connections = Connections::default();
    let stream = UnixStream::connect(&path).await.unwrap();
    let mut kv = KvClient::new(connections.open(stream).await);
    assert_eq!(kv.range(range("a")).await.unwrap().into_inner().count, 1);
}

#[tokio::test]
async fn thousands_of_streams_on_one_connection() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let connection = connections.tcp(server.address()).await;
    let streams = try_join_all((1..=STREAMS).map(|id| {
        let mut lease = LeaseClient::new(connection.clone());
        // The stream stays open after its first request.
        let asked = stream::iter([LeaseKeepAliveRequest { id }]).chain(stream::pending());
        async move { lease.lease_keep_alive(asked).await.map(tonic::Response::into_inner) }
    }));
    let mut streams = streams.await.unwrap();
    let answers = try_join_all(streams.iter_mut().map(|stream| stream.message())).await.unwrap();
    let ids: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().id).collect();
    assert_eq!(ids, (1..=STREAMS).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_as_etcd_does() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.tcp(server.address()).await);
    let put = |bytes: usize| PutRequest { value: vec![0; bytes].into(), ..Default::default() };
    let reply = kv.put(put(2_000_000)).await.unwrap().into_inner();
    assert_eq!(reply.header.unwrap().revision, 2_000_000);
    let refused = kv.put(put(2_400_000)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "grpc: received message larger than max (2400005 vs. 2097152)");
}

#[tokio::test]
async fn errors_of_that_code_from_a_service_stay_as_they_are() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.tcp(server.address()).await);
    let refused =
        kv.compact(etcd_api::etcdserverpb::CompactionRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
    assert_eq!(refused.message(), "etcdserver: mvcc: required revision is a future revision");
}

#[tokio::test]
async fn an_unknown_service_is_unimplemented() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut lock = LockClient::new(connections.tcp(server.address()).await);
    let refused: Status = lock.lock(LockRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert_eq!(refused.message(), "unknown service v3lockpb.Lock");
}

#[tokio::test]
async fn a_cancelled_request_leaves_the_connection_usable() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.tcp(server.address()).await);
    for _ in 0..100 {
        let mut stuck = kv.clone();
        let mut never = Box::pin(stuck.txn(TxnRequest::default()));
        assert!(futures::poll!(&mut never).is_pending());
        drop(never);
    }
    assert_eq!(kv.range(range("a")).await.unwrap().into_inner().count, 1);
}
