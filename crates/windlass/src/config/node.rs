//! What a task node is to be: from flags, variables and a file, checked as a whole. Reads nothing
//! itself; what it needs to know of the machine is handed in.

mod endpoints;
mod error;
pub(crate) mod file;
mod runtime;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::{Component, Path, PathBuf},
};

use sandbox::{
    Kind,
    runtime::{HostView, Permissions},
};
use store::{Address, Listener};
use tasks::{
    core::{agent::Timing, node::DEFAULT_ROOTFS},
    service::Bounds,
};

pub(crate) use error::Error;

use crate::cli::tasks::{IdentityArgs, NodeArgs};

/// The socket of a node in the folder for such things.
const SOCKET: &str = "node.sock";

/// What a node needs to know of the machine and of who starts it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) is_root: bool,
    pub(crate) host_name: String,
    /// Where sockets belong, if there is such a place.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Where data belongs if nobody says otherwise.
    pub(crate) data_dir: Option<PathBuf>,
}

/// A node as it is meant.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) listeners: Vec<Listener>,
    /// Absent: where it listens.
    pub(crate) advertise: Option<String>,
    pub(crate) store: StoreChoice,
    pub(crate) identity: Option<tasks::store::Tls>,
    pub(crate) kind: Kind,
    pub(crate) roots: BTreeMap<String, PathBuf>,
    pub(crate) permissions: Permissions,
    pub(crate) host_view: HostView,
    pub(crate) timing: Timing,
    pub(crate) bounds: Bounds,
    /// Said once logging works.
    pub(crate) warnings: Vec<String>,
}

/// Where the state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// With others.
    Shared { endpoints: Vec<String> },
    /// In the node's own process; for others too if it listens.
    Own { listen: Option<SocketAddr> },
}

// === impl Node ===

impl Node {
    pub(crate) fn of(arguments: NodeArgs, facts: &Facts) -> Result<Self, Error> {
        let identity = identity(&arguments.identity)?;
        check_addresses(&arguments, identity.is_some())?;
        let listeners = listeners(&arguments, identity.as_ref(), facts)?;
        let (kind, warnings) = runtime::choose(&arguments, facts)?;
        let data_dir = arguments.data_dir.clone().or_else(|| facts.data_dir.clone());
        let data_dir = data_dir.ok_or(Error::NoDataDir)?;
        Ok(Self {
            listeners,
            kind,
            warnings,
            advertise: arguments.advertise.clone(),
            store: store_choice(&arguments, identity.is_some())?,
            roots: roots(&arguments.rootfs)?,
            permissions: Permissions {
                net_host: arguments.allow_net_host,
                host_root: arguments.allow_host_root,
            },
            host_view: host_view(&arguments, &data_dir)?,
            timing: timing(&arguments)?,
            bounds: bounds(&arguments)?,
            name: arguments.name.unwrap_or_else(|| facts.host_name.clone()),
            identity,
            data_dir,
        })
    }

    /// A node beside the store of `windlass up`: reached over its socket alone.
    pub(crate) fn beside_store(
        data_dir: PathBuf,
        socket: Option<PathBuf>,
        facts: &Facts,
    ) -> Result<Self, Error> {
        let data_dir = Some(data_dir);
        Self::of(NodeArgs { data_dir, socket, ..NodeArgs::default() }, facts)
    }
}

/// All three files, or none.
pub(crate) fn identity(arguments: &IdentityArgs) -> Result<Option<tasks::store::Tls>, Error> {
    let IdentityArgs { cacert, cert, key } = arguments.clone();
    match (cacert, cert, key) {
        (Some(ca_file), Some(cert_file), Some(key_file)) => {
            Ok(Some(tasks::store::Tls { ca_file, cert_file, key_file }))
        }
        (None, None, None) => Ok(None),
        _ => Err(Error::HalfIdentity),
    }
}

/// What leaves the machine is encrypted, and what does not is so only if somebody says so.
fn check_addresses(arguments: &NodeArgs, has_identity: bool) -> Result<(), Error> {
    let named = [("listen", arguments.listen), ("store-listen", arguments.store_listen)];
    for (flag, address) in named {
        let Some(address) = address else { continue };
        let is_local = address.ip().is_loopback();
        match (has_identity, arguments.insecure) {
            (_, true) if !is_local => return Err(Error::InsecurePublic { flag, address }),
            (false, false) if is_local => return Err(Error::Unencrypted { flag, address }),
            (false, false) => return Err(Error::NeedsTls { flag, address }),
            _ => {}
        }
        if flag == "listen" && address.ip().is_unspecified() && arguments.advertise.is_none() {
            return Err(Error::NoAdvertise { address });
        }
    }
    if has_identity && arguments.insecure {
        return Err(Error::InsecureWithIdentity);
    }
    Ok(())
}

