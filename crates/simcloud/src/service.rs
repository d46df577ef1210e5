//! One process of the simulated cloud: its provider's service and, with a cluster, its kubelets.

use std::net::SocketAddr;
use std::sync::Arc;

use kubekit::client::{self, Cluster};
use kubekit::lease::WallClock;
use kubekit::metrics::Requests;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::core::Cloud;
use crate::handle::Handle;
use crate::kubelet::Kubelet;
use crate::lifecycle::{self, Parts, StopError};
use crate::scenario::Scenario;
use crate::server::{Server, Tls, TlsError};

#[derive(Clone, Debug)]
pub struct Options {
    pub scenario: Scenario,
    pub listen: SocketAddr,
    /// Without: in plain text.
    pub tls: Option<Tls>,
    /// The cluster whose kubelets are played; without, none are.
    pub connection: Option<client::Options>,
}

/// A process that has its socket and its credentials, and has not begun.
pub struct Service {
    parts: Parts,
    address: SocketAddr,
}

/// A cloud within the process that asks it: a provider without a wire, and its kubelets.
pub struct Local {
    handle: Handle,
    kubelet: Option<Kubelet>,
}

/// Why a process did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("no way to a cluster")]
    Client(#[source] client::Error),
    #[error("{address} cannot be listened at")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("the certificates cannot be used")]
    Tls(#[source] TlsError),
}

// === impl Service ===

impl Service {
    /// Reads the credentials and binds the listener; the simulation begins.
    pub async fn start(options: Options, clock: WallClock) -> Result<Self, StartError> {
        let Options { scenario, listen, tls, connection } = options;
        let Local { handle, kubelet } = Local::start(scenario, connection, clock).await?;
        let failed = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let server = Server::new(handle, listener, tls.as_ref()).map_err(StartError::Tls)?;
        Ok(Self { parts: Parts { server, kubelet }, address })
    }

    /// Where the provider is; a port given as 0 is the one the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), StopError> {
        lifecycle::run(self.parts, &shutdown).await
    }
}

// === impl Local ===

impl Local {
    /// Reads the credentials; the simulation begins. Without a cluster there are no kubelets.
    pub async fn start(
        scenario: Scenario,
        connection: Option<client::Options>,
        clock: WallClock,
    ) -> Result<Self, StartError> {
        let handle = Handle::new(Cloud::new(scenario, clock()), Arc::new(clock));
        let kubelet = match connection {
            Some(connection) => Some(kubelet(handle.clone(), connection).await?),
            None => None,
        };
        Ok(Self { handle, kubelet })
    }

    #[must_use]
    pub fn provider(&self) -> Handle {
        self.handle.clone()
    }

    /// Plays the kubelets until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        match self.kubelet {
            Some(kubelet) => kubelet.run(shutdown).await,
            None => shutdown.cancelled().await,
        }
    }
}

async fn kubelet(handle: Handle, connection: client::Options) -> Result<Kubelet, StartError> {
    let cluster = Cluster::open(connection, Requests::default()).await;
    let cluster = cluster.map_err(StartError::Client)?;
    Ok(Kubelet::new(handle, cluster.client().map_err(StartError::Client)?))
}
