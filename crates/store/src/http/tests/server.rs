//! An edge on a free port, and the services behind it: they answer with what they were asked.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use etcd_api::etcdserverpb as pb;
use etcd_api::etcdserverpb::kv_server::{Kv, KvServer};
use etcd_api::etcdserverpb::lease_server::{Lease, LeaseServer};
use etcd_api::etcdserverpb::{AlarmType, ResponseHeader};
use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::auth::PeerIdentity;
use crate::http::{Content, Edge, Error, GrpcServices, Probes, Read};
use crate::options::{
    Address, AuthToken, AutoCompaction, HttpAccess, Limits, Listener, Options, Tls,
};

/// A lease whose keep-alive fails.
const FAILING_LEASE: i64 = -13;

/// A lease whose keep-alive panics.
pub(super) const PANICKING_LEASE: i64 = -14;

/// A running edge. Dropping it ends it.
pub(super) struct Server {
    pub(super) addresses: Vec<Address>,
    pub(super) health: Arc<Health>,
    pub(super) shutdown: CancellationToken,
    running: JoinSet<Result<(), Error>>,
}

/// What the probes answer.
#[derive(Default)]
pub(super) struct Health {
    pub(super) alarms: Mutex<Vec<AlarmType>>,
    pub(super) is_auth_enabled: Mutex<bool>,
    pub(super) linearizable_failure: Mutex<Option<Status>>,
}

struct EchoKv;
struct EchoLease;

pub(super) fn options(listeners: Vec<Listener>) -> Options {
    Options {
        name: "default".to_owned(),
        client_listeners: listeners,
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
        watch_progress_interval: Duration::from_secs(600),
        auth_token: AuthToken::Simple { ttl: Duration::from_secs(300) },
        bcrypt_cost: 4,
        cache_bytes: 0,
    }
}

pub(super) fn tcp(tls: Option<Tls>) -> Listener {
    Listener { address: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), tls }
}

pub(super) fn unix(path: PathBuf) -> Listener {
    Listener { address: Address::Unix(path), tls: None }
}

// === impl Server ===

impl Server {
    pub(super) async fn start(options: &Options) -> Self {
        let edge = Edge::bind(options).await.expect("a free port can be bound");
        Self::run(edge, options)
    }

    /// As another service than the store would be served.
    pub(super) async fn start_guest(listeners: Vec<Listener>) -> Self {
        let edge = Edge::bind_guest(&listeners, Limits::default()).await;
        Self::run(edge.expect("a free port can be bound"), &options(listeners))
    }

    fn run(edge: Edge, options: &Options) -> Self {
        let addresses = edge.local_addresses().map(|(_, address)| address.clone()).collect();
        let health = Arc::new(Health::default());
        let message_bytes_max = options.limits.message_bytes_max();
        let kv = KvServer::new(EchoKv).max_decoding_message_size(message_bytes_max);
        let content = Content {
            services: GrpcServices::default().with(kv).with(LeaseServer::new(EchoLease)),
            peers: GrpcServices::default(),
            probes: Arc::clone(&health) as Arc<dyn Probes>,
            registry: Arc::new(Registry::default()),
            front: None,
        };
        let shutdown = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(edge.run(content, shutdown.clone()));
        Self { addresses, health, shutdown, running }
    }

    pub(super) async fn plain() -> Self {
        Self::start(&options(vec![tcp(None)])).await
    }

    pub(super) fn address(&self) -> SocketAddr {
        match &self.addresses[0] {
            Address::Tcp(address) => *address,
            Address::Unix(path) => panic!("{} is no port", path.display()),
        }
    }

    /// Waits until the edge has ended by itself.
    pub(super) async fn ended(mut self) {
        let ended = self.running.join_next().await.expect("it was started");
        ended.expect("it does not panic").expect("it ends well");
    }
}

// === impl Health ===

impl Probes for Health {
    fn alarms(&self) -> Vec<AlarmType> {
        self.alarms.lock().clone()
    }

    fn has_leader(&self) -> bool {
        true
    }

    fn is_learner(&self) -> bool {
        false
    }

    fn is_auth_enabled(&self) -> bool {
        *self.is_auth_enabled.lock()
    }

    fn read(&self, read: Read) -> BoxFuture<'_, Result<(), Status>> {
        let failure = match read {
            Read::Serializable => None,
            Read::Linearizable => self.linearizable_failure.lock().clone(),
        };
        Box::pin(async move { failure.map_or(Ok(()), Err) })
    }
}

