//! A gRPC client that costs as little as HTTP/2 allows, because it shares the cores with the server
//! it measures. Owns connections, framing and statuses; never retries, and knows no service.
//!
//! It speaks to h2 directly: tonic's channel puts a queue and several boxed futures between a
//! caller and the socket, which would be charged to every server alike and flatten the ratios.

mod chunks;
mod stream;

use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use http::{
    HeaderMap, Method, Request, Uri, Version, header,
    uri::{Authority, PathAndQuery},
};
use prost::Message;
use tokio::{net::TcpStream, task::JoinSet};

use chunks::Chunks;
pub(crate) use stream::Stream;

/// What a server may send before the client reads.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    stream_bytes: u32,
    connection_bytes: u32,
}

/// Large enough that no server waits for the client to read, even with a list of 20 MB.
pub(crate) const WIDE: Windows =
    Windows { stream_bytes: 8 * 1024 * 1024, connection_bytes: 32 * 1024 * 1024 };

/// HTTP/2's own, for a client that is to be slow: soon full.
pub(crate) const NARROW: Windows = Windows { stream_bytes: 65_535, connection_bytes: 65_535 };

/// A flag byte and the length, before every message.
const PREFIX_BYTES: usize = 5;

const STATUS: &str = "grpc-status";
const STATUS_MESSAGE: &str = "grpc-message";
const STATUS_OK: &str = "0";

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot connect to {address}")]
    Connect {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot begin HTTP/2 with {address}")]
    Handshake {
        address: SocketAddr,
        #[source]
        source: h2::Error,
    },
    #[error("{path} failed on the wire")]
    Transport {
        path: &'static str,
        #[source]
        source: h2::Error,
    },
    #[error("{path} answered with HTTP status {status}")]
    Http { path: &'static str, status: http::StatusCode },
    #[error("{path} answered with gRPC status {code}: {message}")]
    Status { path: &'static str, code: String, message: String },
    #[error("{path} answered what is not its message")]
    Decode {
        path: &'static str,
        #[source]
        source: prost::DecodeError,
    },
    #[error("{path} ended without an answer")]
    NoAnswer { path: &'static str },
}

/// Open connections to one server. Dropping it closes them.
pub(crate) struct Pool {
    channels: Vec<Channel>,
    /// The tasks that move the connections' bytes; when one ends, its calls fail.
    _drivers: JoinSet<Result<(), h2::Error>>,
}

/// A share in one connection.
#[derive(Clone)]
pub(crate) struct Channel {
    sender: SendRequest<Bytes>,
    authority: Authority,
}

// === impl Pool ===

impl Pool {
    pub(crate) async fn open(address: SocketAddr, connections: usize) -> Result<Self, Error> {
        Self::open_with(WIDE, address, connections).await
    }

    pub(crate) async fn open_with(
        windows: Windows,
        address: SocketAddr,
        connections: usize,
    ) -> Result<Self, Error> {
        let authority = Authority::try_from(address.to_string()).expect("a socket address is one");
        let mut drivers = JoinSet::new();
        let mut channels = Vec::with_capacity(connections);
        for _ in 0..connections {
            let stream = connect(address).await?;
            let (sender, connection) = h2::client::Builder::new()
                .initial_window_size(windows.stream_bytes)
                .initial_connection_window_size(windows.connection_bytes)
                .enable_push(false)
                .handshake(stream)
                .await
                .map_err(|source| Error::Handshake { address, source })?;
            drivers.spawn(connection);
            channels.push(Channel { sender, authority: authority.clone() });
        }
        Ok(Self { channels, _drivers: drivers })
    }

    /// The channel of the `index`-th client: clients are dealt over the connections in turn.
    pub(crate) fn channel(&self, index: usize) -> Channel {
        self.channels[index % self.channels.len()].clone()
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, Error> {
    let failed = |source| Error::Connect { address, source };
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

// === impl Channel ===

impl Channel {
    /// One request, one answer.
    pub(crate) async fn unary<A: Message + Default>(
        &self,
        path: &'static str,
        request: &impl Message,
    ) -> Result<A, Error> {
        let mut stream = self.begin(path).await?;
        stream.send(request, true)?;
        let answer = stream.next().await?.ok_or(Error::NoAnswer { path })?;
        match stream.next::<A>().await? {
            None => Ok(answer),
            Some(_) => Err(Error::NoAnswer { path }),
        }
    }

    /// One request, many answers.
    pub(crate) async fn server_stream(
        &self,
        path: &'static str,
        request: &impl Message,
    ) -> Result<Stream, Error> {
        let mut stream = self.begin(path).await?;
        stream.send(request, true)?;
        Ok(stream)
    }

    /// Begins a call without having sent anything.
    pub(crate) async fn begin(&self, path: &'static str) -> Result<Stream, Error> {
        let failed = |source| Error::Transport { path, source };
        let mut sender = self.sender.clone().ready().await.map_err(failed)?;
        let (response, body) = sender.send_request(self.head(path), false).map_err(failed)?;
        Ok(Stream::new(path, response, body))
    }

    fn head(&self, path: &'static str) -> Request<()> {
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.authority.clone())
            .path_and_query(PathAndQuery::from_static(path))
            .build()
            .expect("an authority and a method's path make a URI");
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(header::TE, const { header::HeaderValue::from_static("trailers") });
        headers.insert(
            header::CONTENT_TYPE,
            const { header::HeaderValue::from_static("application/grpc") },
        );
        request
    }
}

fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut buffer = BytesMut::with_capacity(PREFIX_BYTES + length);
    buffer.put_u8(0);
    buffer.put_u32(u32::try_from(length).expect("a request is far below 4 GiB"));
    message.encode(&mut buffer).expect("the buffer was sized for the message");
    buffer.freeze()
}

/// The status of a call, from its trailers, or from its headers if it failed at once.
fn check_status(path: &'static str, headers: &HeaderMap) -> Result<(), Error> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    match text(STATUS) {
        STATUS_OK => Ok(()),
        code => Err(Error::Status {
            path,
            code: code.to_owned(),
            message: text(STATUS_MESSAGE).to_owned(),
        }),
    }
}
