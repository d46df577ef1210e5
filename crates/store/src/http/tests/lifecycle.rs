//! How the edge ends, and what it learns of the ends of its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use etcd_api::etcdserverpb::{LeaseKeepAliveRequest, TxnRequest};
use futures::stream::{self, StreamExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::Code;

use super::client::{Connections, ask, request};
use super::server::{PANICKING_LEASE, Server};
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

/// One call's panic is told of, and concerns nobody but its caller.
#[tokio::test]
async fn a_panic_of_a_stream_is_told() {
    let errors = Arc::new(AtomicUsize::new(0));
    let _told = tracing::subscriber::set_default(ErrorCount(Arc::clone(&errors)));
    let server = Server::plain().await;
    let mut connections = Connections::default();
    let mut lease = LeaseClient::new(connections.tcp(server.address()).await);
    let panicking = stream::iter([LeaseKeepAliveRequest { id: PANICKING_LEASE }]);
    let cut = match lease.lease_keep_alive(panicking).await {
        Ok(answers) => answers.into_inner().message().await.map(drop),
        Err(status) => Err(status),
    };
    cut.expect_err("the call is cut");
    let asked = stream::iter([LeaseKeepAliveRequest { id: 7 }]);
    let mut answers = lease.lease_keep_alive(asked).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap().unwrap().id, 7);
    assert_eq!(errors.load(Ordering::Relaxed), 1);
}

/// Counts what is logged as an error.
struct ErrorCount(Arc<AtomicUsize>);

impl tracing::Subscriber for ErrorCount {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::ERROR {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}
