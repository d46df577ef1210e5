//! One connection from its first byte to its last: encryption, which HTTP it speaks, and its
//! bounds. Owns what protects the store from a client that is slow, silent, gone or greedy.

use std::io;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::counted::Metered;
use super::dispatch::Dispatch;
use super::lifecycle::{Stop, Streams};
use super::listen::{self, Stream};
use super::prefixed::Prefixed;
use super::tls::{Encrypted, Handshake, HandshakeError};
use crate::options::Limits;

/// What every HTTP/2 connection starts with.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A client that connects and stays silent holds its connection no longer than this.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an HTTP/1 client may take for a request's head, or stay idle between two requests.
/// Long enough for the usual scrape interval to find its connection again.
const HTTP1_HEAD_TIMEOUT: Duration = Duration::from_secs(120);

/// An HTTP/2 client this long silent is asked for a sign of life.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take to give one.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Largest head of a request: room for a long token.
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// What a client may send on one stream before it is read: most requests fit in whole.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// What a client may send on all streams of a connection before it is read.
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

/// Streams a client may cancel before they are looked at. A client that cancels many requests at
/// once is no attacker, so this is above the default.
const RESET_STREAMS_MAX: usize = 1024;

type Wire = TokioIo<Metered<Prefixed<Either<Stream, TlsStream<Stream>>>>>;

/// How connections are served.
#[derive(Clone)]
pub(super) struct Settings {
    http1: http1::Builder,
    concurrent_streams_max: u32,
}

/// Why a connection ended early. None of these is the store's fault.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("cannot set the socket's options")]
    Tune(#[source] io::Error),
    #[error("cannot encrypt")]
    Handshake(#[from] HandshakeError),
    #[error("no byte within {} s", FIRST_BYTES_TIMEOUT.as_secs())]
    Silent,
    #[error("cannot read the first bytes")]
    FirstBytes(#[source] io::Error),
    #[error("HTTP/1 failed")]
    Http1(#[source] hyper::Error),
    #[error("HTTP/2 failed")]
    Http2(#[source] hyper::Error),
}

/// Everything a connection needs but its stream.
pub(super) struct Context {
    pub(super) settings: Settings,
    pub(super) dispatch: Dispatch,
    pub(super) handshake: Option<Handshake>,
    pub(super) stop: Stop,
}

struct Ready {
    wire: Wire,
    dispatch: Dispatch,
    is_http2: bool,
}

// === impl Settings ===

impl Settings {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(HTTP1_HEAD_TIMEOUT)
            .max_header_size(HEAD_BYTES_MAX as usize);
        Self { http1, concurrent_streams_max: limits.concurrent_streams_max }
    }

    fn http2(&self, streams: Streams) -> http2::Builder<Streams> {
        let mut builder = http2::Builder::new(streams);
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(HTTP2_PING_INTERVAL)
            .keep_alive_timeout(HTTP2_PING_TIMEOUT)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_concurrent_streams(self.concurrent_streams_max)
            .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX)
            // gRPC has no use for it, and it is a header more on each answer.
            .auto_date_header(false);
        builder
    }
}

// === impl Context ===

impl Context {
    /// Serves one connection to its end.
    pub(super) async fn serve(self, stream: Stream) -> Result<(), Error> {
        let ready = tokio::select! {
            ready = self.prepare(stream) => ready?,
            () = self.stop.asked() => return Ok(()),
        };
        if ready.is_http2 { self.serve_http2(ready).await } else { self.serve_http1(ready).await }
    }

    async fn prepare(&self, stream: Stream) -> Result<Ready, Error> {
        listen::tune(&stream).map_err(Error::Tune)?;
        let (wire, identity, is_http2) = match &self.handshake {
            Some(handshake) => {
                let Encrypted { stream, identity, is_http2 } = handshake.perform(stream).await?;
                (Prefixed::new(Bytes::new(), Either::Right(stream)), identity, is_http2)
            }
            None => {
                let (stream, is_http2) = recognise(stream).await?;
                (stream, None, is_http2)
            }
        };
        let dispatch = self.dispatch.with_identity(identity);
        let metrics = dispatch.metrics().filter(|_| is_http2).cloned();
        Ok(Ready { wire: TokioIo::new(Metered::new(wire, metrics)), dispatch, is_http2 })
    }

    async fn serve_http1(self, ready: Ready) -> Result<(), Error> {
        let connection = self.settings.http1.serve_connection(ready.wire, ready.dispatch);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return ended.map_err(Error::Http1),
            () = self.stop.asked() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = connection => ended.map_err(Error::Http1),
            () = self.stop.forced() => Ok(()),
        }
    }

    async fn serve_http2(self, ready: Ready) -> Result<(), Error> {
        let streams = Streams::default();
        let served = {
            let builder = self.settings.http2(streams.clone());
            let mut connection =
                std::pin::pin!(builder.serve_connection(ready.wire, ready.dispatch));
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = self.stop.asked() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection => ended,
                        () = self.stop.forced() => Ok(()),
                    }
                }
            }
        };
        // With the connection gone its streams are reset, which ends what answered them.
        streams.ended().await;
        served.map_err(Error::Http2)
    }
}

/// Tells HTTP/2 from HTTP/1 by the first bytes, which the connection then reads again.
async fn recognise(
    stream: Stream,
) -> Result<(Prefixed<Either<Stream, TlsStream<Stream>>>, bool), Error> {
    let mut stream = stream;
    let mut first = BytesMut::with_capacity(HTTP2_PREFACE.len());
    let is_http2 = tokio::time::timeout(FIRST_BYTES_TIMEOUT, read_preface(&mut stream, &mut first))
        .await
        .map_err(|_elapsed| Error::Silent)?
        .map_err(Error::FirstBytes)?;
    Ok((Prefixed::new(first.freeze(), Either::Left(stream)), is_http2))
}

async fn read_preface(stream: &mut Stream, first: &mut BytesMut) -> io::Result<bool> {
    while HTTP2_PREFACE.starts_with(first) {
        if first.len() == HTTP2_PREFACE.len() {
            return Ok(true);
        }
        let missing = HTTP2_PREFACE.len() - first.len();
        if stream.read_buf(&mut (&mut *first).limit(missing)).await? == 0 {
            break;
        }
    }
    Ok(false)
}
