//! The socket and its connections. All of them are served within the one task that runs the
//! service, so none outlives it.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::checks::Health;
use super::pages::{Answers, Pages};

/// Connections served at once: a scraper, the kubelet's probes, and somebody looking. Others wait
/// in the system's queue.
const CONNECTIONS_MAX: usize = 64;

/// How long a client may take for a request's head, or stay idle between two requests. Longer than
/// the usual scrape interval, so that a scraper finds its connection again.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How long a connection may last: slow readers must not hold all places for ever.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Largest head of a request: probes and scrapers send little.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// How long to wait when the system has no room for one more connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub struct Options {
    /// Port 0 takes any that is free.
    pub listen: SocketAddr,
}

/// Serves the pages about this process.
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    pages: Pages,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{address} is in use; stop the process that listens there or choose another address")]
    AddressInUse { address: SocketAddr },
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot learn which port {address} was given")]
    LocalAddress {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

// === impl Service ===

impl Service {
    pub async fn bind(
        options: &Options,
        health: Health,
        registry: Arc<Registry>,
    ) -> Result<Self, Error> {
        let address = options.listen;
        let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
            ErrorKind::AddrInUse => Error::AddressInUse { address },
            _ => Error::Bind { address, source },
        })?;
        let address =
            listener.local_addr().map_err(|source| Error::LocalAddress { address, source })?;
        let pages = Pages { health, registry, answers: None, live_alias: None };
        Ok(Self { listener, address, pages })
    }

    /// The same, and what this service answers besides.
    #[must_use]
    pub fn answering(mut self, answers: Answers) -> Self {
        self.pages.answers = Some(answers);
        self
    }

    /// The same, and `/livez` under another name too.
    #[must_use]
    pub fn also_live_at(mut self, path: &'static str) -> Self {
        self.pages.live_alias = Some(path);
        self
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`. Answers are small and made at once, so none is waited for.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut connections = FuturesUnordered::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                () = shutdown.cancelled() => return,
                stream = self.accept(), if has_room => connections.push(self.serve(stream)),
                Some(()) = connections.next() => {}
            }
        }
    }

    async fn accept(&self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _peer)) => return stream,
                Err(error) => {
                    tracing::debug!(address = %self.address, %error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream) {
        let answer = service_fn(async |request| Ok::<_, Infallible>(self.pages.answer(&request)));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        // What ends a connection early concerns its client alone.
        match tokio::time::timeout(CONNECTION_TIMEOUT, connection).await {
            Ok(Ok(())) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection ended early"),
        }
    }
}
