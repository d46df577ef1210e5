//! Starts a store for one test and makes clients for it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use etcd_api::{
    etcdserverpb::{
        AuthEnableRequest, AuthUserAddRequest, AuthUserGrantRoleRequest, AuthenticateRequest,
        CompactionRequest, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse,
        WatchCreateRequest, WatchRequest, auth_client::AuthClient, cluster_client::ClusterClient,
        kv_client::KvClient, lease_client::LeaseClient, maintenance_client::MaintenanceClient,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
    health::health_client::HealthClient,
    mvccpb::EventType,
    v3electionpb::election_client::ElectionClient,
    v3lockpb::lock_client::LockClient,
};
use futures::{StreamExt, stream};
use journal::{EmbeddedJournal, Journal};
use store::{
    Address, AuthToken, AutoCompaction, HttpAccess, Limits, Listener, Options, Service, StopError,
};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};

/// What the member list of every store here says.
pub(crate) const NAME: &str = "test";
pub(crate) const CLIENT_URL: &str = "http://127.0.0.1:2379";
pub(crate) const PEER_URL: &str = "http://127.0.0.1:2380";

/// The password of every user here.
pub(crate) const PASSWORD: &str = "secret";

/// Longer than anything here should take: a test that would wait for ever fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running store. Dropping it ends it.
pub(crate) struct Store {
    address: SocketAddr,
    folder: TempDir,
    options: Options,
    shutdown: CancellationToken,
    running: JoinSet<Result<(), StopError>>,
}

/// Clients of all services over one connection, with or without a token.
pub(crate) struct Clients {
    pub(crate) kv: KvClient<Connection>,
    pub(crate) watch: WatchClient<Connection>,
    pub(crate) lease: LeaseClient<Connection>,
    pub(crate) auth: AuthClient<Connection>,
    pub(crate) cluster: ClusterClient<Connection>,
    pub(crate) maintenance: MaintenanceClient<Connection>,
    pub(crate) lock: LockClient<Connection>,
    pub(crate) election: ElectionClient<Connection>,
    pub(crate) health: HealthClient<Connection>,
}

pub(crate) type Connection = InterceptedService<Channel, Bearer>;

/// Shows a token with every request.
#[derive(Clone)]
pub(crate) struct Bearer {
    header: &'static str,
    token: Option<MetadataValue<Ascii>>,
}

// === impl Store ===

impl Store {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a store that is not like the others.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = options();
        change(&mut options);
        Self::open(new_folder(), options).await
    }

    /// Starts a store on data that is there.
    pub(crate) async fn start_on(folder: TempDir) -> Self {
        Self::open(folder, options()).await
    }

    /// Starts a store over a journal of the test's own.
    pub(crate) async fn start_over(
        journal: Arc<dyn Journal>,
        folder: TempDir,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let mut options = options();
        change(&mut options);
        Self::serve(journal, folder, options).await
    }

    /// Stops the store and starts it again on its data.
    pub(crate) async fn restart(self) -> Self {
        let options = self.options.clone();
        let folder = self.stop().await;
        Self::open(folder, options).await
    }

    /// Stops the store and waits for its end.
    pub(crate) async fn stop(self) -> TempDir {
        let Self { folder, shutdown, mut running, .. } = self;
        shutdown.cancel();
        let ended = running.join_next().await.expect("it was started");
        ended.expect("it does not panic").expect("it ends well");
        folder
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn clients(&self) -> Clients {
        self.clients_with(Bearer { header: "token", token: None }).await
    }

    /// Clients that show `token` in the metadata field `header`.
    pub(crate) async fn clients_as(&self, header: &'static str, token: &str) -> Clients {
        let token = token.parse().expect("tokens are text");
        self.clients_with(Bearer { header, token: Some(token) }).await
    }

    /// Clients that have logged in as `user`.
    pub(crate) async fn login(&self, user: &str) -> Clients {
        let request = AuthenticateRequest { name: user.into(), password: PASSWORD.into() };
        let answer = self.clients().await.auth.authenticate(request).await.expect("may log in");
        self.clients_as("token", &answer.into_inner().token).await
    }

    async fn open(folder: TempDir, options: Options) -> Self {
        let journal = Arc::new(open_journal(&folder));
        Self::serve(journal, folder, options).await
    }

    async fn serve(journal: Arc<dyn Journal>, folder: TempDir, options: Options) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a test is its own binary")]
        let clock = std::time::SystemTime::now;
        let service = Service::start(options.clone(), journal, clock).await.expect("it starts");
        let address = match service.addresses().next().expect("it listens") {
            (_, Address::Tcp(address)) => *address,
            (_, Address::Unix(path)) => panic!("{} is no port", path.display()),
        };
        let shutdown = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(service.run(shutdown.clone()));
        Self { address, folder, options, shutdown, running }
    }

    async fn clients_with(&self, bearer: Bearer) -> Clients {
        let channel = Channel::from_shared(format!("http://{}", self.address)).expect("an address");
        let channel = channel.connect().await.expect("it listens");
        let connection = InterceptedService::new(channel, bearer);
        Clients {
            kv: KvClient::new(connection.clone()),
            watch: WatchClient::new(connection.clone()),
            lease: LeaseClient::new(connection.clone()),
            auth: AuthClient::new(connection.clone()),
            cluster: ClusterClient::new(connection.clone()),
            maintenance: MaintenanceClient::new(connection.clone()),
            lock: LockClient::new(connection.clone()),
            election: ElectionClient::new(connection.clone()),
            health: HealthClient::new(connection),
        }
    }
}