// === impl EchoKv ===

#[tonic::async_trait]
impl Kv for EchoKv {
    type RangeStreamStream = BoxStream<'static, Result<pb::RangeStreamResponse, Status>>;

    /// One key-value: the key, and who asked with which token.
    async fn range(
        &self,
        request: Request<pb::RangeRequest>,
    ) -> Result<Response<pb::RangeResponse>, Status> {
        let who = request.extensions().get::<PeerIdentity>();
        let who = who.map_or("nobody", |identity| &identity.common_name);
        let token = request.metadata().get("token").or(request.metadata().get("authorization"));
        let token = token.map_or("none", |token| token.to_str().expect("tokens are text"));
        let value = format!("{who} {token}");
        if request.get_ref().key.is_empty() {
            return Err(Status::invalid_argument("etcdserver: key is not provided"));
        }
        let kv = KeyValueParts {
            key: &request.get_ref().key,
            create_revision: 2,
            mod_revision: 3,
            version: 1,
            value: value.as_bytes(),
            lease: 0,
        };
        Ok(Response::new(pb::RangeResponse {
            kvs: vec![KeyValue::new(&kv)],
            count: 1,
            ..Default::default()
        }))
    }

    /// The header's revision is the value's length.
    async fn put(
        &self,
        request: Request<pb::PutRequest>,
    ) -> Result<Response<pb::PutResponse>, Status> {
        let length = request.get_ref().value.len();
        let revision = i64::try_from(length).expect("a message is shorter");
        let header = Some(ResponseHeader { revision, ..Default::default() });
        Ok(Response::new(pb::PutResponse { header, ..Default::default() }))
    }

    async fn range_stream(
        &self,
        _request: Request<pb::RangeRequest>,
    ) -> Result<Response<Self::RangeStreamStream>, Status> {
        Err(Status::unimplemented("not asked for here"))
    }

    async fn delete_range(
        &self,
        _request: Request<pb::DeleteRangeRequest>,
    ) -> Result<Response<pb::DeleteRangeResponse>, Status> {
        Err(Status::unauthenticated("etcdserver: invalid auth token"))
    }

    async fn txn(
        &self,
        _request: Request<pb::TxnRequest>,
    ) -> Result<Response<pb::TxnResponse>, Status> {
        std::future::pending().await
    }

    async fn compact(
        &self,
        _request: Request<pb::CompactionRequest>,
    ) -> Result<Response<pb::CompactionResponse>, Status> {
        Err(Status::out_of_range("etcdserver: mvcc: required revision is a future revision"))
    }
}

// === impl EchoLease ===

#[tonic::async_trait]
impl Lease for EchoLease {
    type LeaseKeepAliveStream = BoxStream<'static, Result<pb::LeaseKeepAliveResponse, Status>>;

    /// Answers each request with its id.
    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<pb::LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let answers = request.into_inner().map(|asked| match asked?.id {
            FAILING_LEASE => Err(Status::unavailable("etcdserver: no leader")),
            PANICKING_LEASE => panic!("the lease asks for it"),
            id => Ok(pb::LeaseKeepAliveResponse { id, ttl: 60, ..Default::default() }),
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn lease_grant(
        &self,
        request: Request<pb::LeaseGrantRequest>,
    ) -> Result<Response<pb::LeaseGrantResponse>, Status> {
        let pb::LeaseGrantRequest { ttl, id } = request.into_inner();
        Ok(Response::new(pb::LeaseGrantResponse { id, ttl, ..Default::default() }))
    }

    async fn lease_revoke(
        &self,
        _request: Request<pb::LeaseRevokeRequest>,
    ) -> Result<Response<pb::LeaseRevokeResponse>, Status> {
        Err(Status::not_found("etcdserver: requested lease not found"))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<pb::LeaseTimeToLiveRequest>,
    ) -> Result<Response<pb::LeaseTimeToLiveResponse>, Status> {
        let id = request.into_inner().id;
        Ok(Response::new(pb::LeaseTimeToLiveResponse { id, ttl: -1, ..Default::default() }))
    }

    async fn lease_leases(
        &self,
        _request: Request<pb::LeaseLeasesRequest>,
    ) -> Result<Response<pb::LeaseLeasesResponse>, Status> {
        Ok(Response::new(pb::LeaseLeasesResponse::default()))
    }
}