fn listeners(
    arguments: &NodeArgs,
    identity: Option<&tasks::store::Tls>,
    facts: &Facts,
) -> Result<Vec<Listener>, Error> {
    let tls = identity.map(|identity| store::Tls {
        trusted_ca_file: Some(identity.ca_file.clone()),
        // Who has none is told so in words, not by a connection that breaks.
        names_voluntary_clients: true,
        ..store::Tls::new(identity.cert_file.clone(), identity.key_file.clone())
    });
    let port = arguments.listen.map(|address| Listener { address: Address::Tcp(address), tls });
    let socket = match (&arguments.socket, &port) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(_)) => None,
        (None, None) => Some(default_socket(facts)?),
    };
    let socket = socket.map(|path| Listener { address: Address::Unix(path), tls: None });
    Ok(socket.into_iter().chain(port).collect())
}

fn default_socket(facts: &Facts) -> Result<PathBuf, Error> {
    facts.runtime_dir.as_ref().map(|dir| dir.join(SOCKET)).ok_or(Error::NoRuntimeDir)
}

/// Where clients look for the node of this machine, in this order.
pub(crate) fn sockets(runtime_dirs: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    runtime_dirs.into_iter().map(|dir| dir.join(SOCKET)).collect()
}

fn store_choice(arguments: &NodeArgs, has_identity: bool) -> Result<StoreChoice, Error> {
    if arguments.store.is_empty() {
        return Ok(StoreChoice::Own { listen: arguments.store_listen });
    }
    Ok(StoreChoice::Shared { endpoints: endpoints::of(&arguments.store, has_identity)? })
}

/// A folder without a name is the default.
fn roots(given: &[String]) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut roots = BTreeMap::new();
    for text in given {
        let (name, dir) = match text.split_once('=') {
            Some((name, dir)) => (name, dir),
            None => (DEFAULT_ROOTFS, text.as_str()),
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || dir.is_empty() || !name.bytes().all(is_name) {
            return Err(Error::Rootfs { text: text.clone() });
        }
        if roots.insert(name.to_owned(), PathBuf::from(dir)).is_some() {
            return Err(Error::RootfsTwice { name: name.to_owned() });
        }
    }
    Ok(roots)
}

/// Keys, configuration and data of the node are nobody else's, wherever they lie.
fn host_view(arguments: &NodeArgs, data_dir: &Path) -> Result<HostView, Error> {
    let mut view = HostView::default();
    if !arguments.host_view.is_empty() {
        view.binds = binds(&arguments.host_view)?;
    }
    let IdentityArgs { cacert: _, cert, key } = &arguments.identity;
    let files = [&arguments.config, cert, key].into_iter().flatten().cloned();
    view.hidden.extend(files.chain([data_dir.to_owned()]));
    Ok(view)
}

/// Each once, and what lies in another behind it: so they can be put together. One that is no plain path
/// would fail every task.
fn binds(given: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let is_plain = |path: &Path| {
        let mut parts = path.strip_prefix("/").ok().into_iter().flat_map(Path::components);
        let is_name = |part| matches!(part, Component::Normal(_));
        parts.next().is_some_and(is_name) && parts.all(is_name)
    };
    match given.iter().find(|path| !is_plain(path)) {
        Some(path) => Err(Error::HostView { path: path.clone() }),
        None => Ok(given.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()),
    }
}

fn timing(arguments: &NodeArgs) -> Result<Timing, Error> {
    arguments
        .lease_ttl
        .map_or(Ok(Timing::default()), |ttl| Timing::new(ttl).map_err(Error::LeaseTtl))
}

fn bounds(arguments: &NodeArgs) -> Result<Bounds, Error> {
    let defaults = Bounds::default();
    let bytes = arguments.max_message.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let bounds = Bounds {
        queued_max: arguments.max_queued.unwrap_or(defaults.queued_max),
        message_bytes_max: bytes.unwrap_or(defaults.message_bytes_max),
        waiters_max: arguments.max_waiters.unwrap_or(defaults.waiters_max),
        watchers_max: arguments.max_watchers.unwrap_or(defaults.watchers_max),
        followers_max: arguments.max_log_readers.unwrap_or(defaults.followers_max),
    };
    bounds.validate().map_err(Error::Bounds)?;
    Ok(bounds)
}