// === impl Clients ===

impl Clients {
    pub(crate) async fn add_user(&mut self, name: &str) {
        let request = AuthUserAddRequest {
            name: name.into(),
            password: PASSWORD.into(),
            ..Default::default()
        };
        self.auth.user_add(request).await.expect("a user can be added");
    }

    pub(crate) async fn grant_role(&mut self, user: &str, role: &str) {
        let request = AuthUserGrantRoleRequest { user: user.into(), role: role.into() };
        self.auth.user_grant_role(request).await.expect("a role can be granted");
    }

    /// Puts a key and returns the revision.
    pub(crate) async fn put(&mut self, key: &str, value: impl Into<Bytes>) -> i64 {
        let request =
            PutRequest { key: key.to_owned().into(), value: value.into(), ..Default::default() };
        let answer = self.kv.put(request).await.expect("it may be put").into_inner();
        answer.header.expect("every answer has a header").revision
    }

    /// Deletes keys in one revision, which it returns. An empty end means one key.
    pub(crate) async fn delete(&mut self, key: &str, range_end: &str) -> i64 {
        let request = DeleteRangeRequest {
            key: key.to_owned().into(),
            range_end: range_end.to_owned().into(),
            ..Default::default()
        };
        let answer = self.kv.delete_range(request).await.expect("it may be deleted").into_inner();
        answer.header.expect("every answer has a header").revision
    }

    /// Compacts, and waits for the work.
    pub(crate) async fn compact(&mut self, revision: i64) {
        let request = CompactionRequest { revision, physical: true };
        self.kv.compact(request).await.expect("it may be compacted");
    }

    /// All keys as they were at a revision, 0 for now.
    pub(crate) async fn all_at(&mut self, revision: i64) -> RangeResponse {
        let everything = Bytes::from_static(b"\0");
        let request = RangeRequest {
            key: everything.clone(),
            range_end: everything,
            revision,
            ..Default::default()
        };
        self.kv.range(request).await.expect("it may be read").into_inner()
    }

    /// Waits for the first change of this kind that `key` ever saw.
    pub(crate) async fn change_of(&mut self, key: &str, kind: EventType) {
        let create = WatchCreateRequest {
            key: key.to_owned().into(),
            start_revision: 1,
            ..Default::default()
        };
        let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let requests = stream::iter([request]).chain(stream::pending());
        let seen = async {
            let mut answers = self.watch.watch(requests).await.expect("may watch").into_inner();
            loop {
                let answer = answers.message().await.expect("goes on").expect("goes on");
                if answer.events.iter().any(|event| event.kind() == kind) {
                    return;
                }
            }
        };
        soon(seen).await;
    }

    /// Adds the administrator and turns auth on.
    pub(crate) async fn enable_auth(&mut self) {
        self.add_user("root").await;
        self.grant_role("root", "root").await;
        self.auth.auth_enable(AuthEnableRequest {}).await.expect("auth can be enabled");
    }
}

// === impl Bearer ===

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert(self.header, token.clone());
        }
        Ok(request)
    }
}

/// Waits no longer than [`PATIENCE`].
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes soon")
}

/// Code and text of a refusal, as clients compare them.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let status = answer.expect_err("it is refused");
    format!("{:?}: {}", status.code(), status.message())
}

pub(crate) fn new_folder() -> TempDir {
    tempfile::tempdir().expect("the system has room for a folder")
}

pub(crate) fn open_journal(folder: &TempDir) -> EmbeddedJournal {
    let journal = EmbeddedJournal::open(folder.path(), journal::embedded::Options::default());
    journal.expect("the folder is a journal's or empty")
}

fn options() -> Options {
    Options {
        name: NAME.to_owned(),
        client_listeners: vec![Listener {
            address: Address::Tcp(([127, 0, 0, 1], 0).into()),
            tls: None,
        }],
        http_listeners: Vec::new(),
        metrics_listeners: Vec::new(),
        http_access: HttpAccess::default(),
        serves_json: true,
        advertise_client_urls: vec![CLIENT_URL.to_owned()],
        advertise_peer_urls: vec![PEER_URL.to_owned()],
        peer_listeners: Vec::new(),
        peer_tls: None,
        notices: Vec::new(),
        limits: Limits::default(),
        auto_compaction: AutoCompaction::Off,
        watch_progress_interval: Duration::from_secs(600),
        auth_token: AuthToken::Simple { ttl: Duration::from_secs(300) },
        bcrypt_cost: 4,
        cache_bytes: 1 << 20,
    }
}
