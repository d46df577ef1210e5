//! How the edge ends.

use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use etcd_api::etcdserverpb::{LeaseKeepAliveRequest, TxnRequest};
use futures::stream::{self, StreamExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Code;

use super::client::{Connections, ask, request};
use super::server::Server;
use crate::http::lifecycle::DRAIN_TIMEOUT;

#[tokio::test]
async fn idle_connections_end_at_once() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let address = server.address();
    let _http2 = connections.tcp(address).await;
    let _silent = TcpStream::connect(address).await.unwrap();
    ask(address, request("GET /health", &[], "")).await;
    server.shutdown.cancel();
    server.ended().await;
    TcpStream::connect(address).await.expect_err("nobody listens there");
}

/// A watch never ends by itself; it gets the time to drain and no more.
#[tokio::test(start_paused = true)]
async fn open_streams_are_cut_when_the_time_to_drain_is_over() {
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let connection = connections.tcp(server.address()).await;
    let mut lease = LeaseClient::new(connection.clone());
    let asked = stream::iter([LeaseKeepAliveRequest { id: 7 }]).chain(stream::pending());
    let mut answers = lease.lease_keep_alive(asked).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 7);

    let asked = Instant::now();
    server.shutdown.cancel();
    server.ended().await;
    assert!(asked.elapsed() >= DRAIN_TIMEOUT, "{:?}", asked.elapsed());
    answers.message().await.expect_err("the stream is cut");
    let refused = KvClient::new(connection).txn(TxnRequest::default()).await.unwrap_err();
    assert!(
        matches!(refused.code(), Code::Unavailable | Code::Unknown | Code::Cancelled),
        "{refused}"
    );
}
