//! A real store on a port of this machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::{CompactionRequest, PutRequest, RangeRequest};
use jiff::Timestamp;
use journal::EmbeddedJournal;
use store::{Address, AuthToken, AutoCompaction, HttpAccess, Limits, Listener, StopError};
use tasks::Clock;
use tasks::core::fsck::Absences;
use tasks::core::id::TaskId;
use tasks::core::keys::{Key, KeyRange};
use tasks::store::{Options, Store};
use tasks::wire;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::waiting::soon;

/// A running store. Dropping it ends it.
pub(crate) struct Etcd {
    address: SocketAddr,
    folder: TempDir,
    shutdown: CancellationToken,
    running: JoinSet<Result<(), StopError>>,
}

// === impl Etcd ===

impl Etcd {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_on(folder, "127.0.0.1:0".parse().expect("an address")).await
    }

    pub(crate) async fn start_on(folder: TempDir, address: SocketAddr) -> Self {
        let service = service(&folder, address).await.expect("it starts");
        let address = match service.addresses().next().expect("it listens") {
            (_, Address::Tcp(address)) => *address,
            (_, Address::Unix(path)) => panic!("{} is no port", path.display()),
        };
        let shutdown = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(service.run(shutdown.clone()));
        Self { address, folder, shutdown, running }
    }

    /// Ends it and waits until it has; what it leaves.
    pub(crate) async fn stop(self) -> (TempDir, SocketAddr) {
        let Self { address, folder, shutdown, mut running } = self;
        shutdown.cancel();
        let ended = running.join_next().await.expect("it was started");
        ended.expect("it does not panic").expect("it ends well");
        (folder, address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection of its own.
    pub(crate) fn client(&self) -> Store {
        connect(self.address)
    }

    pub(crate) async fn submit(&self, spec: wire::TaskSpec) -> TaskId {
        self.client().submit(spec, "tests", soon()).await.expect("it is submitted").id
    }

    /// The nodes that are registered.
    pub(crate) async fn nodes(&self) -> Vec<Key> {
        let nodes = self.client().list(KeyRange::NODES).await.expect("it answers").kvs;
        nodes.iter().map(|kv| Key::parse(kv.key()).expect("a node's key")).collect()
    }

    #[track_caller]
    pub(crate) fn assert_in_sync(&self) -> impl Future<Output = ()> {
        let client = self.client();
        async move {
            let checked = client.fsck(&Absences::default()).await.expect("it can be checked");
            assert_eq!(checked.findings, []);
        }
    }

    /// Writes a key behind everybody's back.
    pub(crate) async fn put(&self, key: &str) {
        let channel = Channel::from_shared(url(self.address)).expect("an address").connect_lazy();
        let mut kv = KvClient::new(channel);
        let key = bytes::Bytes::from(key.to_owned());
        kv.put(PutRequest { key, ..Default::default() }).await.expect("it writes");
    }

    /// Writes what a key holds again and again, as somebody who is always faster.
    pub(crate) async fn meddle(address: SocketAddr, key: String) {
        let channel = Channel::from_shared(url(address)).expect("an address").connect_lazy();
        let mut kv = KvClient::new(channel);
        let key = bytes::Bytes::from(key);
        let range = RangeRequest { key: key.clone(), ..Default::default() };
        let found = kv.range(range).await.expect("it reads").into_inner();
        let value = bytes::Bytes::copy_from_slice(found.kvs[0].value());
        loop {
            let put = PutRequest { key: key.clone(), value: value.clone(), ..Default::default() };
            kv.put(put).await.expect("it writes");
        }
    }

    /// Forgets all history.
    pub(crate) async fn compact(&self) {
        let client = self.client();
        let listed = client.list(KeyRange::NODES).await.expect("it answers");
        let channel = Channel::from_shared(url(self.address)).expect("an address").connect_lazy();
        let mut kv = KvClient::new(channel);
        let request = CompactionRequest { revision: listed.revision.0, physical: false };
        kv.compact(request).await.expect("it forgets");
    }

    /// How many watches there are.
    pub(crate) async fn watches(&self) -> usize {
        let metrics = self.metrics().await;
        let line = metrics.lines().find_map(|line| {
            line.strip_prefix("etcd_debugging_mvcc_watcher_total ").map(str::to_owned)
        });
        line.expect("the store counts its watches").parse().expect("a number")
    }

    async fn metrics(&self) -> String {
        let mut connection = TcpStream::connect(self.address).await.expect("it listens");
        let request = "GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        connection.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.expect("it answers");
        answer
    }
}

pub(crate) fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

pub(crate) fn options(address: SocketAddr) -> Options {
    Options { endpoints: vec![url(address)], tls: None }
}

pub(crate) fn connect(address: SocketAddr) -> Store {
    Store::connect(&options(address), Clock::new(Timestamp::now)).expect("an address")
}

/// A store that is not served yet.
pub(crate) async fn service(
    folder: &TempDir,
    address: SocketAddr,
) -> Result<store::Service, store::StartError> {
    let journal = EmbeddedJournal::open(folder.path(), journal::embedded::Options::default());
    let journal = journal.expect("the folder is free");
    #[expect(clippy::disallowed_methods, reason = "a test is its own binary")]
    let clock = std::time::SystemTime::now;
    store::Service::start(store_options(address), Arc::new(journal), clock).await
}

fn store_options(address: SocketAddr) -> store::Options {
    store::Options {
        name: "test".to_owned(),
        client_listeners: vec![Listener { address: Address::Tcp(address), tls: None }],
        http_listeners: Vec::new(),
        metrics_listeners: Vec::new(),
        http_access: HttpAccess::default(),
        serves_json: true,
        advertise_client_urls: Vec::new(),
        advertise_peer_urls: Vec::new(),
        peer_listeners: Vec::new(),
        peer_tls: None,
        notices: Vec::new(),
        limits: Limits::default(),
        auto_compaction: AutoCompaction::Off,
        watch_progress_interval: Duration::from_mins(10),
        auth_token: AuthToken::Simple { ttl: Duration::from_mins(5) },
        bcrypt_cost: 4,
        cache_bytes: 16 << 20,
    }
}
