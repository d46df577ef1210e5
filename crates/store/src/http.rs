//! The network edge of the store: one client port that carries gRPC, the JSON gateway and HTTP,
//! with or without TLS, over TCP and unix sockets.
//!
//! Owns the listening sockets, the connections and how bytes become requests. It never looks into
//! a request's meaning: gRPC requests go to [`GrpcServices`], questions about health to [`Probes`].
//!
//! ```text
//! socket ─ TLS ─ HTTP/1 or HTTP/2 ─┬─ application/grpc ───────────────► GrpcServices
//!                                  └─ /v3/… ─ JSON to gRPC and back ─────────┘
//!                                  └─ /health, /livez, /readyz, /version, /metrics
//! ```

mod access;
mod connection;
mod counted;
mod dispatch;
mod endpoints;
mod front;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod gateway;
mod lifecycle;
mod listen;
mod pages;
mod prefixed;
mod services;
#[cfg(test)]
mod tests;
mod tls;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

pub use self::endpoints::{Probes, Read};
pub use self::front::{FrontPage, FrontPages, Making};
pub use self::listen::Error as ListenError;
pub(crate) use self::services::Detour;
pub use self::services::{GrpcReply, GrpcServices};
pub use self::tls::{Error as TlsError, SelfSigned, SelfSignedError};
pub use crate::auth::PeerIdentity;

use self::access::Access;
use self::connection::Settings;
use self::dispatch::Dispatch;
use self::gateway::Gateway;
use self::listen::Bound;
use self::pages::Pages;
use crate::options::{Address, HttpAccess, Limits, Listener, Options};

/// What a gRPC message may weigh beyond the largest request: its fields beside keys and values.
/// Larger messages are refused unread, so this is the `max_decoding_message_size` of every service.
pub const MESSAGE_OVERHEAD_BYTES: usize = 512 * 1024;

/// Sockets that are bound but not yet served.
pub struct Edge {
    doors: Vec<Door>,
    limits: Limits,
    access: HttpAccess,
    serves_json: bool,
}

/// What is served once the sockets are bound.
#[derive(Clone)]
pub struct Content {
    pub services: GrpcServices,
    /// What other members are served.
    pub peers: GrpcServices,
    pub probes: Arc<dyn Probes>,
    pub registry: Arc<Registry>,
    /// For people who point a browser at the clients' port; etcd has none.
    pub front: Option<FrontPages>,
}

/// What one listener carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// gRPC, JSON and HTTP together.
    Everything,
    /// gRPC alone, because HTTP has listeners of its own.
    Grpc,
    /// JSON and HTTP without gRPC.
    Http,
    /// Metrics and health.
    Metrics,
    /// gRPC of other members of the store, who name whom they act for.
    Peers,
    /// gRPC of another service than the store, with its metrics and health. Where clients are known
    /// by certificates, nobody else reads these.
    Guest,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open a listener")]
    Listen(#[from] listen::Error),
    #[error("the task that accepts connections on {address} ended unexpectedly")]
    Acceptor {
        address: String,
        #[source]
        source: tokio::task::JoinError,
    },
}

// === impl Error ===

impl Error {
    /// Whether certificates or their keys are to blame, and not an address.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Listen(listen::Error::Tls { .. }))
    }
}

struct Door {
    bound: Bound,
    traffic: Traffic,
}

// === impl Edge ===

impl Edge {
    /// Binds every listener of the options, so that a busy address is known before anything else
    /// of the store starts.
    pub async fn bind(options: &Options) -> Result<Self, Error> {
        let client =
            if options.http_listeners.is_empty() { Traffic::Everything } else { Traffic::Grpc };
        let groups = [
            (&options.client_listeners, client),
            (&options.http_listeners, Traffic::Http),
            (&options.metrics_listeners, Traffic::Metrics),
            (&options.peer_listeners, Traffic::Peers),
        ];
        let mut doors = Vec::new();
        for (listeners, traffic) in groups {
            doors.extend(bind_all(listeners, traffic).await?);
        }
        Ok(Self {
            doors,
            limits: options.limits.clone(),
            access: options.http_access.clone(),
            serves_json: options.serves_json,
        })
    }

    /// Binds listeners for another service than the store.
    pub async fn bind_guest(listeners: &[Listener], limits: Limits) -> Result<Self, Error> {
        let doors = bind_all(listeners, Traffic::Guest).await?;
        Ok(Self { doors, limits, access: HttpAccess::default(), serves_json: false })
    }

    /// Where each listener really is: a port given as 0 is the one the system chose.
    pub fn local_addresses(&self) -> impl Iterator<Item = (Traffic, &Address)> {
        self.doors.iter().map(|door| (door.traffic, door.bound.address()))
    }

    /// Serves until `shutdown`, then drains: requests under way get a few seconds to end, new ones
    /// are refused.
    pub async fn run(self, content: Content, shutdown: CancellationToken) -> Result<(), Error> {
        let settings = Settings::new(&self.limits);
        let doors = self.doors.iter().map(|door| self.dispatch(door, &content));
        let dispatches: Vec<Dispatch> = doors.collect();
        let doors = self.doors.into_iter().zip(dispatches);
        let doors = doors.map(|(door, dispatch)| lifecycle::Door { bound: door.bound, dispatch });
        lifecycle::run(doors.collect(), settings, shutdown).await
    }

    /// What answers behind one door.
    fn dispatch(&self, door: &Door, content: &Content) -> Dispatch {
        let is_peers = door.traffic == Traffic::Peers;
        let services = if is_peers { content.peers.clone() } else { content.services.clone() };
        let serves = |traffics: &[Traffic]| traffics.contains(&door.traffic);
        let is_encrypted = door.bound.handshake.is_some();
        let pages = Pages {
            content: content.clone(),
            traffic: door.traffic,
            is_private: is_encrypted && serves(&[Traffic::Guest]),
            access: (!serves(&[Traffic::Metrics])).then(|| Access::new(&self.access, is_encrypted)),
            gateway: (self.serves_json && serves(&[Traffic::Everything, Traffic::Http])).then(
                || Gateway {
                    services: services.clone(),
                    message_bytes_max: self.limits.message_bytes_max(),
                },
            ),
        };
        let is_grpc = serves(&[Traffic::Everything, Traffic::Grpc, Traffic::Guest, Traffic::Peers]);
        let dispatch = Dispatch::new(is_grpc.then_some(services), Arc::new(pages));
        if is_peers { dispatch.of_peers() } else { dispatch }
    }
}

async fn bind_all(listeners: &[Listener], traffic: Traffic) -> Result<Vec<Door>, Error> {
    let mut doors = Vec::with_capacity(listeners.len());
    for listener in listeners {
        doors.push(Door { bound: Bound::bind(listener).await?, traffic });
    }
    Ok(doors)
}
