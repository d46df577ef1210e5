//! Where the API is served. The sockets, TLS and connections are the work of the store's network
//! edge; here is what it serves for a node: the API, its health and its metrics.
//!
//! Over a socket of the file system its permissions decide who may call; over TLS a certificate does.

mod expiry;
mod health;

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use ::store::http::{self, Content, GrpcServices};
use ::store::{Address, Limits, Listener};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use self::health::Health;
use super::Service;
use crate::clock::Clock;
use crate::wire::tasks_server::TasksServer;

/// Calls at once over one connection: a node that passes logs on has as many as it has readers.
const STREAMS_MAX: u32 = 4096;
/// Only the owner of the socket may call.
const SOCKET_MODE: u32 = 0o600;

/// Sockets that are bound but not served yet.
pub struct Edge {
    open: http::Edge,
    certified: http::Edge,
    /// Whose end is told by a metric.
    certificate: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the listeners cannot be opened")]
    Bind(#[source] Box<http::Error>),
    #[error("the socket {} cannot be kept from others", path.display())]
    Protect {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the API is served no more")]
    Serve(#[source] Box<http::Error>),
}

// === impl Edge ===

impl Edge {
    /// Binds every listener, so that its address is known before the node starts.
    pub async fn bind(listeners: &[Listener]) -> Result<Self, Error> {
        let (certified, open): (Vec<Listener>, Vec<Listener>) =
            listeners.iter().cloned().partition(|listener| listener.tls.is_some());
        let certificate =
            certified.iter().find_map(|each| Some(each.tls.as_ref()?.cert_file.clone()));
        let edge =
            Self { open: bind(&open).await?, certified: bind(&certified).await?, certificate };
        edge.protect_sockets()?;
        Ok(edge)
    }

    /// Where each listener really is: a port given as 0 is the one the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        let edges = [&self.open, &self.certified].into_iter();
        edges.flat_map(|edge| edge.local_addresses().map(|(_, address)| address))
    }

    /// Serves until `shutdown`; calls under way get a few seconds to end.
    pub async fn run(
        self,
        service: Service,
        registry: Registry,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> Result<(), Error> {
        let metrics = service.node().metrics().clone();
        let registry = Arc::new(registry);
        let certified = content(service.certified(), &registry);
        let certified = self.certified.run(certified, shutdown.clone());
        let open = self.open.run(content(service, &registry), shutdown);
        let served = async {
            let served = tokio::try_join!(open, certified);
            served.map(drop).map_err(|error| Error::Serve(error.into()))
        };
        match self.certificate {
            None => served.await,
            Some(certificate) => tokio::select! {
                served = served => served,
                never = expiry::tell(&certificate, clock, &metrics) => match never {},
            },
        }
    }

    fn protect_sockets(&self) -> Result<(), Error> {
        for address in self.addresses() {
            if let Address::Unix(path) = address {
                std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))
                    .map_err(|source| Error::Protect { path: path.clone(), source })?;
            }
        }
        Ok(())
    }
}

async fn bind(listeners: &[Listener]) -> Result<http::Edge, Error> {
    let limits = Limits { concurrent_streams_max: STREAMS_MAX, ..Limits::default() };
    http::Edge::bind_guest(listeners, limits).await.map_err(|error| Error::Bind(error.into()))
}

fn content(service: Service, registry: &Arc<Registry>) -> Content {
    let message_bytes_max = service.bounds().message_bytes_max;
    let probes = Arc::new(Health::new(service.node().clone()));
    let server = TasksServer::new(service)
        .max_decoding_message_size(message_bytes_max)
        .max_encoding_message_size(message_bytes_max);
    Content {
        services: GrpcServices::default().with(server),
        peers: GrpcServices::default(),
        probes,
        registry: Arc::clone(registry),
        front: None,
    }
}
