//! Opens the sockets a store listens on. Owns binding and accepting; never speaks a protocol.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::either::Either;

use super::tls::{self, Handshake};
use crate::options::{Address, Listener};

/// A connection this long without a byte is asked whether it still lives.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// How often it is asked again before it counts as dead.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// A connection before TLS.
pub(super) type Stream = Either<TcpStream, UnixStream>;

/// One socket that clients can connect to.
pub(super) struct Bound {
    socket: Socket,
    address: Address,
    pub(super) handshake: Option<Handshake>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{address} is in use; stop the process that listens there or choose another address")]
    AddressInUse { address: SocketAddr },
    #[error("cannot bind {address}")]
    BindTcp {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot learn which port {address} was given")]
    LocalAddress {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("{} is in use; stop the process that listens there or choose another path", path.display())]
    SocketInUse { path: PathBuf },
    #[error("{} exists and is not a socket; remove it or choose another path", path.display())]
    NotASocket { path: PathBuf },
    #[error("cannot look at {}", path.display())]
    InspectSocket {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot remove the socket {} that an ended process left behind", path.display())]
    RemoveStaleSocket {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot bind the socket {}", path.display())]
    BindUnix {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot serve TLS on {address}")]
    Tls {
        address: String,
        #[source]
        source: tls::Error,
    },
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

// === impl Bound ===

impl Bound {
    pub(super) async fn bind(listener: &Listener) -> Result<Self, Error> {
        let handshake = listener
            .tls
            .as_ref()
            .map(Handshake::load)
            .transpose()
            .map_err(|source| Error::Tls { address: listener.address.to_string(), source })?;
        let (socket, address) = match &listener.address {
            Address::Tcp(address) => bind_tcp(*address).await?,
            Address::Unix(path) => bind_unix(path).await?,
        };
        Ok(Self { socket, address, handshake })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(listener) => Ok(Either::Left(listener.accept().await?.0)),
            Socket::Unix(listener) => Ok(Either::Right(listener.accept().await?.0)),
        }
    }
}

impl Drop for Bound {
    /// Leaves no dead socket behind; who finds one all the same replaces it.
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::debug!(path = %path.display(), %error, "cannot remove the socket");
        }
    }
}

async fn bind_tcp(address: SocketAddr) -> Result<(Socket, Address), Error> {
    let listener = TcpListener::bind(address).await.map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => Error::AddressInUse { address },
        _ => Error::BindTcp { address, source },
    })?;
    let local = listener.local_addr().map_err(|source| Error::LocalAddress { address, source })?;
    Ok((Socket::Tcp(listener), Address::Tcp(local)))
}

async fn bind_unix(path: &Path) -> Result<(Socket, Address), Error> {
    make_way(path).await?;
    let listener = UnixListener::bind(path)
        .map_err(|source| Error::BindUnix { path: path.to_owned(), source })?;
    Ok((Socket::Unix(listener), Address::Unix(path.to_owned())))
}

/// A socket file outlives its process. Only one that nobody answers on may be removed.
async fn make_way(path: &Path) -> Result<(), Error> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::InspectSocket { path: path.to_owned(), source }),
    };
    if !found.file_type().is_socket() {
        return Err(Error::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|source| Error::RemoveStaleSocket { path: path.to_owned(), source }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::InspectSocket { path: path.to_owned(), source }),
        Ok(_) => Err(Error::SocketInUse { path: path.to_owned() }),
    }
}

/// Answers are small and awaited, so none waits for the next. A peer that vanished without a word
/// is noticed by the system, whatever protocol the connection speaks.
pub(super) fn tune(stream: &Stream) -> io::Result<()> {
    let Either::Left(stream) = stream else { return Ok(()) };
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    Ok(())
}
