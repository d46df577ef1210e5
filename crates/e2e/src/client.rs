//! One connection to a store and the client of every service on it. Owns the token; adds nothing
//! else to a request, so that what is tested is the server and not a client library.

use anyhow::{Context, Result};
use etcd_api::etcdserverpb::AuthenticateRequest;
use etcd_api::etcdserverpb::auth_client::AuthClient;
use etcd_api::etcdserverpb::cluster_client::ClusterClient;
use etcd_api::etcdserverpb::kv_client::KvClient;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use etcd_api::etcdserverpb::maintenance_client::MaintenanceClient;
use etcd_api::etcdserverpb::watch_client::WatchClient;
use etcd_api::v3electionpb::election_client::ElectionClient;
use etcd_api::v3lockpb::lock_client::LockClient;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

/// No limit: what a server may send is not the client's business.
const ANSWER_BYTES_MAX: usize = usize::MAX;

/// HTTP/2's own window, for a client that is to be slow: soon full.
const NARROW_BYTES: u32 = 65_535;

#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

/// A function giving the client of one service.
macro_rules! service {
    ($name:ident, $client:ident) => {
        #[must_use]
        pub fn $name(&self) -> $client<Channel> {
            $client::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
        }
    };
}

// === impl Client ===

impl Client {
    service!(kv, KvClient);
    service!(watch, WatchClient);
    service!(lease, LeaseClient);
    service!(cluster, ClusterClient);
    service!(maintenance, MaintenanceClient);
    service!(auth, AuthClient);
    service!(lock, LockClient);
    service!(election, ElectionClient);

    /// Connects when first used, and again after the server was restarted.
    pub fn to(port: u16) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))
            .context("a loopback address is an endpoint")?;
        Ok(Self { channel: endpoint.connect_lazy(), token: None })
    }

    /// As [`to`](Self::to), with little room for answers that are not read.
    pub fn narrow_to(port: u16) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))
            .context("a loopback address is an endpoint")?
            .initial_stream_window_size(NARROW_BYTES)
            .initial_connection_window_size(NARROW_BYTES);
        Ok(Self { channel: endpoint.connect_lazy(), token: None })
    }

    /// Sends each request to any one of several servers.
    pub fn spread(ports: &[u16]) -> Result<Self> {
        let endpoint = |port: &u16| Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let endpoints = ports.iter().map(endpoint).collect::<Result<Vec<_>, _>>();
        let endpoints = endpoints.context("a loopback address is an endpoint")?;
        Ok(Self { channel: Channel::balance_list(endpoints.into_iter()), token: None })
    }

    /// The same connection, speaking as the owner of a token.
    pub fn with_token(&self, token: &str) -> Result<Self> {
        let token = token.parse().context("a token is ASCII")?;
        Ok(Self { channel: self.channel.clone(), token: Some(token) })
    }

    /// The same connection, speaking as this user.
    pub async fn log_in(&self, name: &str, password: &str) -> Result<Self> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let request = AuthenticateRequest { name, password };
        self.with_token(&self.auth().authenticate(request).await?.into_inner().token)
    }

    /// A message with the token, if there is one.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}
