//! A cloud that is served, and a client of it. Time stands still until a test moves it.

use std::sync::Arc;
use std::time::Duration;

use autoscaler::provider::config::Timeouts;
use autoscaler::provider::grpc::{self, Grpc, Options};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use simcloud::core::Cloud;
use simcloud::handle::Handle;
use simcloud::scenario::Scenario;
use simcloud::server::{Error, Server, Tls};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine, short enough to wait for when no answer is scripted.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(1500);

pub(crate) struct Scene {
    pub(crate) handle: Handle,
    pub(crate) address: String,
    now: Arc<Mutex<Timestamp>>,
    shutdown: CancellationToken,
    server: JoinSet<Result<(), Error>>,
}

pub(crate) fn started() -> Timestamp {
    "2026-03-01T08:00:00Z".parse().expect("a time")
}

/// A cloud without a wire, whose time is told by the second value.
pub(crate) fn cloud(scenario: &str) -> (Handle, Arc<Mutex<Timestamp>>) {
    let now = Arc::new(Mutex::new(started()));
    let cloud = Cloud::new(Scenario::parse(scenario).expect("a scenario"), started());
    let clock = Arc::clone(&now);
    (Handle::new(cloud, Arc::new(move || *clock.lock())), now)
}

// === impl Scene ===

impl Scene {
    pub(crate) async fn new(scenario: &str) -> Self {
        Self::with_tls(scenario, None).await
    }

    pub(crate) async fn with_tls(scenario: &str, tls: Option<&Tls>) -> Self {
        let (handle, now) = cloud(scenario);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let shutdown = CancellationToken::new();
        let mut server = JoinSet::new();
        server.spawn(
            Server::new(handle.clone(), listener, tls).expect("certificates").run(shutdown.clone()),
        );
        Self { handle, address, now, shutdown, server }
    }

    /// Moves the cloud's time.
    pub(crate) fn pass(&self, seconds: i64) {
        *self.now.lock() += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn client(&self) -> Grpc {
        client(&self.address, None)
    }

    /// Ends the server, whoever waits for it.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        let ended = self.server.join_next().await.expect("a server");
        ended.expect("no panic").expect("an orderly end");
    }
}

pub(crate) fn client(address: &str, tls: Option<grpc::Tls>) -> Grpc {
    let timeouts = Timeouts { read: TIMEOUT, mutate: TIMEOUT };
    Grpc::new(Options { address: address.to_owned(), tls, timeouts }).expect("an address")
}
