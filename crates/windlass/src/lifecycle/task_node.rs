//! A task node as a part of the process: bound, started, served, stopped.

use std::{
    fs::{self, DirBuilder, Permissions},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use prometheus_client::registry::Registry;
use store::{Address, Listener};
use tasks::{
    Clock, node, service,
    service::edge::{self, Edge},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Error, timestamp};
use crate::config::node::Node;

/// Beside the folder of a store of its own.
const FOLDER: &str = "tasks";
/// Who may look for a socket; who may use it, the socket itself says.
const SOCKET_FOLDER_MODE: u32 = 0o755;

const SOCKET_MODE: u32 = 0o600;

/// A task node to start.
pub(crate) struct TaskNode {
    pub(crate) node: Node,
    /// Of the store.
    pub(crate) endpoints: Vec<String>,
}

/// One that has started and is not served yet.
pub(crate) struct Started {
    edge: Edge,
    node: node::Service,
    service: service::Service,
    registry: Registry,
}

// === impl TaskNode ===

impl TaskNode {
    /// Asks the store of this process, unless another one was named.
    pub(super) fn asking(mut self, store: Option<&store::Service>) -> Result<Self, Error> {
        if self.endpoints.is_empty() {
            let addresses = store.into_iter().flat_map(store::Service::addresses);
            // A socket before a port; among equals the first.
            let nearest = addresses
                .map(|(_, address)| address)
                .min_by_key(|address| !matches!(address, Address::Unix(_)));
            self.endpoints = nearest.map(own_endpoint).transpose()?.into_iter().collect();
        }
        Ok(self)
    }

    /// Binds first: the node tells the others where it is reached.
    pub(super) async fn start(self) -> Result<Started, Error> {
        make_socket_folders(&self.node.listeners)?;
        let edge = Edge::bind(&self.node.listeners).await;
        let edge = edge.map_err(|source| Error::Api { source: source.into() })?;
        let address = self.node.advertise.clone().unwrap_or_else(|| reached_at(&edge));
        let bounds = self.node.bounds;
        let identity = self.node.identity.clone();
        let mut registry = Registry::default();
        let node = node::Service::start(self.options(address)?, timestamp, &mut registry).await;
        let node = node.map_err(|source| Error::StartNode { source: source.into() })?;
        let service = service::Service::new(node.handle(), service::Options { bounds, identity });
        Ok(Started { edge, node, service, registry })
    }

    fn options(self, address: String) -> Result<node::Options, Error> {
        let Self { node, endpoints } = self;
        let data_dir = absolute(node.data_dir.join(FOLDER))?;
        let mut sandbox = sandbox::Options::new(data_dir, Uuid::new_v4(), node.kind);
        sandbox.permissions = node.permissions;
        sandbox.host_view.binds = node.host_view.binds;
        sandbox.host_view.hidden =
            node.host_view.hidden.into_iter().map(absolute).collect::<Result<_, _>>()?;
        for (name, dir) in node.roots {
            sandbox.roots.insert(name, absolute(dir)?);
        }
        Ok(node::Options {
            name: node.name,
            address,
            store: tasks::store::Options { endpoints, tls: node.identity },
            timing: node.timing,
            capacity: None,
            sandbox,
        })
    }
}

// === impl Started ===

impl Started {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.edge.addresses()
    }

    /// The API is served for as long as the node runs: also while it stops its tasks.
    pub(super) async fn run(self, shutdown: &CancellationToken) -> Result<(), Error> {
        let Self { edge, node, service, registry } = self;
        let served_until = CancellationToken::new();
        let node = async {
            let ended = node.run(shutdown.clone()).await;
            served_until.cancel();
            ended.map_err(|source| Error::StopNode { source: source.into() })
        };
        let api = async {
            let served =
                edge.run(service, registry, Clock::new(timestamp), served_until.clone()).await;
            shutdown.cancel();
            served.map_err(|source| Error::Api { source: source.into() })
        };
        let (node, api) = tokio::join!(node, api);
        node.and(api)
    }
}

/// Of the store of this process. A socket is there for it alone; a port without one asks for no
/// certificate.
fn own_endpoint(address: &Address) -> Result<String, Error> {
    match address {
        Address::Tcp(address) => Ok(format!("http://{address}")),
        Address::Unix(path) => {
            fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))
                .map_err(|source| Error::ProtectSocket { path: path.clone(), source })?;
            Ok(format!("unix://{}", path.display()))
        }
    }
}

/// What others connect to: a port if there is one.
fn reached_at(edge: &Edge) -> String {
    let addresses = || edge.addresses();
    let port = addresses().find_map(|address| match address {
        Address::Tcp(address) => Some(address.to_string()),
        Address::Unix(_) => None,
    });
    let socket = addresses().find_map(|address| match address {
        Address::Unix(path) => Some(format!("unix://{}", path.display())),
        Address::Tcp(_) => None,
    });
    port.or(socket).unwrap_or_default()
}

fn make_socket_folders(listeners: &[Listener]) -> Result<(), Error> {
    for listener in listeners {
        if let Address::Unix(path) = &listener.address
            && let Some(folder) = path.parent().filter(|folder| *folder != Path::new(""))
        {
            let made = DirBuilder::new().recursive(true).mode(SOCKET_FOLDER_MODE).create(folder);
            made.map_err(|source| Error::SocketFolder { path: folder.to_owned(), source })?;
        }
    }
    Ok(())
}

fn absolute(path: PathBuf) -> Result<PathBuf, Error> {
    std::path::absolute(&path).map_err(|source| Error::Path { path, source })
}

/// What to do about an API that is not served.
pub(super) fn api_hint(error: &edge::Error) -> &'static str {
    match error {
        edge::Error::Bind(source) if source.is_tls() => super::error::CERTIFICATES,
        edge::Error::Bind(_) => {
            "`ss -ltnp` shows who listens; choose another address with --listen or --socket"
        }
        edge::Error::Protect { .. } => "choose a folder of your own for it with --socket",
        edge::Error::Serve(_) => "nothing is lost: everything is in the store; start again",
    }
}

pub(super) fn node_hint(error: &node::StartError) -> &'static str {
    match error {
        node::StartError::Connect(_) => "check --store, --cacert, --cert and --key",
        node::StartError::Open { .. } => {
            "stop the node that uses the folder, or choose another with --data-dir"
        }
        node::StartError::Machine(_) => "is /proc mounted?",
        node::StartError::Keeper(_) => super::error::LIMITS,
    }
}
